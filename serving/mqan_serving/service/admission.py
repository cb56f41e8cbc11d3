"""Who is inside the server: how many at most, and since when."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from mqan_serving.service.errors import ServingError

_RETRY_AFTER_S = 1


class Admission:
    """Bounds how many requests are inside the server at once, and knows the oldest.

    Args:
        max_requests: most of them.
    """

    def __init__(self, max_requests: int) -> None:
        self.max_requests = max_requests
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

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Count a request in, and out again at the end.

        Raises:
            ServingError: the server is full.
        """
        if self.num_requests >= self.max_requests:
            raise ServingError("overloaded", "The server is full.", retry_after_s=_RETRY_AFTER_S)
        request = object()
        self._begun[request] = time.monotonic()
        try:
            yield
        finally:
            del self._begun[request]
            self._wake_next()

    async def wait(self) -> None:
        """Return when there is room; who waits is woken in turn, and may find that another was faster."""
        if self.num_requests < self.max_requests:
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
