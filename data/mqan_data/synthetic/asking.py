"""Questions about texts made by program."""

from collections.abc import Sequence

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.formats.dataset_file import Field, FieldsPart
from mqan_data.formats.rows import FieldRow, LabelRow, Mention
from mqan_data.questions.asked import ask, ask_yes_no, one_of, shuffled, with_options
from mqan_data.questions.fields import ask_fields
from mqan_data.questions.labels import ask_labels
from mqan_data.synthetic.document import Document
from mqan_data.synthetic.kind import Kind

_PART = FieldsPart(shape="fields", format="made", files={})
_OF_LABELS = 0.35  # share of the questions about a text with labels of its own that are about these
_OF_KIND = 0.1  # share where it has none but its kind of document
_KIND = "document"
_OF_VALUES = 0.07  # share of the others that ask whether a value is right
_OF_CHOICES = 0.06  # share that offer values to choose from
_OF_ROWS = 0.12  # share that ask which row has a value

_IS_VALUE = (
    "Is the {name} {value}?",
    "Is {value} the {name}?",
    "{name}: {value}?",
    "Is it right that the {name} is {value}?",
    'Does the text give "{value}" as the {name}?',
)
_WHICH_VALUE = (
    "Which of these is the {name}?",
    "Which one is the {name}?",
    "What is the {name}?",
    "Pick the {name}.",
    "{name}?",
)
_WHICH_ROW = (
    "Which {kind} has the {column} {value}?",
    "Which {kind} has {value} as {column}?",
    "Whose {column} is {value}?",
    "{column} {value}: which {kind}?",
    "For which {kind} is the {column} {value}?",
    "Find the {kind} with {column} {value}.",
)


def ask_about(document: Document, kind: Kind, rng: np.random.Generator) -> Example:
    """Draw a question: about a label, a field that is there or not, a value, or a row."""
    own = sorted(set(document.labels) - {_KIND})
    if document.labels and (not document.row.mentions or rng.random() < (_OF_LABELS if own else _OF_KIND)):
        name = _KIND if not own or (_KIND in document.labels and rng.random() < 0.15) else one_of(rng, own)
        row = LabelRow({"text": document.row.text}, (document.labels[name],))
        return ask_labels(row, kind.labels[name].part(), rng)
    style = rng.random()
    if document.cells and style < _OF_ROWS:
        return _which_row(document, rng)
    style = rng.random()
    if style < _OF_VALUES:
        return _is_value(document, rng)
    if style < _OF_VALUES + _OF_CHOICES:
        return _which_value(document, rng)
    return ask_fields(document.row, _PART, rng)


def _which_row(document: Document, rng: np.random.Generator) -> Example:
    cell = one_of(rng, document.cells)
    question = one_of(rng, _WHICH_ROW).format(kind=cell.row_kind, column=cell.column, value=cell.value)
    return ask(document.row.text, question[:1].upper() + question[1:], (cell.row.text,), cell.row.start)


def _single(row: FieldRow) -> list[str]:
    return [key for key, some in row.mentions.items() if len({mention.text for mention in some}) == 1]


def _others(document: Document, key: str) -> list[str]:
    """Return values of the type of a field that are not its own."""
    row, field = document.row, document.row.scheme[key]
    own = {mention.text.casefold() for mention in row.mentions.get(key, ())}
    alike = [
        mention.text for other, some in row.mentions.items() if row.scheme[other].type == field.type for mention in some
    ]
    stranger = document.stranger(field.type) if field.type else None
    if stranger is not None:
        alike.append(stranger)
    return [text for text in dict.fromkeys(alike) if text.casefold() not in own]


def _is_value(document: Document, rng: np.random.Generator) -> Example:
    """Ask whether a value is that of a field: it is, or it is that of another field, or of none."""
    single = [key for key in _single(document.row) if not key.startswith("any ")]
    if not single:
        return ask_fields(document.row, _PART, rng)
    key = one_of(rng, single)
    others = _others(document, key)
    truth = not others or rng.random() < 0.5
    value = document.row.mentions[key][0].text if truth else one_of(rng, others)
    question = one_of(rng, _IS_VALUE).format(name=_called(document.row.scheme[key], rng), value=value)
    return ask_yes_no(rng, document.row.text, question[:1].upper() + question[1:], truth)


def _which_value(document: Document, rng: np.random.Generator) -> Example:
    """Offer values of one type; the right one is among them, or the text does not say."""
    row = document.row
    asked_for = [key for key in row.scheme if not key.startswith("any ") and len(_others(document, key)) > 0]
    keys = [key for key in asked_for if key in _single(row)]
    absent = [key for key in asked_for if key not in row.mentions and len(_others(document, key)) > 1]
    if not keys:
        return ask_fields(row, _PART, rng)
    key = one_of(rng, absent if absent and rng.random() < 0.2 else keys)
    right = row.mentions.get(key, ())
    values = shuffled(rng, [*_texts(right[:1]), *shuffled(rng, _others(document, key))[: int(rng.integers(1, 6))]])
    question = one_of(rng, _WHICH_VALUE).format(name=_called(row.scheme[key], rng))
    if rng.random() < 0.7:
        return ask(row.text, question, _texts(right[:1]), choices=tuple(Choice(value) for value in values))
    return ask(row.text, with_options(rng, question, values), _texts(right[:1]))


def _called(field: Field, rng: np.random.Generator) -> str:
    return one_of(rng, (field.name, field.name, *field.synonyms))


def _texts(mentions: Sequence[Mention]) -> tuple[str, ...]:
    return tuple(mention.text for mention in mentions)
