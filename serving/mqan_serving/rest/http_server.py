"""A server of HTTP in a process that does more than that."""

import asyncio
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from mqan_serving.observability.metrics import Metrics
from mqan_serving.rest.acceptor import Acceptor
from mqan_serving.rest.gateway import refuse_unread
from mqan_serving.rest.http_protocol import BoundedProtocol, Bounds
from mqan_serving.settings import Settings

_LAST_REQUESTS_S = 0.1  # for what is being sent on connections that were opened before new ones are refused
_LOOK_PERIOD_S = 0.25


class HttpServer(uvicorn.Server):
    """A uvicorn server that leaves signals to the process it is a part of, and resets no request at its end.

    Args:
        app: what it serves.
        settings: bounds on connections.
        metrics: where requests are counted that the application never sees.
        grace_s: how long requests in progress may take at its end.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, grace_s: float) -> None:
        bounds = Bounds(
            max_connections=settings.max_connections,
            max_head_bytes=2 * settings.max_metadata_bytes,  # enough above the limit to explain it to the caller
            max_unread_bytes=max(settings.max_request_bytes, 256 * 1024),
            request_timeout_s=settings.request_timeout_s,
        )
        protocol: Any = partial(BoundedProtocol, bounds, partial(refuse_unread, metrics=metrics))
        config = uvicorn.Config(
            app,
            loop="none",  # the one that runs
            http=protocol,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,  # as all others, see observability/logs.py
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=int(grace_s) + 1,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on listening sockets until ``should_exit`` is set, and close the connections that are late."""
        looking = asyncio.create_task(self._close_late_ones(), name="mqan-connections")
        try:
            await super().serve(sockets)
        finally:
            looking.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections of the listening sockets."""
        protocol: Any = self.config.http_protocol_class
        create = partial(protocol, config=self.config, server_state=self.server_state, app_state={})
        self.servers = []
        self._acceptors = [Acceptor(listener, create) for listener in sockets or []]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new connections, answer what comes on those that are open, then close them."""
        for acceptor in self._acceptors:
            await acceptor.close()
        await asyncio.sleep(_LAST_REQUESTS_S)
        await super().shutdown()

    async def _close_late_ones(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_PERIOD_S)
            now = time.monotonic()
            for connection in list(self.server_state.connections):
                if isinstance(connection, BoundedProtocol):
                    connection.close_if_late(now)


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
