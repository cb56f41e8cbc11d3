"""An end to the sockets of a server that offers none that callers understand.

gRPC's core cancels the calls that reach it while it stops, as if their callers had gone. A connection that goes away
tells them what is so: the server is not there any more, ask another.

Without it one in 20 ends under load broke a call, with it none of 35: ``tests/serving/test_ending.py`` and, with the
server as a process, ``tests/fault``.
"""

import asyncio
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")
_INFO = struct.Struct("=B43xI4xI")  # of Linux's tcp_info: the state; milliseconds since data were sent, and received
_ESTABLISHED, _NOT_CONNECTED = 1, (7, 10)  # closed, listening
_GOAWAY = struct.pack(">HBBBIII", 0, 8, 7, 0, 0, 0, 0)  # the last stream that was looked at, and the error: none
_QUIET_MS = 30
_PERIOD_S = 0.02
_LONGEST_S = 1.0


def refuse_connections(port: int) -> None:
    """Let the kernel refuse new connections to a port that this process listens on."""
    for each in _sockets_of(port):
        if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            each.shutdown(socket.SHUT_RDWR)


async def end_connections(port: int) -> None:
    """Close the connections to a port of this process, each when it has been quiet for a moment.

    Each is told first that calls under way will not be looked at (RFC 9113, section 6.8): clients then ask another
    server by themselves. Who never pauses is cut off after a second.
    """
    last_chance = time.monotonic() + _LONGEST_S
    is_over = False
    while not is_over:
        is_over, num_open = time.monotonic() > last_chance, 0
        for each in _sockets_of(port):
            with suppress(OSError):  # its peer was faster
                state, sent_ms, received_ms = _INFO.unpack(
                    each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
                )
                num_open += state not in _NOT_CONNECTED
                if is_over:
                    each.shutdown(socket.SHUT_RDWR)
                elif state == _ESTABLISHED and received_ms >= max(_QUIET_MS, sent_ms):
                    each.send(_GOAWAY, socket.MSG_DONTWAIT)
                    each.shutdown(socket.SHUT_WR)
        if not num_open:
            return
        await asyncio.sleep(_PERIOD_S)


def _sockets_of(port: int) -> Iterator[socket.socket]:
    """Yield the TCP sockets of this process at a port of its own."""
    for name in os.listdir(_OPEN_FILES):
        try:
            if not stat.S_ISSOCK(os.stat(int(name)).st_mode):
                continue
            duplicate = os.dup(int(name))
        except OSError:  # closed since
            continue
        with socket.socket(fileno=duplicate) as found, suppress(OSError):
            is_tcp = found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM
            if is_tcp and found.getsockname()[1] == port:
                yield found
