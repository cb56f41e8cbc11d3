"""Questions about the fields of a row."""

from collections.abc import Sequence

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.dataset_file import Field, FieldsPart, readable
from mqan_data.formats.rows import FieldRow, Mention
from mqan_data.questions import asked as q

_REFUSED = 0.28  # share of the questions whose field the text does not fill
_OWN = 0.55  # share of the questions in words of the dataset file, where it has some


def draw(row: FieldRow, part: FieldsPart, rng: np.random.Generator) -> Example:
    """Draw a question: for a field that the text fills, for one that it does not, or about a mention."""
    present, absent = _fields_of(row)
    if not present or (absent and rng.random() < _REFUSED):  # most of all where it says something of the same type
        types = {row.scheme[key].type for key in present} - {""}
        alike = [key for key in absent if row.scheme[key].type in types]
        key = q.one_of(rng, alike if alike and rng.random() < 0.7 else absent)
        return _is_mentioned(row, key, rng) if rng.random() < 0.08 else _asked(row, key, rng)
    if part.typed and len(row.scheme) > 1 and rng.random() < 0.15:
        return _about_mention(row, rng)
    key = q.one_of(rng, present)
    return _is_mentioned(row, key, rng) if rng.random() < 0.06 else _asked(row, key, rng)


def _fields_of(row: FieldRow) -> tuple[list[str], list[str]]:
    absent = [key for key, field in row.scheme.items() if key not in row.mentions and not field.only_filled]
    return list(row.mentions), absent


def canonical(row: FieldRow, _part: object, rng: np.random.Generator) -> Example:
    """Return the first wording of a field: of one that the text fills, or, in a quarter of the rows, of another."""
    present, absent = _fields_of(row)
    key = q.one_of(rng, present if present and (not absent or rng.random() < 0.75) else absent)
    field, mentions = row.scheme[key], row.mentions.get(key, ())
    if len(mentions) > 1:
        question = f"Which {_names(key, field)} are mentioned?"
    else:
        question = field.questions[0] if field.questions else f"What is the {readable(key, field.name)}?"
    if not field.values:
        return _answered(row, mentions, question)
    right = _of_set(field, mentions)
    more = [value for value in right if value not in field.values]
    return q.ask(row.text, question, right, choices=(*field.values, *more))


def _asked(row: FieldRow, key: str, rng: np.random.Generator) -> Example:
    field, mentions = row.scheme[key], row.mentions.get(key, ())
    name, names = _drawn_names(key, field, rng)
    are_several = len({mention.text for mention in mentions}) > 1
    style = rng.random()
    if field.values and (style < 0.5 or any(mention.start is None for mention in mentions)):
        return _of_values(row, key, _one_question(field, name, rng), rng)
    if style < (0.5 if are_several else 0.12):
        return _answered(row, mentions, q.worded(rng, "field_all", name=name, names=names))
    if are_several:
        some, wording = (mentions[:1], "field_first") if style < 0.75 else (mentions[-1:], "field_last")
        return _answered(row, some, q.worded(rng, wording, name=name))
    if style < 0.17:
        question = q.one_of(rng, q.wordings("field_first") + q.wordings("field_last")).format(name=name)
        return _answered(row, mentions, question)
    return _answered(row, mentions, _one_question(field, name, rng))


def _one_question(field: Field, name: str, rng: np.random.Generator) -> str:
    if field.questions and rng.random() < _OWN:
        return q.one_of(rng, field.questions)
    if field.description and rng.random() < 0.3:
        return q.worded(rng, "field_described", description=field.description)
    question = q.worded(rng, "field", name=name, a=q.article(name))
    return question[:1].upper() + question[1:] if rng.random() < 0.5 else question


def _of_set(field: Field, mentions: Sequence[Mention]) -> list[str]:
    """Return the first mention, as the closed set of a field writes it."""
    folded = {value.casefold(): value for value in field.values}
    return [folded.get(mention.text.casefold(), mention.text) for mention in mentions[:1]]


def _of_values(row: FieldRow, key: str, question: str, rng: np.random.Generator) -> Example:
    """Offer the values of a closed field, as choices or in the question."""
    field = row.scheme[key]
    right = _of_set(field, row.mentions.get(key, ()))
    values = q.shuffled(rng, [*field.values, *(value for value in right if value not in field.values)])
    if len(values) > 12:
        rest = [value for value in values if value not in right]
        values = q.shuffled(rng, [*right, *q.some_of(rng, rest, 9)])
    return q.ask_among(rng, 0.65, row.text, question, right, values)


def _answered(row: FieldRow, mentions: Sequence[Mention], question: str) -> Example:
    texts = list(dict.fromkeys(mention.text for mention in mentions))
    start = mentions[0].start if len(texts) == 1 else None
    return q.ask(row.text, question, (", ".join(texts),) if texts else (), start)


def _is_mentioned(row: FieldRow, key: str, rng: np.random.Generator) -> Example:
    name, _ = _drawn_names(key, row.scheme[key], rng)
    return q.ask_yes_no(rng, row.text, q.worded(rng, "mentions", name=name, a=q.article(name)), key in row.mentions)


def _about_mention(row: FieldRow, rng: np.random.Generator) -> Example:
    key = q.one_of(rng, list(row.mentions))
    mention = q.one_of(rng, row.mentions[key]).text
    kinds = {name for name, found in row.mentions.items() if any(m.text == mention for m in found)}
    called = {name: readable(name, field.name) for name, field in row.scheme.items()}
    others = [name for name in row.scheme if name not in kinds]
    strangers = [m.text for other in others for m in row.mentions.get(other, ())]
    style = rng.random()
    if strangers and style < 0.3:
        offered = q.shuffled(rng, [mention, *q.some_of(rng, list(dict.fromkeys(strangers)), 5)])
        question = q.worded(rng, "which_mention", name=called[key], a=q.article(called[key]))
        return q.ask(row.text, question, (mention,), choices=offered)
    if style < 0.5 and others:
        truth = rng.random() < 0.5
        name = called[key if truth else q.one_of(rng, others)]
        question = q.worded(rng, "is_mention", name=name, a=q.article(name), mention=mention)
        return q.ask_yes_no(rng, row.text, question, truth)
    names = [called[other] for other in q.some_of(rng, others, int(rng.integers(1, 8)))]
    offered = q.shuffled(rng, list(dict.fromkeys([called[key], *names])))
    return q.ask_among(rng, 0.6, row.text, q.worded(rng, "kind_of_mention", mention=mention), (called[key],), offered)


def _names(key: str, field: Field) -> str:
    return field.plural or plural(readable(key, field.name))


def _drawn_names(key: str, field: Field, rng: np.random.Generator) -> tuple[str, str]:
    """Return a name of a field, or a synonym, and its plural."""
    if field.synonyms and rng.random() < 0.35:
        name = q.one_of(rng, field.synonyms)
        return name, plural(name)
    return readable(key, field.name), _names(key, field)


def plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
