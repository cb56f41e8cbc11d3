"""The systems that are compared, asked the same questions in turns: what is right, what is refused, and the time."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from mqan_baselines.formats import Row
from mqan_baselines.mt_dnn import learning as mt_dnn
from mqan_baselines.mt_dnn.packing import packer_of, stack
from mqan_baselines.scores import score
from mqan_baselines.shared_memory import learning as shared_memory
from mqan_baselines.tasks import Wording, baseline_task
from mqan_core.ask.options import choices_of
from mqan_core.ask.request import read_request
from mqan_core.errors import InputError
from mqan_training.checkpoint import load_checkpoint
from mqan_training.model.bert import encoder_folder
from mqan_training.start import load_trained
from mqan_training.torch_answers import answer_batch, generator_inputs


@dataclass(frozen=True, slots=True)
class Question:
    """A row as it is asked: texts for a system of fixed tasks, or context and question, and the classes."""

    task: str | None  # whose own words it is asked in; None where its classes are renamed
    texts: tuple[str, ...]
    context: str
    question: str
    labels: tuple[str, ...]
    gold: int  # number of the right class


@dataclass(frozen=True, slots=True)
class System:
    """A trained model.

    ``choose`` returns the likeliest class of a question, and raises InputError where it cannot be asked.
    """

    model: str
    network: nn.Module
    sources: tuple[str, ...]
    choose: Callable[[Question], str]
    training: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def shared_memory_system(folder: Path) -> System:
    network, lexicon, labels, recipe = shared_memory.load_network(folder)

    def read(task: str, texts: tuple[str, ...]) -> Tensor:
        numbers = torch.tensor([lexicon.numbers(texts[0], recipe.most_words)])
        found: Tensor = network(task, numbers, torch.tensor([numbers.shape[1]]))
        return found

    return _of_fixed_tasks(recipe.name, network, labels, read, lexicon.count, recipe.most_words)


def mt_dnn_system(folder: Path) -> System:
    network, recipe = mt_dnn.load_network(folder)
    packer = packer_of(encoder_folder(recipe.encoder), recipe.most_pieces)
    labels = {task: baseline_task(task).labels for task in network.heads}

    def read(task: str, texts: tuple[str, ...]) -> Tensor:
        found: Tensor = network(task, stack([packer.pack(*texts)]))
        return found

    return _of_fixed_tasks(recipe.name, network, labels, read, packer.count, recipe.most_pieces)


def question_answering_system(folder: Path) -> System:
    checkpoint = load_checkpoint(folder)
    trained = load_trained(checkpoint)
    with torch.no_grad():
        words = generator_inputs(trained)

    def choose(question: Question) -> str:
        request = read_request(trained.vocabulary, question.context, question.question, choices_of(question.labels))
        (answer,) = answer_batch(trained, [request], 1, words)
        return max(answer.choices, key=lambda choice: choice.probability).label

    recipe = checkpoint.recipe
    return System(f"{recipe.name}, step {checkpoint.step:,}", trained.network, tuple(recipe.sources), choose)


def _of_fixed_tasks(
    name: str,
    network: nn.Module,
    labels: Mapping[str, tuple[str, ...]],
    read: Callable[[str, tuple[str, ...]], Tensor],
    count: Callable[..., int],
    most: int,
) -> System:

    @torch.no_grad()
    def choose(question: Question) -> str:
        if question.task is None or question.task not in labels:
            raise InputError("unknown_question", "question", "It is of none of the tasks.", "Ask one of them.")
        if (length := count(*question.texts)) > most:
            raise InputError("context_too_long", "context", f"{length} units; {most} are read.", "Send less.")
        return labels[question.task][int(read(question.task, question.texts).argmax())]

    return System(name, network, tuple(labels), choose)


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
