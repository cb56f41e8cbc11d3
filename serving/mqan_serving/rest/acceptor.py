"""Takes the connections of a listening socket, so that none is reset when that is closed.

Without it a request that was being sent while the server ended had its connection reset, now and then, instead of an
answer of 503: ``tests/serving/test_ending.py``.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

_AT_ONCE = 64  # connections taken before the event loop does anything else
_RETRY_S = 0.1  # while the system has no file for another one


class Acceptor:
    """Takes connections from now on; belongs to the event loop that runs.

    An event loop's own server leaves those in the lurch that it is just about to take when it is closed.

    Args:
        listener: a listening socket, which is closed at the end.
        create: makes the protocol of a connection.
    """

    def __init__(self, listener: socket.socket, create: Callable[[], asyncio.Protocol]) -> None:
        self._listener = listener
        self._create = create
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        self._begin()

    async def close(self) -> None:
        """Take those that wait, and let the kernel refuse all that come later."""
        self._loop.remove_reader(self._listener.fileno())
        if self._retry is not None:
            self._retry.cancel()
        with suppress(OSError):  # none is left, or no file
            while True:
                self._open(self._listener.accept()[0])
        self._listener.close()
        await asyncio.gather(*self._opening)

    def _begin(self) -> None:
        self._loop.add_reader(self._listener.fileno(), self._take)

    def _take(self) -> None:
        try:
            for _ in range(_AT_ONCE):
                self._open(self._listener.accept()[0])
        except (BlockingIOError, ConnectionAbortedError, InterruptedError):
            return
        except OSError:
            self._loop.remove_reader(self._listener.fileno())
            self._retry = self._loop.call_later(_RETRY_S, self._begin)

    def _open(self, taken: socket.socket) -> None:
        taken.setblocking(False)
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._connect(taken))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(self, taken: socket.socket) -> None:
        with suppress(OSError):  # its peer has gone
            await self._loop.connect_accepted_socket(self._create, taken)
