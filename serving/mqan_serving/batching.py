"""Batches in flight: requests join the engine's work between steps, and leave at the step that ends their answer.

A round takes what has come, encodes one batch of it, and then takes one step of everything that decodes: nobody waits
for others to come, and a one-word answer does not wait for a long one. Answers do not depend on the batch they are
given in, so batches are formed for speed alone: the oldest request always goes, joined by those of the most similar
length while the padded batch stays within a budget of tokens. The engine runs on one thread of its own, so the event
loop is never blocked, and while there is work the thread goes on by itself.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from mqan_core.answer import Answer
from mqan_serving.errors import ServingError
from mqan_serving.validation import ReadRequest

RequestT = TypeVar("RequestT", bound=ReadRequest)
RequestT_contra = TypeVar("RequestT_contra", bound=ReadRequest, contravariant=True)

_RETRY_AFTER_S = 1
_YOUNG_STEPS = 8  # a decoding that has taken more joins the other old ones: many short steps of few rows cost more


class Decoding(Protocol):
    """Requests that decode together."""

    @property
    def num_steps(self) -> int:
        """Steps taken."""

    @property
    def num_tokens(self) -> int:
        """Tokens that it holds in memory, padding included."""


class Stepper(Protocol[RequestT_contra]):
    """What a batcher needs of ``mqan_export.engine.Engine``; all of it blocks."""

    def start(self, requests: Sequence[RequestT_contra], max_answer_tokens: Sequence[int], keys: Sequence[Any]) -> Any:
        """Encode requests; return their decoding."""

    def step(self, decoding: Any) -> Sequence[tuple[Any, Answer]]:
        """Take a step; return key and answer of those that it ended."""

    def drop(self, decoding: Any, keys: Collection[Any]) -> None:
        """Let requests leave without an answer."""

    def merge(self, decodings: Sequence[Any]) -> Any:
        """Make one decoding of several."""


class Admission:
    """Bounds how many requests are inside the server at once.

    Args:
        max_requests: most of them.
    """

    def __init__(self, max_requests: int) -> None:
        self.max_requests = max_requests
        self.num_requests = 0

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Count a request in, and out again at the end.

        Raises:
            ServingError: the server is full.
        """
        if self.num_requests >= self.max_requests:
            raise ServingError("overloaded", "The server is full.", retry_after_s=_RETRY_AFTER_S)
        self.num_requests += 1
        try:
            yield
        finally:
            self.num_requests -= 1


@dataclass(slots=True, eq=False)
class _Waiting(Generic[RequestT]):
    request: RequestT
    max_answer_tokens: int
    num_tokens: int
    answer: asyncio.Future[Answer]
    is_given_up: bool = False  # nobody waits for the answer
    is_started: bool = False  # it has been encoded, or is just being


class Batcher(Generic[RequestT]):
    """Answers single requests in batches.

    The event loop only adds to what has come and marks what is given up; all else belongs to the engine's thread.

    Args:
        engine: called on the executor only, one call at a time.
        executor: a pool of one thread.
        max_batch_size: most requests that are encoded together.
        max_batch_tokens: most tokens of them, padding included; a longer request goes alone.
        max_running_tokens: most tokens of all that decode; a longer request decodes alone.
    """

    def __init__(
        self,
        engine: Stepper[RequestT],
        executor: Executor,
        *,
        max_batch_size: int,
        max_batch_tokens: int,
        max_running_tokens: int,
    ) -> None:
        self._engine = engine
        self._executor = executor
        self._max_batch_size = max_batch_size
        self._max_batch_tokens = max_batch_tokens
        self._max_running_tokens = max_running_tokens
        self._came: deque[_Waiting[RequestT]] = deque()
        self._has_come = asyncio.Event()
        self._is_closing = False
        self._worker: asyncio.Task[None] | None = None
        self._inside: set[_Waiting[RequestT]] = set()  # all without an answer
        # the following belong to the engine's thread
        self._queue: list[_Waiting[RequestT]] = []
        self._alone: list[_Waiting[RequestT]] = []  # who was in a batch that failed
        self._decodings: list[tuple[Decoding, list[_Waiting[RequestT]]]] = []

    @property
    def num_waiting(self) -> int:
        """Requests that are not yet encoded."""
        return sum(not waiting.is_started for waiting in self._inside)

    @property
    def is_alive(self) -> bool:
        """Whether requests are being answered."""
        return self._worker is None or not self._worker.done()

    async def answer(self, request: RequestT, max_answer_tokens: int) -> Answer:
        """Answer one request.

        A caller that goes away (cancels) costs nothing more: before its request is encoded it never will be, and after
        that it leaves at the next step.
        """
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="mqan-batcher")
        num_tokens = request.num_context_tokens + request.num_question_tokens
        waiting = _Waiting(request, max_answer_tokens, num_tokens, asyncio.get_running_loop().create_future())
        self._inside.add(waiting)
        self._came.append(waiting)
        self._has_come.set()
        try:
            return await waiting.answer
        finally:
            waiting.is_given_up = True
            self._inside.discard(waiting)

    async def close(self) -> None:
        """Stop at the next step; whoever still waits is told that the server stops."""
        self._is_closing = True
        for waiting in list(self._inside):
            if not waiting.answer.done():
                waiting.answer.set_exception(ServingError("unavailable", "The server is stopping."))
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_come.wait()
            self._has_come.clear()
            await loop.run_in_executor(self._executor, self._run_rounds, loop)

    # --- On the engine's thread

    def _run_rounds(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work until there is nothing to do."""
        while not self._is_closing:
            while self._came:
                self._queue.append(self._came.popleft())
            self._start_some(loop)
            if not self._decodings:
                return
            for decoding, rows in self._take_decodings():
                self._step(loop, decoding, rows)

    def _start_some(self, loop: asyncio.AbstractEventLoop) -> None:
        """Encode one batch of what waits, if there is room."""
        self._queue = [w for w in self._queue if not w.is_given_up]
        self._alone = [w for w in self._alone if not w.is_given_up]
        if self._alone:
            self._start(loop, [self._alone.pop(0)])
        elif self._queue:
            lengths = [w.num_tokens for w in self._queue]
            room = self._max_running_tokens - sum(decoding.num_tokens for decoding, _ in self._decodings)
            if lengths[0] <= room or not self._decodings:
                places = choose(lengths, self._max_batch_size, min(self._max_batch_tokens, room))
                chosen = [self._queue[place] for place in places]
                for place in sorted(places, reverse=True):
                    del self._queue[place]
                self._start(loop, chosen)

    def _start(self, loop: asyncio.AbstractEventLoop, rows: list[_Waiting[RequestT]]) -> None:
        for waiting in rows:
            waiting.is_started = True
        try:
            decoding = self._engine.start([w.request for w in rows], [w.max_answer_tokens for w in rows], rows)
        except Exception as error:
            self._fail(loop, rows, error)
        else:
            self._decodings.append((decoding, rows))

    def _take_decodings(self) -> list[tuple[Decoding, list[_Waiting[RequestT]]]]:
        """Return everything that decodes, without those that nobody waits for, the old ones as one."""
        running: list[tuple[Decoding, list[_Waiting[RequestT]]]] = []
        old: list[tuple[Decoding, list[_Waiting[RequestT]]]] = []
        for decoding, rows in self._decodings:
            given_up = [w for w in rows if w.is_given_up]
            if given_up:
                self._engine.drop(decoding, given_up)
            if len(given_up) < len(rows):
                live = [w for w in rows if w not in given_up]
                (old if decoding.num_steps >= _YOUNG_STEPS else running).append((decoding, live))
        self._decodings = []
        if len(old) > 1:
            old = [(self._engine.merge([decoding for decoding, _ in old]), [w for _, rows in old for w in rows])]
        return [*running, *old]

    def _step(self, loop: asyncio.AbstractEventLoop, decoding: Decoding, rows: list[_Waiting[RequestT]]) -> None:
        try:
            ended = self._engine.step(decoding)
        except Exception as error:
            self._fail(loop, rows, error)
            return
        for waiting, answer in ended:
            rows.remove(waiting)
            loop.call_soon_threadsafe(_give, waiting, answer)
        if rows:
            self._decodings.append((decoding, rows))

    def _fail(self, loop: asyncio.AbstractEventLoop, rows: list[_Waiting[RequestT]], error: Exception) -> None:
        """Tell a lone request of its error; of several one may be at fault, so each is tried again alone."""
        if len(rows) == 1:
            loop.call_soon_threadsafe(_refuse, rows[0], error)
        else:
            self._alone += rows


def _give(waiting: _Waiting[Any], answer: Answer) -> None:
    if not waiting.answer.done():
        waiting.answer.set_result(answer)


def _refuse(waiting: _Waiting[Any], error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)


def choose(lengths: Sequence[int], max_size: int, max_tokens: int) -> list[int]:
    """Choose the next batch from what waits, oldest first; return positions.

    The oldest always goes, so nothing starves. The others join in order of how similar their length is to it, while
    the batch padded to its longest has at most ``max_tokens`` tokens and is at most half padding.
    """
    oldest = lengths[0]
    by_similarity = sorted(range(1, len(lengths)), key=lambda i: (abs(lengths[i] - oldest), i))
    batch, longest, total = [0], oldest, oldest
    for i in by_similarity:
        if len(batch) == max_size:
            break
        padded = (len(batch) + 1) * max(longest, lengths[i])
        if padded > max_tokens or padded > 2 * (total + lengths[i]):
            continue
        batch.append(i)
        longest = max(longest, lengths[i])
        total += lengths[i]
    return batch
