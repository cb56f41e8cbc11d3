"""Answerers of questions, whatever runs them: a checkpoint in torch or a bundle's engine."""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from mqan_core.answer.finish import HOLDS
from mqan_core.answer.types import Answer
from mqan_core.ask.request import Request, read_question, read_request
from mqan_core.errors import InputError
from mqan_core.example import Choice, Example
from mqan_training.checkpoint import load_checkpoint
from mqan_training.torch_answers import answer_batch
from mqan_training.trained import Trained, load_trained

T = TypeVar("T")

_ROWS = 16  # of a batch
_CHARACTERS = 24_000  # rows times the longest text and its choices, so that long texts come in small batches


@dataclass(frozen=True, slots=True)
class Ask:
    """A question: without choices it is answered freely; ``multiple`` says whether several choices can be right."""

    context: str
    question: str
    choices: tuple[Choice, ...] = ()
    multiple: bool = False

    @property
    def num_characters(self) -> int:
        """Length of everything that is read."""
        named = sum(len(choice.label) + len(choice.description) for choice in self.choices)
        return len(self.context) + len(self.question) + named


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer as it was decided.

    Attributes:
        text: the free answer or the chosen label; None for a refusal. Of several labels, ``", "`` stands between them.
        labels: the chosen labels; empty without choices and for a refusal.
        probability: of the answer or of the refusal, whichever was decided; not calibrated. Of several labels, the
            product over all choices of the probability of being chosen, or not, as decided.
        refusal: probability of there being no answer.
        choices: probability of each choice, in the order asked; empty where there is none. With ``refusal`` they sum
            to 1.
        answer: what it was made of, where that is known.
    """

    text: str | None
    labels: tuple[str, ...]
    probability: float
    refusal: float
    choices: tuple[float, ...]
    answer: Answer | None = field(default=None, repr=False, compare=False)


def labels_offered(example: Example, decision: Decision) -> list[str]:
    """Return what there was to choose from: the example's choices, or the labels that its question lists."""
    listed = decision.answer.choices if decision.answer is not None and not example.choices else example.choices
    return [choice.label for choice in listed]


class Answerer(Protocol):
    """A model that answers batches of questions."""

    @property
    def title(self) -> str:
        """Name of the model."""

    @property
    def where(self) -> str:
        """The runtime, in words."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the datasets or tasks that it was trained on; none where it names none."""

    def answer(self, asked: Sequence[Ask]) -> list[Decision | None]:
        """Answer a batch, in its order; None for what cannot be read (a blank text, a question that is too long)."""


def ask_of(example: Example) -> Ask:
    """Return the question of an example."""
    return Ask(example.context, example.question, example.choices, example.multiple)


def answer_all(
    answerer: Answerer,
    asked: Sequence[Ask],
    progress: Callable[[int], None] = lambda done: None,
    threads: int = 1,
) -> list[Decision | None]:
    """Answer any number of questions in batches of similar length; the same question is asked once.

    Args:
        answerer: what answers.
        asked: the questions.
        progress: called with the number of questions of each batch that was answered.
        threads: batches that are answered side by side; 1 to answer on the thread that calls.

    Returns:
        The decisions, in the order of the questions.
    """
    found: dict[Ask, Decision | None] = {}
    batches = [  # those with choices apart from those without
        batch
        for is_closed in (True, False)
        for batch in batches_by_length(
            dict.fromkeys(ask for ask in asked if bool(ask.choices) is is_closed),
            lambda ask: ask.num_characters,
            _ROWS,
            _CHARACTERS,
        )
    ]
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        answers = map(answerer.answer, batches) if pool is None else pool.map(answerer.answer, batches)
        for batch, decisions in zip(batches, answers, strict=True):
            found.update(zip(batch, decisions, strict=True))
            progress(len(batch))
    return [found[ask] for ask in asked]


def batches_by_length(items: Iterable[T], length: Callable[[T], int], most_rows: int, most_units: int) -> list[list[T]]:
    """Divide items into batches of similar length, the longest first.

    Args:
        items: what to divide.
        length: of an item.
        most_rows: of a batch.
        most_units: rows of a batch times the length of its longest.
    """
    pending = sorted(items, key=length)
    batches = []
    while pending:
        rows = max(1, min(most_rows, most_units // max(length(pending[-1]), 1)))
        batches.append(pending[-rows:])
        del pending[-rows:]
    return batches


def decision_of(ask: Ask, answer: Answer) -> Decision:
    """Return the decision that an answer is; of several labels each counts that beats refusing."""
    if not answer.choices:
        text = answer.text if answer.answered else None
        probability = answer.probability if answer.answered else answer.refusal
        return Decision(text, (), probability, answer.refusal, (), answer)
    masses = tuple(choice.probability for choice in answer.choices)
    if not ask.multiple:
        labels: tuple[str, ...] = (answer.text,) if answer.answered else ()
        probability = answer.probability if answer.answered else answer.refusal
        return Decision(answer.text if answer.answered else None, labels, probability, answer.refusal, masses, answer)
    beside = [choice.against_refusal for choice in answer.choices]
    labels = tuple(choice.label for choice in answer.choices if choice.against_refusal > HOLDS)
    probability = math.prod(max(share, 1 - share) for share in beside)
    return Decision(", ".join(labels) if labels else None, labels, probability, answer.refusal, masses, answer)


def decide_all(
    asked: Sequence[Ask], read: Callable[[Ask], Any], answer: Callable[[list[Any]], Sequence[Answer]]
) -> list[Decision | None]:
    """Answer a batch; None stands for what ``read`` refuses.

    Args:
        asked: the questions.
        read: makes a request of a question; raises InputError where it cannot.
        answer: answers at least one request.
    """
    requests: dict[int, Any] = {}
    for i, ask in enumerate(asked):
        with suppress(InputError):
            requests[i] = read(ask)
    answers = answer(list(requests.values())) if requests else ()
    decisions: list[Decision | None] = [None] * len(asked)
    for i, found in zip(requests, answers, strict=True):
        decisions[i] = decision_of(asked[i], found)
    return decisions


class TorchAnswerer:
    """A checkpoint with a pretrained reader, its averaged weights.

    Args:
        trained: the network, and what it reads texts with.
        max_answer_tokens: longest free answer.
        title: name of the model.
        sources: names of the datasets that it was trained on.
    """

    where = "in torch"

    def __init__(self, trained: Trained, max_answer_tokens: int, title: str, sources: Sequence[str] = ()) -> None:
        self.trained = trained
        self.title = title
        self.sources = tuple(sources)
        self._max_answer_tokens = max_answer_tokens

    @classmethod
    def open(cls, folder: Path) -> "TorchAnswerer":
        """Read a checkpoint.

        Raises:
            CheckpointError: it is missing or damaged, or has the paper's reader.
        """
        checkpoint = load_checkpoint(folder)
        trained = load_trained(checkpoint)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return cls(
            replace(trained, network=trained.network.to(device)),
            checkpoint.recipe.max_answer_tokens,
            f"{checkpoint.recipe.name}, step {checkpoint.step:,}",
            tuple(checkpoint.recipe.sources),
        )

    def answer(self, asked: Sequence[Ask]) -> list[Decision | None]:
        """Answer a batch of questions that all have choices, or none."""
        network, vocabulary, layout = self.trained.network, self.trained.vocabulary, self.trained.layout
        return decide_all(
            asked, self._read, lambda found: answer_batch(network, vocabulary, layout, found, self._max_answer_tokens)
        )

    def _read(self, ask: Ask) -> Request:
        asked = self.trained.vocabulary, ask.context, ask.question
        request = read_request(*asked, ask.choices) if ask.choices else read_question(*asked)
        self.trained.layout.windows(request.question_tokens, request.choice_tokens, request.context_tokens)
        return request
