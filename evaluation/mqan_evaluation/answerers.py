"""Answerers of examples, whatever runs them: a checkpoint in torch or a bundle's engine."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch

from mqan_core.answer.finish import several
from mqan_core.answer.types import Answer
from mqan_core.ask.options import Options
from mqan_core.ask.request import Request, read_question, read_request
from mqan_core.bundle import open_bundle
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_runtime.engine import Engine
from mqan_runtime.session import CUDA, Precision
from mqan_runtime.steps import ReadRequest
from mqan_training.checkpoint import load_checkpoint
from mqan_training.model.network import Network
from mqan_training.recipe import WordsConfig
from mqan_training.start import Trained, load_network, load_trained
from mqan_training.torch_answers import answer_batch

_ROWS: Final = 16  # of a batch
_CHARACTERS: Final = 24_000  # rows times the longest text and its choices, so that long texts come in small batches
_MOST_TOKENS: Final = 100  # of an answer of a checkpoint of the paper's network


class Answerer:
    """A model that answers batches of questions.

    ``where`` is the runtime, in words; ``sources`` are the datasets or tasks that it was trained on, if it names any;
    ``has_one_thread`` says whether it answers on the thread alone that opened it.
    """

    title: str
    where: str
    sources: tuple[str, ...]
    has_one_thread = False

    def answer(self, asked: Sequence[Example]) -> list[Answer | None]:
        """Answer a batch, in its order; None for what cannot be read (a blank text, a question that is too long)."""
        requests: dict[int, Any] = {}
        for i, example in enumerate(asked):
            with suppress(InputError):
                requests[i] = self._read(example)
        answers = self._answer(list(requests.values())) if requests else ()
        found = dict(zip(requests, answers, strict=True))
        return [found.get(i) for i in range(len(asked))]

    def _read(self, example: Example) -> Any:
        raise NotImplementedError

    def _answer(self, requests: list[Any]) -> Sequence[Answer]:
        raise NotImplementedError


def answer_all(
    answerer: Answerer,
    examples: Sequence[Example],
    progress: Callable[[int], None] = lambda done: None,
    threads: int = 1,
) -> list[Answer | None]:
    """Answer any number of examples, in their order; what is asked twice is answered once.

    ``progress`` is called with the number of questions of each batch; ``threads`` answer batches side by side, 1 is
    the caller's own.
    """
    asked = {_asked(example): example for example in examples}
    batches = [
        batch
        for with_choices in (True, False)
        for batch in _batches([e for e in asked.values() if bool(e.choices) is with_choices])
    ]
    found: dict[object, Answer | None] = {}
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        answered = map(answerer.answer, batches) if pool is None else pool.map(answerer.answer, batches)
        for batch, answers in zip(batches, answered, strict=True):
            found.update(zip(map(_asked, batch), answers, strict=True))
            progress(len(batch))
    return [found[_asked(example)] for example in examples]


def _asked(example: Example) -> object:
    return example.context, example.question, example.choices, example.multiple


def _batches(examples: Sequence[Example]) -> Iterator[list[Example]]:
    pending = sorted(examples, key=_num_characters)
    while pending:
        rows = max(1, min(_ROWS, _CHARACTERS // max(1, _num_characters(pending[-1]))))
        yield pending[-rows:]
        del pending[-rows:]


def _num_characters(example: Example) -> int:
    named = sum(len(choice.label) + len(choice.description) for choice in example.choices)
    return len(example.context) + len(example.question) + named


class TorchAnswerer(Answerer):
    """A checkpoint, its averaged weights: with a pretrained reader, or of the paper's network."""

    where = "in torch"

    def __init__(
        self, trained: Trained | Network, max_answer_tokens: int, title: str, sources: Sequence[str] = ()
    ) -> None:
        self.trained = trained
        self.title = title
        self.sources = tuple(sources)
        self._max_answer_tokens = max_answer_tokens

    @classmethod
    def open(cls, folder: Path) -> "TorchAnswerer":
        checkpoint = load_checkpoint(folder)
        recipe, title = checkpoint.recipe, f"{checkpoint.recipe.name}, step {checkpoint.step:,}"
        if isinstance(recipe.reader, WordsConfig):
            return cls(load_network(checkpoint), _MOST_TOKENS, title, tuple(recipe.sources))
        trained = load_trained(checkpoint)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        trained = replace(trained, network=trained.network.to(device))
        return cls(trained, recipe.max_answer_tokens, title, tuple(recipe.sources))

    def answer(self, asked: Sequence[Example]) -> list[Answer | None]:
        return [
            several(replace(answer, is_multiple=True)) if answer is not None and example.multiple else answer
            for example, answer in zip(asked, super().answer(asked), strict=True)
        ]

    def _answer(self, requests: list[Request]) -> Sequence[Answer]:
        trained, most = self.trained, self._max_answer_tokens
        if isinstance(trained, Network):
            return trained.greedy_answers(requests, most)
        return answer_batch(trained, requests, most)

    def _read(self, example: Example) -> Request:
        trained, asked = self.trained, (self.trained.vocabulary, example.context, example.question)
        if isinstance(trained, Network):
            return read_request(*asked)
        request = read_request(*asked, example.choices) if example.choices else read_question(*asked)
        trained.layout.windows(request.question_tokens, request.choice_tokens, request.context_tokens)
        return request


class EngineAnswerer(Answerer):
    """A bundle, without the calibration that it may have."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        manifest = engine.bundle.manifest
        self.has_one_thread = engine.has_one_thread
        self.title = f"{manifest.name} {manifest.version}"
        self.where = f"in onnxruntime on a {'GPU' if engine.provider == CUDA else 'CPU'}, {engine.precision}"
        self.sources = tuple(str(name) for name in manifest.training.get("tasks", ()))

    @classmethod
    def open(cls, folder: Path, *, precision: Precision = "auto") -> "EngineAnswerer":
        bundle = open_bundle(folder)
        plain = replace(bundle, manifest=replace(bundle.manifest, calibration={}))
        return cls(Engine(plain, precision=precision))

    def _read(self, example: Example) -> ReadRequest:
        options = Options(choices=example.choices, multiple=example.multiple)
        return self.engine.read(example.context, example.question, options)

    def _answer(self, requests: list[ReadRequest]) -> Sequence[Answer]:
        return self.engine.answer(requests, [self.engine.max_answer_tokens] * len(requests))
