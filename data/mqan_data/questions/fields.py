"""Questions about the fields of a row."""

from collections.abc import Sequence

import numpy as np

from mqan_core.example import Choice
from mqan_data.formats.dataset_file import Field, FieldsPart, readable
from mqan_data.formats.rows import FieldRow, Mention
from mqan_data.questions import wordings
from mqan_data.questions.asked import Asked, ask_yes_no, one_of, shuffled, some_of, with_options

_REFUSED = 0.28  # share of the questions whose field the text does not fill
_OWN = 0.55  # share of the questions in words of the dataset file, where it has some


def ask_fields(row: FieldRow, part: FieldsPart, rng: np.random.Generator) -> Asked:
    """Draw a question: for a field that the text fills, for one that it does not, or about a mention."""
    present, absent = _fields_of(row)
    if not present or (absent and rng.random() < _REFUSED):
        return _refused(row, present, absent, rng)
    if part.typed and len(row.scheme) > 1 and rng.random() < 0.15:
        return _about_mention(row, rng)
    key = one_of(rng, present)
    if rng.random() < 0.06:
        return _is_mentioned(row, key, rng)
    return _asked(row, key, rng)


def _fields_of(row: FieldRow) -> tuple[list[str], list[str]]:
    """Return the fields that the text fills, and those that can be asked for in vain."""
    absent = [key for key, field in row.scheme.items() if key not in row.mentions and not field.only_filled]
    return list(row.mentions), absent


def canonical_field(row: FieldRow, rng: np.random.Generator) -> Asked:
    """Return the first wording of a field: of one that the text fills, or, in a quarter of the rows, of another."""
    present, absent = _fields_of(row)
    filled = bool(present) and (not absent or rng.random() < 0.75)
    key = one_of(rng, present if filled else absent)
    field = row.scheme[key]
    several = len(row.mentions.get(key, ())) > 1
    question = field.questions[0] if field.questions and not several else f"What is the {_name(key, field)}?"
    if several:
        question = f"Which {_names(key, field)} are mentioned?"
    choices = tuple(Choice(value) for value in field.values)
    return _answered(row, row.mentions.get(key, ()), question, choices)


def _refused(row: FieldRow, present: Sequence[str], absent: Sequence[str], rng: np.random.Generator) -> Asked:
    """Ask for what the text does not say, most of all where it says something of the same type."""
    types = {row.scheme[key].type for key in present} - {""}
    alike = [key for key in absent if row.scheme[key].type in types]
    key = one_of(rng, alike if alike and rng.random() < 0.7 else absent)
    if rng.random() < 0.08:
        return _is_mentioned(row, key, rng)
    return _asked(row, key, rng)


def _asked(row: FieldRow, key: str, rng: np.random.Generator) -> Asked:
    field, mentions = row.scheme[key], row.mentions.get(key, ())
    name, names = _drawn_names(key, field, rng)
    distinct = list(dict.fromkeys(mention.text for mention in mentions))
    style = rng.random()
    if field.values and (style < 0.5 or any(mention.start is None for mention in mentions)):
        return _of_values(row, key, _one_question(key, field, name, rng), rng)
    if len(distinct) > 1:
        if style < 0.5:
            question = one_of(rng, wordings.FIELD_ALL).format(name=name, names=names)
            return _answered(row, mentions, question)
        first = style < 0.75
        template = one_of(rng, wordings.FIELD_FIRST if first else wordings.FIELD_LAST)
        return _answered(row, mentions[:1] if first else mentions[-1:], template.format(name=name))
    if style < 0.12:
        question = one_of(rng, wordings.FIELD_ALL).format(name=name, names=names)
    elif style < 0.17:
        question = one_of(rng, wordings.FIELD_FIRST + wordings.FIELD_LAST).format(name=name)
    else:
        question = _one_question(key, field, name, rng)
    return _answered(row, mentions, question)


def _one_question(key: str, field: Field, name: str, rng: np.random.Generator) -> str:
    if field.questions and rng.random() < _OWN:
        return one_of(rng, field.questions)
    if field.description and rng.random() < 0.3:
        return one_of(rng, wordings.FIELD_DESCRIBED).format(description=field.description)
    question = _filled(one_of(rng, wordings.FIELD), name)
    return question[:1].upper() + question[1:] if rng.random() < 0.5 else question


def _of_values(row: FieldRow, key: str, question: str, rng: np.random.Generator) -> Asked:
    """Offer the values of a closed field, as choices or in the question."""
    field = row.scheme[key]
    given = [mention.text for mention in row.mentions.get(key, ())]
    folded = {value.casefold(): value for value in field.values}
    right = tuple(folded.get(value.casefold(), value) for value in given[:1])
    values = shuffled(rng, [*field.values, *(value for value in right if value not in field.values)])
    if len(values) > 12:
        rest = [value for value in values if value not in right]
        values = shuffled(rng, [*right, *some_of(rng, rest, 9)])
    if rng.random() < 0.65 or len(values) < 2:
        return Asked(row.text, question, right, choices=tuple(Choice(value) for value in values))
    return Asked(row.text, with_options(rng, question, values), right)


def _answered(row: FieldRow, mentions: Sequence[Mention], question: str, choices: tuple[Choice, ...] = ()) -> Asked:
    """Return the question with the mentions as its answer: one as it stands, several as a list."""
    if choices:
        folded = {choice.label.casefold(): choice.label for choice in choices}
        right = tuple(folded.get(mention.text.casefold(), mention.text) for mention in mentions[:1])
        more = tuple(Choice(value) for value in right if value.casefold() not in folded)
        return Asked(row.text, question, right, choices=(*choices, *more))
    if not mentions:
        return Asked(row.text, question, ())
    texts = list(dict.fromkeys(mention.text for mention in mentions))
    start = mentions[0].start if len(texts) == 1 else None
    return Asked(row.text, question, (", ".join(texts),), start)


def _is_mentioned(row: FieldRow, key: str, rng: np.random.Generator) -> Asked:
    name, _ = _drawn_names(key, row.scheme[key], rng)
    return ask_yes_no(rng, row.text, _filled(one_of(rng, wordings.MENTIONS), name), key in row.mentions)


def _about_mention(row: FieldRow, rng: np.random.Generator) -> Asked:
    """Ask what a mention is, or which of several is something."""
    key = one_of(rng, list(row.mentions))
    mention = one_of(rng, row.mentions[key])
    kinds = {name for name, found in row.mentions.items() if any(m.text == mention.text for m in found)}
    others = [name for name in row.scheme if name not in kinds]
    name = readable(key, row.scheme[key].name)
    strangers = [m.text for other in others for m in row.mentions.get(other, ())]
    style = rng.random()
    if strangers and style < 0.3:
        offered = shuffled(rng, [mention.text, *some_of(rng, list(dict.fromkeys(strangers)), 5)])
        choices = tuple(Choice(text) for text in offered)
        return Asked(row.text, _filled(one_of(rng, wordings.WHICH_MENTION), name), (mention.text,), choices=choices)
    if style < 0.5 and others:
        truth = rng.random() < 0.5
        asked = key if truth else one_of(rng, others)
        template = one_of(rng, wordings.IS_MENTION)
        question = _filled(template, readable(asked, row.scheme[asked].name), mention.text)
        return ask_yes_no(rng, row.text, question, truth)
    names = [readable(other, row.scheme[other].name) for other in some_of(rng, others, int(rng.integers(1, 8)))]
    offered = shuffled(rng, list(dict.fromkeys([name, *names])))
    question = one_of(rng, wordings.KIND_OF_MENTION).format(mention=mention.text)
    if rng.random() < 0.6:
        return Asked(row.text, question, (name,), choices=tuple(Choice(text) for text in offered))
    return Asked(row.text, with_options(rng, question, offered), (name,))


def _name(key: str, field: Field) -> str:
    return readable(key, field.name)


def _names(key: str, field: Field) -> str:
    return field.plural or plural(_name(key, field))


def _drawn_names(key: str, field: Field, rng: np.random.Generator) -> tuple[str, str]:
    """Return a name of a field, or a synonym, and its plural."""
    if field.synonyms and rng.random() < 0.35:
        name = one_of(rng, field.synonyms)
        return name, plural(name)
    return _name(key, field), _names(key, field)


def _filled(template: str, name: str, mention: str = "") -> str:
    return template.format(a="an" if name[:1].lower() in "aeiou" else "a", name=name, mention=mention)


def plural(noun: str) -> str:
    """Return the plural of a noun, by rule."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"
