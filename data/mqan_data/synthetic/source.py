"""Texts made by program as sources of questions, one for each kind of text, and what is asked about them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Final, Literal

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.dataset_file import FieldsPart
from mqan_data.formats.rows import LabelRow
from mqan_data.questions import fields, labels
from mqan_data.questions.asked import ask, ask_among, ask_yes_no, one_of, shuffled, worded
from mqan_data.settings import parse
from mqan_data.synthetic.document import Document, make_document
from mqan_data.synthetic.kind import Kind, LabelSet, kind_names, load_kind
from mqan_data.synthetic.programs.comparisons import ask_comparisons
from mqan_data.synthetic.programs.corrections import ask_corrections
from mqan_data.synthetic.programs.told import load, part_of
from mqan_data.synthetic.programs.transfers import ask_transfers

Split = Literal["train", "validation"]
_CASES_HELD_BACK = 8  # each so many of the cases to judge is for validation only


def ask_judgements(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a short case with what stands around it, and ask how it is judged: how urgent, thanks, spam and so on."""
    file = load("judgements")
    names = list(file["sets"])
    name = chance.choice([*names, names[0], names[0]])
    cases = file["sets"][name]
    label = chance.choice(list(cases["cases"]))
    text = chance.choice(part_of(cases["cases"][label], _CASES_HELD_BACK, held_back=held_back))
    before = chance.choice((*file["before"], *(file["reports"] if "reported" in cases else ())))
    row = LabelRow({"text": f"{before}{text}{chance.choice(file['after'])}"}, (label,))
    labels_of = {key: value for key, value in cases.items() if key not in ("cases", "reported")}
    asked = labels.draw(row, parse(LabelSet, labels_of, name).part(), rng)
    return replace(asked, evidence=((len(before), len(before) + len(text)),) if asked.answers else None)


PROGRAMS: Final[Mapping[str, Callable[..., Example]]] = {
    "comparisons": ask_comparisons,
    "corrections": ask_corrections,
    "judgements": ask_judgements,
    "transfers": ask_transfers,
}
"""What fields and layouts cannot say: each writes a text and asks about it."""
_ROWS_OF_PROGRAM = 8_000
_ROWS_OF_LAYOUT = 500  # decides how often a kind is asked: the more layouts it has, the more
_PART = FieldsPart(shape="fields", format="made", files={})
_OF_LABELS = 0.35  # share of the questions about a text with labels of its own that are about these
_OF_KIND = 0.1  # share where it has none but its kind of document
_KIND = "document"
_OF_VALUES = 0.07  # share of the others that ask whether a value is right
_OF_CHOICES = 0.06  # share that offer values to choose from
_OF_ROWS = 0.12  # share that ask which row has a value


class MadeSource:
    """Questions about texts of a kind or of a program; no two draws see the same text.

    A split has layouts of the kind, or words and cases of the program, of its own.
    """

    def __init__(self, name: str, split: Split) -> None:
        self.split, self.name, self._program = split, f"made_{name}", PROGRAMS.get(name)
        if self._program is None:
            self.kind = load_kind(name)
            self.layouts = tuple(one for one in self.kind.layouts if one.held_back == (split == "validation"))
            if not self.layouts:
                raise ValueError(f"kinds/{name}.yaml has no layout for {split}; set `held_back` of some, not of all.")

    def __len__(self) -> int:
        return _ROWS_OF_PROGRAM if self._program else _ROWS_OF_LAYOUT * len(self.layouts)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        seed = int(rng.integers(2**62))
        if self._program is not None:
            asked = self._program(Random(seed), rng, held_back=self.split == "validation")  # noqa: S311
        else:
            asked = _ask(make_document(self.kind, self.layouts[index % len(self.layouts)], seed), self.kind, rng)
        return replace(asked, task=self.name, id=f"{self.split}/{index}")


def made_sources(split: Split) -> list[MadeSource]:
    return [MadeSource(name, split) for name in kind_names()]


def _ask(document: Document, kind: Kind, rng: np.random.Generator) -> Example:
    """Draw a question: about a label, a field that is there or not, a value, or a row."""
    row, own = document.row, sorted(set(document.labels) - {_KIND})
    if document.labels and (not row.mentions or rng.random() < (_OF_LABELS if own else _OF_KIND)):
        name = _KIND if not own or (_KIND in document.labels and rng.random() < 0.15) else one_of(rng, own)
        return labels.draw(LabelRow({"text": row.text}, (document.labels[name],)), kind.labels[name].part(), rng)
    if document.cells and rng.random() < _OF_ROWS:
        cell = one_of(rng, document.cells)
        question = worded(rng, "which_row", kind=cell.row_kind, column=cell.column, value=cell.value)
        return ask(row.text, question[:1].upper() + question[1:], (cell.row.text,), cell.row.start)
    style = rng.random()
    draw = _is_value if style < _OF_VALUES else _which_value if style < _OF_VALUES + _OF_CHOICES else None
    return (draw and draw(document, rng)) or fields.draw(row, _PART, rng)


def _single(document: Document) -> list[str]:
    mentions = document.row.mentions.items()
    return [key for key, some in mentions if not key.startswith("any ") and len({m.text for m in some}) == 1]


def _others(document: Document, key: str) -> list[str]:  # values of the type of a field that are not its own
    mentions, scheme = document.row.mentions, document.row.scheme
    own = {mention.text.casefold() for mention in mentions.get(key, ())}
    of_type = [other for other in mentions if scheme[other].type == scheme[key].type]
    alike = [mention.text for other in of_type for mention in mentions[other]]
    if scheme[key].type and (stranger := document.stranger(scheme[key].type)) is not None:
        alike.append(stranger)
    return [text for text in dict.fromkeys(alike) if text.casefold() not in own]


def _is_value(document: Document, rng: np.random.Generator) -> Example | None:
    """Ask whether a value is that of a field: it is, or it is that of another field, or of none."""
    single = _single(document)
    if not single:
        return None
    key = one_of(rng, single)
    others = _others(document, key)
    truth = not others or rng.random() < 0.5
    value = document.row.mentions[key][0].text if truth else one_of(rng, others)
    question = worded(rng, "is_value", name=_called(document, key, rng), value=value)
    return ask_yes_no(rng, document.row.text, question[:1].upper() + question[1:], truth)


def _which_value(document: Document, rng: np.random.Generator) -> Example | None:
    """Offer values of one type; the right one is among them, or the text does not say."""
    row = document.row
    others = {key: _others(document, key) for key in row.scheme if not key.startswith("any ")}
    keys = [key for key in _single(document) if others[key]]
    absent = [key for key, some in others.items() if key not in row.mentions and len(some) > 1]
    if not keys:
        return None
    key = one_of(rng, absent if absent and rng.random() < 0.2 else keys)
    right = [mention.text for mention in row.mentions.get(key, ())[:1]]
    values = shuffled(rng, [*right, *shuffled(rng, others[key])[: int(rng.integers(1, 6))]])
    question = worded(rng, "which_value", name=_called(document, key, rng))
    return ask_among(rng, 0.7, row.text, question, right, values)


def _called(document: Document, key: str, rng: np.random.Generator) -> str:
    field = document.row.scheme[key]
    return one_of(rng, (field.name, field.name, *field.synonyms))
