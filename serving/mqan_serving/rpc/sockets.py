"""An end to the sockets of a server that offers none that callers understand.

gRPC's core cancels the calls that reach it while it stops, as if their callers had gone. A connection that is closed
tells them what is so: the server is not there any more, ask another.
"""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")


def refuse_connections(port: int) -> None:
    """Let the kernel refuse new connections to a port that this process listens on."""
    for each in _sockets_of(port):
        if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            each.shutdown(socket.SHUT_RDWR)


def end_connections(port: int) -> None:
    """Close the connections to a port of this process, after what has been sent on them."""
    for each in _sockets_of(port):
        with suppress(OSError):  # its peer was faster
            each.shutdown(socket.SHUT_RDWR)


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
