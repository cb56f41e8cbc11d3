"""Who is inside the server: how many and how much to read at most, and since when."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from mqan_serving.contract.errors import ServingError

_RETRY_AFTER_S = 1
_MEASURED = 32  # readings that are remembered
_LEAST_MEASURED = 256  # pieces of one that says how fast more are read


class Pace:
    """How fast the engine reads: as fast as in the best of its last readings, for a machine may be busy for a while."""

    def __init__(self, num_threads: int = 1) -> None:
        self._num_threads = num_threads
        self._measured: deque[float] = deque(maxlen=_MEASURED)

    def note(self, num_pieces: int, seconds: float) -> None:
        """Take a reading into account, from any thread."""
        if num_pieces >= _LEAST_MEASURED and seconds > 0:
            self._measured.append(num_pieces / seconds)

    def most_in(self, seconds: float) -> float:
        """Return how many pieces are read in a time; any number, as far as is known before the first reading."""
        return max(self._measured.copy(), default=math.inf) * self._num_threads * seconds


class Admission:
    """Bounds how many requests are inside the server at once and what they have to read in a time; knows the oldest."""

    def __init__(self, max_requests: int, pace: Pace, timeout_s: float) -> None:
        self.max_requests = max_requests
        self._pace = pace
        self._timeout_s = timeout_s
        self._num_pieces = 0
        self._begun: dict[object, float] = {}  # in order
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def num_requests(self) -> int:
        """Requests inside."""
        return len(self._begun)

    @property
    def oldest_s(self) -> float:
        """Seconds since the oldest request came in; 0 where there is none."""
        return time.monotonic() - next(iter(self._begun.values())) if self._begun else 0.0

    def has_room(self, num_pieces: int) -> bool:
        """Return whether a request may come in that has so many pieces to read; one alone always may."""
        most = self._pace.most_in(self._timeout_s)
        return self.num_requests < self.max_requests and (not self._begun or self._num_pieces + num_pieces <= most)

    @contextmanager
    def admit(self, num_pieces: int) -> Iterator[None]:
        """Count a request in, and out again at the end; raise ``ServingError`` if the server is full."""
        if not self.has_room(num_pieces):
            raise ServingError("overloaded", "The server is full.", retry_after_s=_RETRY_AFTER_S)
        request = object()
        self._begun[request] = time.monotonic()
        self._num_pieces += num_pieces
        try:
            yield
        finally:
            del self._begun[request]
            self._num_pieces -= num_pieces
            self._wake_next()

    async def wait(self, num_pieces: int) -> None:
        """Return when there is room; who waits is woken in turn, and may find that another was faster."""
        if self.has_room(num_pieces):
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
