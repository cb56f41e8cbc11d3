"""Who is inside the server: how many and how much to read at most, since when, and whose long text is read next."""

import asyncio
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import PriorityQueue
from typing import Any, TypeVar

from mqan_serving.contract.errors import ServingError

_MEASURED = 32  # readings that are remembered
_LEAST_MEASURED = 256  # of work in one that says how fast more is read
_SHARE_READING = 0.8  # of an answer's time; its steps and words take the rest
_S_PER_CHAR = 1e-5  # by which a text's turn comes later: 10 s for 1 MiB, which takes 0.1 s to read

ResultT = TypeVar("ResultT")


def full() -> ServingError:
    return ServingError("overloaded", "The server is full.", retry_after_s=1)


class Pace:
    """How fast the engine reads: as fast as in the best of its last readings, for a machine may be busy for a while."""

    def __init__(self, num_threads: int = 1) -> None:
        self._num_threads = num_threads
        self._measured: deque[float] = deque(maxlen=_MEASURED)

    def note(self, work: int, seconds: float) -> None:
        if work >= _LEAST_MEASURED and seconds > 0:
            self._measured.append(work / seconds)

    def most_in(self, seconds: float) -> float:
        """Return how much work is answered in a time; any, as far as is known before the first reading."""
        return max(self._measured.copy(), default=math.inf) * _SHARE_READING * self._num_threads * seconds


class Admission:
    """Bounds how many requests are inside the server at once and what they have to read in a time; knows the oldest."""

    def __init__(self, max_requests: int, pace: Pace, timeout_s: float) -> None:
        self.max_requests = max_requests
        self._pace = pace
        self._timeout_s = timeout_s
        self._work = 0
        self._begun: dict[object, float] = {}  # in order
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def num_requests(self) -> int:
        return len(self._begun)

    @property
    def oldest_s(self) -> float:
        """Seconds since the oldest request came in; 0 where there is none."""
        return time.monotonic() - next(iter(self._begun.values())) if self._begun else 0.0

    def has_room(self, work: int) -> bool:
        """Return whether a request may come in with so much work; one alone always may."""
        most = self._pace.most_in(self._timeout_s)
        return self.num_requests < self.max_requests and (not self._begun or self._work + work <= most)

    @contextmanager
    def admit(self, work: int) -> Iterator[None]:
        """Count a request in, and out again at the end; raise ``ServingError`` if the server is full."""
        if not self.has_room(work):
            raise full()
        request = object()
        self._begun[request] = time.monotonic()
        self._work += work
        try:
            yield
        finally:
            del self._begun[request]
            self._work -= work
            self._wake_next()

    async def wait(self, work: int) -> None:
        """Return when there is room; who waits is woken in turn, and may find that another was faster."""
        if self.has_room(work):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was woken, and will not go in
                self._wake_next()
            raise

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return


class FairReader:
    """Reads texts on a thread of its own, the shorter ones first.

    A text's turn is by when it came and how long it is. A flood of texts of the largest size so holds up an ordinary
    long one for as long as one of them takes; and since a text that comes much later never goes first, however short,
    each has its turn in the end.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mqan-reader")
        self._waiting: PriorityQueue[tuple[float, int, Future[Any], Callable[[], Any]]] = PriorityQueue()
        self._numbers = itertools.count()

    async def read(self, num_chars: int, call: Callable[[], ResultT]) -> ResultT:
        """Return what a call returns that reads so many characters; who is cancelled before its turn costs nothing."""
        done: Future[ResultT] = Future()
        self._waiting.put((time.monotonic() + num_chars * _S_PER_CHAR, next(self._numbers), done, call))
        self._thread.submit(self._read_next)
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _read_next(self) -> None:
        *_, done, call = self._waiting.get()
        if done.set_running_or_notify_cancel():
            try:
                done.set_result(call())
            except BaseException as error:
                done.set_exception(error)
