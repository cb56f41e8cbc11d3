"""Questions about the fields of a row."""

from collections.abc import Sequence

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.dataset_file import Field, FieldsPart, readable
from mqan_data.formats.rows import FieldRow, Mention
from mqan_data.questions.asked import (
    article,
    ask,
    ask_among,
    ask_yes_no,
    one_of,
    shuffled,
    some_of,
    worded,
    wordings,
)

_REFUSED = 0.28  # share of the questions whose field the text does not fill
_OWN = 0.55  # share of the questions in words of the dataset file, where it has some


def ask_fields(row: FieldRow, part: FieldsPart, rng: np.random.Generator) -> Example:
    """Draw a question: for a field that the text fills, for one that it does not, or about a mention."""
    present, absent = _fields_of(row)
    if not present or (absent and rng.random() < _REFUSED):  # most of all where it says something of the same type
        types = {row.scheme[key].type for key in present} - {""}
        alike = [key for key in absent if row.scheme[key].type in types]
        key = one_of(rng, alike if alike and rng.random() < 0.7 else absent)
        return _is_mentioned(row, key, rng) if rng.random() < 0.08 else _asked(row, key, rng)
    if part.typed and len(row.scheme) > 1 and rng.random() < 0.15:
        return _about_mention(row, rng)
    key = one_of(rng, present)
    return _is_mentioned(row, key, rng) if rng.random() < 0.06 else _asked(row, key, rng)


def _fields_of(row: FieldRow) -> tuple[list[str], list[str]]:
    """Return the fields that the text fills, and those that can be asked for in vain."""
    absent = [key for key, field in row.scheme.items() if key not in row.mentions and not field.only_filled]
    return list(row.mentions), absent


def canonical_field(row: FieldRow, rng: np.random.Generator) -> Example:
    """Return the first wording of a field: of one that the text fills, or, in a quarter of the rows, of another."""
    present, absent = _fields_of(row)
    key = one_of(rng, present if present and (not absent or rng.random() < 0.75) else absent)
    field, mentions = row.scheme[key], row.mentions.get(key, ())
    if len(mentions) > 1:
        question = f"Which {_names(key, field)} are mentioned?"
    else:
        question = field.questions[0] if field.questions else f"What is the {readable(key, field.name)}?"
    if not field.values:
        return _answered(row, mentions, question)
    right = _of_set(field, mentions)
    more = [value for value in right if value not in field.values]
    return ask(row.text, question, right, choices=(*field.values, *more))


def _asked(row: FieldRow, key: str, rng: np.random.Generator) -> Example:
    field, mentions = row.scheme[key], row.mentions.get(key, ())
    name, names = _drawn_names(key, field, rng)
    are_several = len({mention.text for mention in mentions}) > 1
    style = rng.random()
    if field.values and (style < 0.5 or any(mention.start is None for mention in mentions)):
        return _of_values(row, key, _one_question(field, name, rng), rng)
    if style < (0.5 if are_several else 0.12):
        return _answered(row, mentions, worded(rng, "field_all", name=name, names=names))
    if are_several:
        some, wording = (mentions[:1], "field_first") if style < 0.75 else (mentions[-1:], "field_last")
        return _answered(row, some, worded(rng, wording, name=name))
    if style < 0.17:
        question = one_of(rng, wordings("field_first") + wordings("field_last")).format(name=name)
        return _answered(row, mentions, question)
    return _answered(row, mentions, _one_question(field, name, rng))


def _one_question(field: Field, name: str, rng: np.random.Generator) -> str:
    if field.questions and rng.random() < _OWN:
        return one_of(rng, field.questions)
    if field.description and rng.random() < 0.3:
        return worded(rng, "field_described", description=field.description)
    question = worded(rng, "field", name=name, a=article(name))
    return question[:1].upper() + question[1:] if rng.random() < 0.5 else question


def _of_set(field: Field, mentions: Sequence[Mention]) -> list[str]:
    """Return the first mention, as the closed set of a field writes it."""
    folded = {value.casefold(): value for value in field.values}
    return [folded.get(mention.text.casefold(), mention.text) for mention in mentions[:1]]


def _of_values(row: FieldRow, key: str, question: str, rng: np.random.Generator) -> Example:
    """Offer the values of a closed field, as choices or in the question."""
    field = row.scheme[key]
    right = _of_set(field, row.mentions.get(key, ()))
    values = shuffled(rng, [*field.values, *(value for value in right if value not in field.values)])
    if len(values) > 12:
        rest = [value for value in values if value not in right]
        values = shuffled(rng, [*right, *some_of(rng, rest, 9)])
    return ask_among(rng, 0.65, row.text, question, right, values)


def _answered(row: FieldRow, mentions: Sequence[Mention], question: str) -> Example:
    """Return the question with the mentions as its answer: one as it stands, several as a list."""
    texts = list(dict.fromkeys(mention.text for mention in mentions))
    start = mentions[0].start if len(texts) == 1 else None
    return ask(row.text, question, (", ".join(texts),) if texts else (), start)


def _is_mentioned(row: FieldRow, key: str, rng: np.random.Generator) -> Example:
    name, _ = _drawn_names(key, row.scheme[key], rng)
    return ask_yes_no(rng, row.text, worded(rng, "mentions", name=name, a=article(name)), key in row.mentions)


def _about_mention(row: FieldRow, rng: np.random.Generator) -> Example:
    """Ask what a mention is, or which of several is something."""
    key = one_of(rng, list(row.mentions))
    mention = one_of(rng, row.mentions[key]).text
    kinds = {name for name, found in row.mentions.items() if any(m.text == mention for m in found)}
    called = {name: readable(name, field.name) for name, field in row.scheme.items()}
    others = [name for name in row.scheme if name not in kinds]
    strangers = [m.text for other in others for m in row.mentions.get(other, ())]
    style = rng.random()
    if strangers and style < 0.3:
        offered = shuffled(rng, [mention, *some_of(rng, list(dict.fromkeys(strangers)), 5)])
        question = worded(rng, "which_mention", name=called[key], a=article(called[key]))
        return ask(row.text, question, (mention,), choices=offered)
    if style < 0.5 and others:
        truth = rng.random() < 0.5
        name = called[key if truth else one_of(rng, others)]
        question = worded(rng, "is_mention", name=name, a=article(name), mention=mention)
        return ask_yes_no(rng, row.text, question, truth)
    names = [called[other] for other in some_of(rng, others, int(rng.integers(1, 8)))]
    offered = shuffled(rng, list(dict.fromkeys([called[key], *names])))
    return ask_among(rng, 0.6, row.text, worded(rng, "kind_of_mention", mention=mention), (called[key],), offered)


def _names(key: str, field: Field) -> str:
    return field.plural or plural(readable(key, field.name))


def _drawn_names(key: str, field: Field, rng: np.random.Generator) -> tuple[str, str]:
    """Return a name of a field, or a synonym, and its plural."""
    if field.synonyms and rng.random() < 0.35:
        name = one_of(rng, field.synonyms)
        return name, plural(name)
    return readable(key, field.name), _names(key, field)


def plural(noun: str) -> str:
    """Return the plural of a noun, by rule."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
