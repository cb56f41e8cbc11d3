"""Requests that wait for a batch and for their answers, and which of them go next.

A request's turn is by when it came and how much there is to read. The first always goes, joined by those of the most
similar length while the padded batch stays within a budget of tokens.
"""

import asyncio
import threading
import time
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqan_core.answer.types import Answer, AnswerToken
from mqan_runtime.steps import ReadRequest
from mqan_serving.service.timeline import Timeline

_S_PER_PIECE = 5e-4  # by which a turn comes later: some three times what it takes to read on a CPU
_LONG = 384  # pieces; what has more has several windows, or one with many labels
Tell = Callable[[Sequence[AnswerToken]], None]  # takes the next words of an answer that is not whole yet


@dataclass(slots=True, eq=False)
class Waiting:
    """A request that waits for its answer, on its caller's event loop."""

    request: ReadRequest
    max_answer_tokens: int
    timeline: Timeline
    answer: asyncio.Future[Answer]
    loop: asyncio.AbstractEventLoop
    deadline: float
    tell: Tell | None = None
    num_told: int = 0  # words; they stay told if the request is tried again
    is_given_up: bool = False
    is_started: bool = False  # has been encoded, or is just being
    num_tokens: int = field(init=False)
    num_read: int = field(init=False)  # pieces
    turn: float = field(init=False)  # when it came, and as much later as it takes longer to read

    def __post_init__(self) -> None:
        self.num_tokens = self.request.num_context_tokens + self.request.num_question_tokens
        self.num_read = self.request.num_read
        self.turn = time.monotonic() + self.num_read * _S_PER_PIECE

    @property
    def is_awaited(self) -> bool:
        """Whether an answer could still reach the caller; the event loop may not have told them yet."""
        return not self.is_given_up and time.monotonic() < self.deadline

    def give(self, answer: Answer) -> None:
        self._settle(self.answer.set_result, answer)

    def tell_words(self, tokens: Sequence[AnswerToken]) -> None:
        if tokens and self.tell is not None:
            self.num_told += len(tokens)
            self._settle(self.tell, tokens)

    def refuse(self, error: Exception) -> None:
        self._settle(self.answer.set_exception, error)

    def _settle(self, settle: Callable[[Any], None], value: object) -> None:
        if not self.is_given_up:  # else its event loop may be closed
            self.loop.call_soon_threadsafe(self._settle_now, settle, value)

    def _settle_now(self, settle: Callable[[Any], None], value: object) -> None:
        if not self.answer.done():
            settle(value)


class WaitingQueue:
    """Requests that wait to be encoded, in order of their turns, for all threads."""

    def __init__(self, max_batch_size: int, max_batch_tokens: int) -> None:
        self._max_batch_size = max_batch_size
        self._max_batch_tokens = max_batch_tokens
        self._lock = threading.Lock()
        self._waiting: list[Waiting] = []
        self._alone: list[Waiting] = []  # who was in a batch that failed

    def add(self, waiting: Waiting) -> None:
        with self._lock:
            insort(self._waiting, waiting, key=lambda one: one.turn)

    def add_alone(self, rows: Sequence[Waiting]) -> None:
        """Let requests be tried again, each in a batch of its own, before all others."""
        for waiting in rows:
            waiting.timeline.begin("queue")
        with self._lock:
            self._alone += rows

    def take(self, room: int, *, is_idle: bool) -> list[Waiting]:
        """Take the next batch of at most ``room`` tokens; where nothing decodes the oldest goes however long it is."""
        with self._lock:
            self._waiting = [w for w in self._waiting if w.is_awaited]
            self._alone = [w for w in self._alone if w.is_awaited]
            if self._alone:
                return [self._alone.pop(0)]
            if not self._waiting or (self._waiting[0].num_tokens > room and not is_idle):
                return []
            lengths = [w.num_read for w in self._waiting]
            places = choose(lengths, self._max_batch_size, min(room, self._max_batch_tokens))
            chosen = [self._waiting[place] for place in places]
            for place in sorted(places, reverse=True):
                del self._waiting[place]
            for waiting in chosen:
                waiting.is_started = True
            return chosen

    def __len__(self) -> int:
        return len(self._waiting) + len(self._alone)


def choose(lengths: Sequence[int], max_size: int, max_tokens: int) -> list[int]:
    """Choose the next batch from what waits, oldest first; return positions.

    The oldest always goes, so nothing starves. The others join in order of how similar their length is to it, while
    the batch padded to its longest has at most ``max_tokens`` tokens and is at most half padding. Long texts go apart:
    what joined them would wait for all of their windows.
    """
    oldest = lengths[0]
    by_similarity = sorted(range(1, len(lengths)), key=lambda i: (abs(lengths[i] - oldest), i))
    batch, longest, total = [0], oldest, oldest
    for i in by_similarity:
        if len(batch) == max_size:
            break
        if (lengths[i] > _LONG) != (oldest > _LONG):
            continue
        padded = (len(batch) + 1) * max(longest, lengths[i])
        if padded > max_tokens or padded > 2 * (total + lengths[i]):
            continue
        batch.append(i)
        longest = max(longest, lengths[i])
        total += lengths[i]
    return batch
