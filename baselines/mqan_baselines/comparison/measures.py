"""The same questions asked of several systems in turns: what is right, what is refused, and processor time."""

import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from mqan_baselines.comparison.systems import Question, System
from mqan_baselines.formats import Row
from mqan_baselines.scores import score
from mqan_baselines.wordings import Wording
from mqan_core.errors import InputError

_TURN: Final = 10  # questions that a system answers before the next has its turn
_NONE: Final = -1  # number of the class where no class was answered


@dataclass(frozen=True, slots=True)
class Reply:
    """The likeliest class to a system, or the code of its refusal, and milliseconds of processor time."""

    label: str | None
    refused: str | None
    ms: float


def questions_of(task: str | None, rows: Sequence[Row], wording: Wording, labels: Sequence[str]) -> list[Question]:
    """Return rows of a task as questions; ``task`` is None where these are not its own words."""
    return [Question(task, row.texts, *wording.fill(*row.texts), tuple(labels), int(row.gold)) for row in rows]


def ask(system: System, question: Question) -> Reply:
    begun = time.thread_time()
    try:
        label, refused = system.choose(question), None
    except InputError as error:
        label, refused = None, error.code
    return Reply(label, refused, 1000 * (time.thread_time() - begun))


def ask_in_turns(systems: Mapping[str, System], questions: Sequence[Question]) -> dict[str, list[Reply]]:
    """Ask all systems all questions, one at a time, some in a turn; the first of a turn is asked once more before."""
    replies: dict[str, list[Reply]] = {name: [] for name in systems}
    for start in range(0, len(questions), _TURN):
        for name, system in systems.items():
            turn = questions[start : start + _TURN]
            ask(system, turn[0])
            replies[name] += [ask(system, question) for question in turn]
    return replies


def measure(questions: Sequence[Question], replies: Sequence[Reply]) -> dict[str, Any]:
    """Return the accuracy of a system's replies, a refusal being wrong, and its median time where it answered.

    Both are None where nothing was answered; ``refused`` counts the codes of errors.
    """
    refused = Counter(reply.refused for reply in replies if reply.refused)
    answered = [reply.ms for reply in replies if not reply.refused]
    predicted = [
        question.labels.index(reply.label) if reply.label in question.labels else _NONE
        for question, reply in zip(questions, replies, strict=True)
    ]
    accuracy = score(("accuracy",), [question.gold for question in questions], predicted)["accuracy"]
    return {
        "accuracy": accuracy if answered else None,
        "ms": statistics.median(answered) if answered else None,
        "refused": dict(refused),
    }


def measure_all(systems: Mapping[str, System], questions: Sequence[Question]) -> dict[str, dict[str, Any]]:
    """Return what all systems' replies to the same questions are worth, by name of the system; on one core."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        replies = ask_in_turns(systems, questions)
    finally:
        torch.set_num_threads(num_threads)
    return {name: measure(questions, found) for name, found in replies.items()}


def describe(questions: Sequence[Question]) -> dict[str, Any]:
    """Return how many questions there are, the median of their words, and the share of the most frequent class in %."""
    words = [len(f"{question.context} {question.question}".split()) for question in questions]
    most = Counter(question.gold for question in questions).most_common(1)[0][1]
    return {
        "questions": len(questions),
        "words": statistics.median(words),
        "most_frequent": 100 * most / len(questions),
    }


def cost_of_a_million(ms: float, price: float) -> float:
    """Return what a million answers cost, of so many milliseconds of a core that costs so much an hour."""
    return ms * 1e6 / 3.6e6 * price
