"""Who is inside the server: how many at most, and since when."""

import time
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
