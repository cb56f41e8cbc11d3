"""An HTTP/1.1 server inside a larger process, with bounds on its connections.

uvicorn reads request heads and trailers of any size, and waits for them for ever. Without the bounds here, 100 MB of
trailers took 1.2 GB of memory before any key was asked for: ``tests/serving/test_connections.py``.
"""

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mqan_core.errors import InputError
from mqan_serving.checks import bind
from mqan_serving.contract.errors import ServingError, refuse
from mqan_serving.observability.metrics import Metrics
from mqan_serving.rest.gateway import refuse_unread
from mqan_serving.settings import Settings

_HEAD_S = 10.0
_IDLE_S = 5  # between two requests
_LINGER_S = 1.0  # for a peer to read why its connection ends
_MOST_UNREAD_BYTES = 1024 * 1024
_SLACK_S = 15.0  # beyond what the application itself allows for body and answer


class BoundedProtocol(HttpToolsProtocol):
    """A connection whose head and trailers have a size and a deadline."""

    def __init__(self, settings: Settings, refuse: Callable[[Exception], Response], **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._max_connections = settings.max_connections
        self._max_bytes = 2 * settings.max_metadata_bytes  # enough above the limit to explain it to the caller
        self._request_s = 2 * settings.request_timeout_s + _SLACK_S
        self._refuse = refuse
        self._num_bytes = 0  # since the last event of the parser
        self._is_refused = False
        self._awaits_head = True
        self._waits_since = 0.0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Admit the connection; if there are too many, in the place of the one that has been idle for longest."""
        super().connection_made(transport)
        self._arm(_HEAD_S)
        if len(self.connections) > self._max_connections:
            others = [c for c in self.connections if isinstance(c, BoundedProtocol) and c is not self]
            idle = min((c for c in others if c._awaits_head), key=lambda c: c._waits_since, default=None)
            if idle is None:
                self._end(ServingError("overloaded", "The server has no room for a connection.", retry_after_s=1))
            else:
                idle.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def data_received(self, data: bytes) -> None:
        for begin in range(0, len(data), self._max_bytes):
            if self._is_refused:  # the peer may send on before it reads the response, but not for ever
                self._num_bytes += len(data)
                if self._num_bytes > _MOST_UNREAD_BYTES:
                    self.transport.abort()
                return
            if self.transport.is_closing():
                return
            part = data[begin : begin + self._max_bytes]
            self._num_bytes += len(part)
            super().data_received(part)
            if self._num_bytes > self._max_bytes:
                message = f"The request line, headers or trailers have more than {self._max_bytes} bytes."
                self._end(refuse("metadata_too_large", "metadata", message))

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; the parser cannot go on after it."""
        self._end(refuse("malformed_request", "request", "The request is not HTTP/1.1.", "Send HTTP/1.1 requests."))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._num_bytes = 0
        self._awaits_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._awaits_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._num_bytes = 0
        self._awaits_head = False
        self._arm(self._request_s)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._num_bytes = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._arm(_HEAD_S)
        self._awaits_head = True
        super().on_response_complete()

    def _arm(self, longest_s: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._waits_since = self.loop.time()
        self._deadline = self.loop.call_later(longest_s, self._end_late)

    def _end_late(self) -> None:
        if self._awaits_head and self._num_bytes and not self._is_refused:
            self._end(ServingError("request_too_slow", "The request line and headers did not come in time."))
        else:
            self.transport.abort()

    def _end(self, error: InputError | ServingError) -> None:
        """Refuse what comes, unless a response is on its way, and give the peer a moment to read that."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        is_responding = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if is_responding or (self.cycle is not None and not self._awaits_head and self.cycle.response_complete):
            self.transport.close()
            return
        response = self._refuse(error)
        response.headers["connection"] = "close"
        headers = [b"%s: %s\r\n" % header for header in response.raw_headers]
        self.transport.write(b"".join([STATUS_LINE[response.status_code], *headers, b"\r\n", bytes(response.body)]))
        self.transport.write_eof()
        self._arm(_LINGER_S)


class HttpServer(uvicorn.Server):
    """A uvicorn server inside a process, which has the signals; what is in progress may take ``grace_s`` in the end."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, grace_s: float) -> None:
        protocol: Any = partial(BoundedProtocol, settings, partial(refuse_unread, metrics=metrics))
        config = uvicorn.Config(
            app,
            loop="none",  # the one that runs
            http=protocol,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,  # as all others, see observability/logs.py
            log_level="error",
            server_header=False,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=int(grace_s) + 1,
        )
        super().__init__(config)
        self._serving: asyncio.Task[None] | None = None

    async def open(self, listener: socket.socket) -> None:
        self._serving = asyncio.create_task(self.serve([listener]), name="mqan-http")
        while not self.started and not self._serving.done():
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        self.should_exit = True
        if self._serving is not None:
            await self._serving

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket; with ``shared`` other processes of this user may listen on the port, too."""
    listener = bind(host, port, (socket.SO_REUSEADDR, *((socket.SO_REUSEPORT,) if shared else ())))
    try:
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener
