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
    """A (question, context, answer) triplet of one task (McCann et al. 2018, section 3)."""

    task: str
    id: str  # unique within the task and split, stable between runs
    context: str
    question: str  # it is what names the task
    answers: tuple[str, ...]  # the first is trained on; empty where the text does not say; all labels if ``multiple``
    answer_start: int | None = None  # code point in ``context`` where ``answers[0]`` starts, where the dataset says so
    reference: Mapping[str, Any] | None = None  # what the task's metric needs beyond the answers
    choices: tuple[Choice, ...] = ()  # empty for a free answer
    multiple: bool = False  # several choices can be right at once
    evidence: tuple[tuple[int, int], ...] | None = None  # spans of code points that decide; None where nobody knows
    outcomes: tuple[int, ...] = ()  # of each choice, which outcome of the pair it stands for
    twin: "Example | None" = None  # the same asked otherwise: its outcomes must get the same probabilities
