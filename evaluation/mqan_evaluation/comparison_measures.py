"""The same questions asked of several systems in turns: what is right, what is refused, and processor time."""

import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mqan_core.answer import Answer
from mqan_core.answering import AnsweringBundle
from mqan_core.errors import InputError
from mqan_core.options import PLAIN, Options, choices_of
from mqan_core.wordings import Wording
from mqan_runtime.interface import AnswerEngine, open_engine
from mqan_training.siblings.formats import Row
from mqan_training.siblings.scores import score

_TURN: Final = 10  # questions that a system answers before the next has its turn
_NONE: Final = -1  # number of the class where no class was answered


@dataclass(frozen=True, slots=True)
class Question:
    """A row, as it is asked.

    Attributes:
        context, question: as ``Answer`` takes them.
        labels: the classes; told to a system that takes choices.
        gold: number of the right one.
    """

    context: str
    question: str
    labels: tuple[str, ...]
    gold: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system made of a question.

    Attributes:
        label: the class that is the likeliest to it; None where it named none.
        refused: code of the error; None where it answered.
        ms: milliseconds of processor time.
    """

    label: str | None
    refused: str | None
    ms: float


def questions_of(rows: Sequence[Row], wording: Wording, labels: Sequence[str]) -> list[Question]:
    """Return rows of a task as questions."""
    return [Question(*wording.fill(*row.texts), tuple(labels), int(row.gold)) for row in rows]


def open_for_one_core(folder: Path) -> AnswerEngine:
    """Open a bundle on a CPU, with one thread."""
    return open_engine(folder, provider="cpu", num_threads=1)


def ask(engine: AnswerEngine, question: Question) -> Reply:
    """Ask a system; it is offered the classes as choices where it takes any question.

    Of an answer the likeliest class counts, also where the system would rather say that none is right.
    """
    options = PLAIN if engine.bundle.questions else Options(choices=choices_of(question.labels))
    begun = time.thread_time()
    try:
        request = engine.read(question.context, question.question, options)
        answer: Answer = engine.answer([request], [engine.max_answer_tokens])[0]
    except InputError as error:
        return Reply(None, error.code, 1000 * (time.thread_time() - begun))
    ms = 1000 * (time.thread_time() - begun)
    likeliest = max(answer.choices, key=lambda choice: choice.probability, default=None)
    return Reply(likeliest.label if likeliest else None, None, ms)


def ask_in_turns(engines: Mapping[str, AnswerEngine], questions: Sequence[Question]) -> dict[str, list[Reply]]:
    """Ask all systems all questions, one at a time, some in a turn; the first of a turn is asked once more before."""
    replies: dict[str, list[Reply]] = {name: [] for name in engines}
    for start in range(0, len(questions), _TURN):
        for name, engine in engines.items():
            turn = questions[start : start + _TURN]
            ask(engine, turn[0])
            replies[name] += [ask(engine, question) for question in turn]
    return replies


def measure(questions: Sequence[Question], replies: Sequence[Reply]) -> dict[str, Any]:
    """Return what a system's replies are worth.

    Returns:
        ``accuracy``, a refusal being wrong, and ``ms``, the median of what was answered, both None where nothing was
        answered; ``refused``, how often by code of the error.

    Raises:
        ValueError: there are no questions.
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


def measure_all(engines: Mapping[str, AnswerEngine], questions: Sequence[Question]) -> dict[str, dict[str, Any]]:
    """Return what all systems' replies to the same questions are worth, by name of the system."""
    return {name: measure(questions, replies) for name, replies in ask_in_turns(engines, questions).items()}


def describe(questions: Sequence[Question]) -> dict[str, Any]:
    """Return how many questions there are, the median of their words, and the share of the most frequent class in %."""
    words = [len(f"{question.context} {question.question}".split()) for question in questions]
    most = Counter(question.gold for question in questions).most_common(1)[0][1]
    return {
        "questions": len(questions),
        "words": statistics.median(words),
        "most_frequent": 100 * most / len(questions),
    }


def bytes_on_cpu(engine: AnswerEngine) -> int:
    """Return the bytes of the files that a CPU needs: graphs that are only for another device are left out."""
    files, bundle = engine.bundle.manifest.files, engine.bundle
    unused: set[str] = set()
    if isinstance(bundle, AnsweringBundle):
        graphs = bundle.manifest.graphs.values()
        used = {name for one in graphs if one.precision == engine.precision for name in (one.reader, one.decoder_step)}
        unused = {name for one in graphs for name in (one.reader, one.decoder_step)} - used
    return sum(entry.num_bytes for name, entry in files.items() if name not in unused)


def cost_of_a_million(ms: float, price: float) -> float:
    """Return what a million answers cost.

    Args:
        ms: milliseconds of one core that an answer takes.
        price: of a core for an hour.
    """
    return ms * 1e6 / 3.6e6 * price
