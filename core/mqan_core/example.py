"""One training or evaluation example."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Choice:
    """One label of a closed set, and what it stands for, which is read beside it; empty for nothing."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A (question, context, answer) triplet of one task (McCann et al. 2018, section 3).

    Attributes:
        id: unique within the task and split, stable between runs.
        question: in natural language; it is what names the task.
        answers: gold answers; the first is trained on, metrics take the best over all. Empty when the text does not
            say, or when none of ``choices`` is right. With ``multiple`` all labels that are right.
        answer_start: code point in ``context`` where ``answers[0]`` starts, where the dataset says so.
        reference: what the task's metric needs beyond the answers (for WOZ the dialogue and the turn).
        choices: the closed set of labels to choose from; empty for a free answer.
        multiple: whether several of ``choices`` can be right at once.
        evidence: spans of code points of ``context`` that decide the answer; None where nobody knows.
    """

    task: str
    id: str
    context: str
    question: str
    answers: tuple[str, ...]
    answer_start: int | None = None
    reference: Mapping[str, Any] | None = None
    choices: tuple[Choice, ...] = ()
    multiple: bool = False
    evidence: tuple[tuple[int, int], ...] | None = None
