"""A server of HTTP in a process that does more than that."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

_LAST_REQUESTS_S = 0.1  # for what is being sent on connections that were opened before new ones are refused


class HttpServer(uvicorn.Server):
    """A uvicorn server that leaves signals to the process it is a part of, and resets no request at its end.

    Args:
        app: what it serves.
        grace_s: how long requests in progress may take at its end.
    """

    def __init__(self, app: ASGIApp, grace_s: float) -> None:
        config = uvicorn.Config(
            app,
            loop="none",  # the one that runs
            http="httptools",
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=int(grace_s) + 1,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new connections, answer what comes on those that are open, then close them."""
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        await asyncio.sleep(_LAST_REQUESTS_S)
        await super().shutdown(sockets)


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket.

    Args:
        host: address.
        port: port.
        shared: whether other processes of this user may listen there, too; any of them gets a connection.

    Raises:
        OSError: the port is taken or not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener
