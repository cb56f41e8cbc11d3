"""Gather while busy: requests queue while the engine works, and what has queued becomes the next batch.

No request waits for others to come, no batch is smaller than it could be, and the event loop is never blocked: the
engine runs on one thread of its own. Answers do not depend on the batch they are given in, so batches are formed for
speed alone: the oldest request always goes, joined by those of the most similar length while the padded batch stays
within a budget of tokens.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from mqan_core.answer import Answer
from mqan_serving.errors import ServingError
from mqan_serving.validation import ReadRequest

RequestT = TypeVar("RequestT", bound=ReadRequest)

AnswerBatch = Callable[[Sequence[RequestT], Sequence[int]], list[Answer]]

_RETRY_AFTER_S = 1


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


class Batcher(Generic[RequestT]):
    """Turns single requests into batches.

    Args:
        answer_batch: answers a batch; blocking; called on the executor, one call at a time.
        executor: a pool of one thread.
        max_batch_size: most requests of a batch.
        max_batch_tokens: most tokens of a batch, padding included; a longer request goes alone.
    """

    def __init__(
        self, answer_batch: AnswerBatch[RequestT], executor: Executor, *, max_batch_size: int, max_batch_tokens: int
    ) -> None:
        self._answer_batch = answer_batch
        self._executor = executor
        self._max_batch_size = max_batch_size
        self._max_batch_tokens = max_batch_tokens
        self._queue: dict[_Waiting[RequestT], None] = {}  # in order of arrival; a dict, to drop from its middle
        self._arrived = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    @property
    def num_waiting(self) -> int:
        """Requests that wait for a batch."""
        return len(self._queue)

    @property
    def is_alive(self) -> bool:
        """Whether batches are being formed."""
        return self._worker is None or not self._worker.done()

    async def answer(self, request: RequestT, max_answer_tokens: int) -> Answer:
        """Answer one request in whatever batch comes next.

        A caller that goes away (cancels) before its batch is formed costs nothing more.
        """
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="mqan-batcher")
        num_tokens = request.num_context_tokens + request.num_question_tokens
        waiting = _Waiting(request, max_answer_tokens, num_tokens, asyncio.get_running_loop().create_future())
        self._queue[waiting] = None
        self._arrived.set()
        try:
            return await waiting.answer
        finally:
            self._queue.pop(waiting, None)

    async def close(self) -> None:
        """Stop forming batches; whoever still waits is told that the server stops."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        for waiting in list(self._queue):
            if not waiting.answer.done():
                waiting.answer.set_exception(ServingError("unavailable", "The server is stopping."))
        self._queue.clear()

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            batch = self._take_batch()
            if not batch:
                self._arrived.clear()
                continue
            await self._run(batch)

    def _take_batch(self) -> list[_Waiting[RequestT]]:
        waiting = [w for w in self._queue if not w.answer.done()]
        if not waiting:
            return []
        batch = choose([w.num_tokens for w in waiting], self._max_batch_size, self._max_batch_tokens)
        chosen = [waiting[i] for i in batch]
        for w in chosen:
            del self._queue[w]
        return chosen

    async def _run(self, batch: list[_Waiting[RequestT]]) -> None:
        loop = asyncio.get_running_loop()
        requests = [w.request for w in batch]
        limits = [w.max_answer_tokens for w in batch]
        try:
            answers = await loop.run_in_executor(self._executor, self._answer_batch, requests, limits)
            if len(answers) != len(batch):
                raise RuntimeError(f"the engine gave {len(answers)} answers to {len(batch)} requests")
        except asyncio.CancelledError:
            for w in batch:
                if not w.answer.done():
                    w.answer.set_exception(ServingError("unavailable", "The server is stopping."))
            raise
        except Exception as error:
            if len(batch) == 1:
                if not batch[0].answer.done():
                    batch[0].answer.set_exception(error)
                return
            for w in batch:  # one of them may be at fault: the others shall not suffer for it
                if not w.answer.done():
                    await self._run([w])
            return
        for w, answer in zip(batch, answers, strict=True):
            if not w.answer.done():
                w.answer.set_result(answer)


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
