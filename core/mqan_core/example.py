"""One training or evaluation example."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Example:
    """A (question, context, answer) triplet of one task (McCann et al. 2018, section 3).

    Attributes:
        task: name of the task, for example ``squad``.
        id: unique within the task and split, stable between runs.
        context: text that the question is about.
        question: natural-language question; it is what names the task.
        answers: gold answers, at least one; the first is trained on, metrics take the best over all.
        answer_start: code point in ``context`` where ``answers[0]`` starts, where the dataset says so.
        reference: what the task's metric needs beyond the answers (for WOZ the dialogue and the turn).
    """

    task: str
    id: str
    context: str
    question: str
    answers: tuple[str, ...]
    answer_start: int | None = None
    reference: Mapping[str, Any] | None = None
