"""The six shapes that rows of datasets have; each row knows the ``texts`` that it is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mqan_core.example import Choice
from mqan_data.formats.dataset_file import Field

Spans = tuple[tuple[int, int], ...]
"""Code points of a text, from the first to one past the last."""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A text, or a text and something asked of it, with the labels that are right."""

    values: Mapping[str, str]  # by column; what the templates of the part name
    right: tuple[str, ...]  # keys of labels; empty where none of them is

    def texts(self) -> tuple[str, ...]:
        return tuple(self.values.values())


@dataclass(frozen=True, slots=True)
class Mention:
    """What a field is filled with: as it stands in the text where ``start`` says so."""

    text: str
    start: int | None


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A text with the fields that it fills."""

    text: str
    mentions: Mapping[str, tuple[Mention, ...]]  # in the order of the text; without fields that it does not fill
    scheme: Mapping[str, Field] = field(repr=False)  # what can be asked for

    def texts(self) -> tuple[str, ...]:
        return (self.text,)


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    values: Mapping[str, str]  # by column; what the templates of the part name
    options: tuple[str, ...]
    right: tuple[int, ...]  # places in ``options``; empty where none of them is
    descriptions: Mapping[str, str] = field(default_factory=dict)  # by option, where its name does not tell

    def texts(self) -> tuple[str, ...]:
        return tuple(self.values.values())


@dataclass(frozen=True, slots=True)
class QuestionRow:
    text: str
    questions: tuple[str, ...]
    answers: tuple[str, ...]  # all of them right; none where the text does not say
    start: int | None = None  # of the first answer in the text, where it stands there and somebody knows

    def texts(self) -> tuple[str, ...]:
        return (self.text, self.questions[0])


Verdict = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class FactRow:
    """A text with a yes/no question or a statement, and what the text makes of it."""

    text: str
    asked: str
    verdict: Verdict
    evidence: Spans | None = None  # what decides it; None where nobody knows
    is_question: bool = False

    def texts(self) -> tuple[str, ...]:
        return (self.text, self.asked)


@dataclass(frozen=True, slots=True)
class EverydayRow:
    """A question of any kind about a text, as a person wrote it."""

    text: str
    kind: str  # free, yes_no, choice, several, scale or field
    question: str  # of a field its name
    answers: tuple[str, ...]  # quotations, labels, or yes or no; none where the text does not say or no label fits
    choices: tuple[Choice, ...] = ()
    type: str = ""  # of a field's value
    evidence: Spans = ()
    facts: tuple[tuple[str, str], ...] = ()  # all yes/no questions about the text, and what it makes of each

    def texts(self) -> tuple[str, ...]:
        return (self.text, self.question)


Row = LabelRow | FieldRow | ChoiceRow | QuestionRow | FactRow | EverydayRow
