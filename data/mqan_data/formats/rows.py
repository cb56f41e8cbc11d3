"""The six shapes that rows of datasets have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mqan_core.example import Choice
from mqan_data.formats.dataset_file import Field


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A text, or a text and something asked of it, with the labels that are right.

    Attributes:
        values: by column; what the templates of the part name.
        right: keys of the labels that are right; empty where none of them is.
    """

    values: Mapping[str, str]
    right: tuple[str, ...]

    def texts(self) -> tuple[str, ...]:
        """Return the texts that the row is made of."""
        return tuple(self.values.values())


@dataclass(frozen=True, slots=True)
class Mention:
    """What a field is filled with.

    Attributes:
        text: as it stands in the text of the row, where ``start`` says so.
        start: code point where it begins; None where the text does not say it word for word.
    """

    text: str
    start: int | None


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A text with the fields that it fills.

    Attributes:
        text: what is asked about.
        mentions: by key of the field, in the order of the text; fields that the text does not fill are absent.
        scheme: the fields that can be asked for, by key.
    """

    text: str
    mentions: Mapping[str, tuple[Mention, ...]]
    scheme: Mapping[str, Field] = field(repr=False)

    def texts(self) -> tuple[str, ...]:
        """Return the texts that the row is made of."""
        return (self.text,)


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A question with answers to choose from.

    Attributes:
        values: by column; what the templates of the part name.
        options: the answers to choose from.
        right: places of the right ones in ``options``; empty where none of them is.
        descriptions: by answer, what it stands for, where its name does not tell.
    """

    values: Mapping[str, str]
    options: tuple[str, ...]
    right: tuple[int, ...]
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def texts(self) -> tuple[str, ...]:
        """Return the texts that the row is made of."""
        return tuple(self.values.values())


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question on a text.

    Attributes:
        text: what is asked about.
        questions: wordings of one question.
        answers: all of them right; none where the text does not say.
        start: code point in ``text`` where the first answer stands; None where it does not, or nobody knows.
    """

    text: str
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    start: int | None = None

    def texts(self) -> tuple[str, ...]:
        """Return the texts that the row is made of."""
        return (self.text, self.questions[0])


Verdict = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class FactRow:
    """A text with a yes/no question or a statement, and what the text makes of it.

    Attributes:
        text: what is asked about.
        asked: the question or statement, as the part says.
        verdict: whether the text affirms it, denies it, or does not say.
        evidence: spans of code points of ``text`` that decide it; None where nobody knows.
    """

    text: str
    asked: str
    verdict: Verdict
    evidence: tuple[tuple[int, int], ...] | None = None

    def texts(self) -> tuple[str, ...]:
        """Return the texts that the row is made of."""
        return (self.text, self.asked)


@dataclass(frozen=True, slots=True)
class EverydayRow:
    """A question of any kind about a text, as a person wrote it.

    Attributes:
        text: what is asked about.
        kind: free, yes_no, choice, several, scale or field.
        question: in its own words; of a field its name.
        answers: quotations, labels, or yes or no; none where the text does not say or no label fits.
        choices: the labels, with their descriptions.
        type: of a field's value.
        evidence: spans of code points of ``text`` that decide it.
        facts: all yes/no questions about the text, and what it makes of each.
    """

    text: str
    kind: str
    question: str
    answers: tuple[str, ...]
    choices: tuple[Choice, ...] = ()
    type: str = ""
    evidence: tuple[tuple[int, int], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    def texts(self) -> tuple[str, ...]:
        """Return the texts that the row is made of."""
        return (self.text, self.question)


Row = LabelRow | FieldRow | ChoiceRow | QuestionRow | FactRow | EverydayRow
