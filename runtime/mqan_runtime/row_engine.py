"""The common part of engines: rows of requests that decode together."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from mqan_core.answer.types import Answer, AnswerToken
from mqan_core.ask.options import PLAIN, Options
from mqan_core.ask.request import Check
from mqan_core.bundle import Bundle
from mqan_runtime.step_loop import Decoding, StepLoop

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True, eq=False)
class Row(Generic[Request]):
    """A request, as the row of a decoding that answers it."""

    key: Any
    request: Request
    max_answer_tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class Ended(Generic[Request]):
    """A request that has been decoded, as the loop hands it out, to be written as an answer."""

    row: Row[Request]
    decoded: Any


class RowEngine(ABC, Generic[Request]):
    """Answers requests, row by row of a decoding.

    Attributes:
        bundle: what is run.
        provider: execution provider that really runs it.
        precision: of the products that dominate.
        loop: the loop over token ids below the text.
    """

    bundle: Bundle
    provider: str
    precision: str
    loop: StepLoop

    @property
    @abstractmethod
    def max_answer_tokens(self) -> int:
        """Most tokens that an answer can have: the decoder's positions less one for the end."""

    @abstractmethod
    def read(self, context: str, question: str, options: Options = PLAIN, check: Check | None = None) -> Request:
        """Tokenise a request.

        Raises:
            InputError: it cannot be answered.
        """

    @abstractmethod
    def begin(self, rows: Sequence[Row[Request]]) -> Generator[None, None, Decoding]:
        """Read a batch, with a pause between parts of long requests; return its decoding before the first step."""

    @abstractmethod
    def write(self, ended: Ended[Request]) -> Answer:
        """Turn what was decoded into text, with the sources of its words."""

    @abstractmethod
    def read_decided(self, row: Row[Request], trace: npt.NDArray[np.float32], first: int) -> list[AnswerToken]:
        """Return the words of a row that has not left which its answer is sure to have.

        Args:
            row: the row.
            trace: what its steps chose so far, [steps, F].
            first: how many words are left out, from the first on.
        """

    def answer(self, requests: Sequence[Request], max_answer_tokens: Sequence[int]) -> list[Answer]:
        """Answer a batch; each answer is what its request would get alone.

        Args:
            requests: at least one.
            max_answer_tokens: most tokens of each answer, 1 to ``max_answer_tokens``; of a choice it is not used.

        Raises:
            ValueError: there are no requests, or a limit is out of range.
        """
        decoding = self.start(requests, max_answer_tokens, range(len(requests)))
        answers: dict[int, Answer] = {}
        while decoding.num_live:
            answers.update((place, self.write(ended)) for place, ended in self.step(decoding))
        return [answers[place] for place in range(len(requests))]

    def start(self, requests: Sequence[Request], max_answer_tokens: Sequence[int], keys: Sequence[Any]) -> Decoding:
        """Read a batch, whose answers then come from ``step``, each as soon as it has ended.

        Arguments and errors are those of ``start_in_turns``.
        """
        reading = self.start_in_turns(requests, max_answer_tokens, keys)
        while True:
            try:
                next(reading)
            except StopIteration as done:
                decoding: Decoding = done.value
                return decoding

    def start_in_turns(
        self, requests: Sequence[Request], max_answer_tokens: Sequence[int], keys: Sequence[Any]
    ) -> Generator[None, None, Decoding]:
        """Do what ``start`` does, with a pause between parts of long requests: others need not wait, nor do more work
        for who has gone.

        Args:
            requests: at least one.
            max_answer_tokens: most tokens of each answer, 1 to ``max_answer_tokens``; of a choice it is not used.
            keys: what the caller knows each request by.

        Raises:
            ValueError: there are no requests, or a limit is out of range.
        """
        if not requests or not len(requests) == len(max_answer_tokens) == len(keys):
            raise ValueError(
                f"{len(requests)} requests with {len(max_answer_tokens)} limits and {len(keys)} keys; "
                "expected one or more each"
            )
        if not all(1 <= limit <= self.max_answer_tokens for limit in max_answer_tokens):
            raise ValueError(
                f"max_answer_tokens must be 1 to {self.max_answer_tokens}, found {list(max_answer_tokens)}"
            )
        return (yield from self.begin([Row(*row) for row in zip(keys, requests, max_answer_tokens, strict=True)]))

    def step(self, decoding: Decoding) -> list[tuple[Any, Ended[Request]]]:
        """Take one step, of at least one row; return the keys of those that it ended, and what to ``write``."""
        return [(row.key, Ended(row, decoded)) for row, decoded in self.loop.step(decoding)]

    def decided(self, decoding: Decoding, told: Mapping[Any, int]) -> list[tuple[Any, list[AnswerToken]]]:
        """Return the next words of rows that have not left: those that no later step takes back.

        Args:
            decoding: the rows, after a step.
            told: how many words of a row are known already, by its key; of other rows nothing is returned.
        """
        return [
            (row.key, self.read_decided(row, self.loop.trace_so_far(decoding, place), told[row.key]))
            for place, row in enumerate(decoding.keys)
            if decoding.is_live[place] and row.key in told
        ]

    def drop(self, decoding: Decoding, keys: Collection[Any]) -> None:
        """Let rows leave whose answers nobody waits for."""
        for row in decoding.live_keys:
            if any(row.key is key for key in keys):
                decoding.drop(row)

    def merge(self, decodings: Sequence[Decoding]) -> Decoding:
        """Return decodings, of which at least one row has not left, as one; they are not to be used again."""
        return self.loop.merge(decodings)
