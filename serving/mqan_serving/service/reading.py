"""The order in which long texts are read: off the event loop, one at a time, and none at the cost of all others."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

ResultT = TypeVar("ResultT")

_S_PER_CHAR = 1e-5  # by which a text's turn comes later: 10 s for 1 MiB, which takes 0.1 s to read


class FairReader:
    """Reads texts on a thread of its own, the shorter ones first.

    A text's turn is by when it came and how long it is. A flood of texts of the largest size so holds up an ordinary
    long one for as long as one of them takes; and since a text that comes much later never goes first, however short,
    each has its turn in the end.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mqan-reader")
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []  # a heap
        self._numbers = itertools.count()
        self._is_busy = False

    async def read(self, num_chars: int, call: Callable[[], ResultT]) -> ResultT:
        """Return what a call returns that reads so many characters; who is cancelled before its turn costs nothing."""
        await self._wait_for_turn(num_chars)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        finally:
            self._pass_on()

    def close(self) -> None:
        """Read no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _wait_for_turn(self, num_chars: int) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (monotonic() + num_chars * _S_PER_CHAR, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was given, and nobody takes it
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._is_busy = False
