"""HTTP/1.1 of a connection, with a bound on everything that a peer may send or leave unsent.

uvicorn hands a request on when its head is complete, and keeps what comes until then, and its trailers, without a
bound. Here neither may have more bytes than a limit, each stage of a connection has a deadline, and what is refused
before there is a request is answered, counted and logged like any other refusal.

Without it 100 MB of trailers made 1.2 GB, before any key was asked for: ``tests/serving/test_connections.py``.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import httptools
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mqan_core.errors import InputError
from mqan_serving.rest.gateway import FAULT
from mqan_serving.service.errors import ServingError, refuse

_HEAD_S = 10.0
_IDLE_S = 5.0  # between two requests
_LINGER_S = 1.0  # for a peer to read why its connection ends
_LAST_REQUEST_S = 0.2  # for what was sent before its sender knew that the server ends
_SLACK_S = 15.0  # beyond what the application itself allows


class Stage(Enum):
    """The next thing that a connection waits for."""

    HEAD = auto()
    BODY = auto()
    RESPONSE = auto()
    IDLE = auto()  # the next request
    END = auto()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the connections of a server.

    Attributes:
        max_head_bytes: most bytes of a request line and headers, of trailers, and between two bytes of a body.
        max_unread_bytes: most that a peer may send after its refusal until it reads that.
        request_timeout_s: longest time for a body, and for a response.
    """

    max_connections: int
    max_head_bytes: int
    max_unread_bytes: int
    request_timeout_s: float


class BoundedProtocol(HttpToolsProtocol):
    """A connection. One that is late is closed by ``close_if_late``, which its server calls now and then.

    Args:
        bounds: what it may take.
        refuse: counts and logs what is refused before there is a request, and returns the response.
        uvicorn: what uvicorn gives.
    """

    def __init__(self, bounds: Bounds, refuse: Callable[[Exception], Response], **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._bounds = bounds
        self._refuse = refuse
        self._num_idle_bytes = 0  # since the last that moved a request on
        self._is_deaf = False
        self._stage = Stage.HEAD
        self._deadline = 0.0
        self.entered = 0.0
        """When it began to wait, on the monotonic clock."""

    @property
    def stage(self) -> Stage:
        """The stage that it is in."""
        return self._stage

    def connection_made(self, transport: Any) -> None:
        """Begin, if there is room: the connection that has waited longest for its peer makes some."""
        super().connection_made(transport)
        self._enter(Stage.HEAD, _HEAD_S)
        if len(self.connections) > self._bounds.max_connections and not self._make_room():
            self._give_up(ServingError("overloaded", "The server has no room for a connection.", retry_after_s=1))

    def data_received(self, data: bytes) -> None:
        """Read what has come, a piece at a time."""
        size = self._bounds.max_head_bytes
        for begin in range(0, len(data), size):
            if self._is_deaf:
                self._leave_unread(len(data) - begin)
                return
            piece = data if len(data) <= size else data[begin : begin + size]
            self._num_idle_bytes += len(piece)
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade:  # to nothing that is spoken here: the request is answered as it is
                self._is_deaf = True
                self.cycle.keep_alive = False
            except httptools.HttpParserError:
                if not self._is_deaf:
                    message = "The request is not HTTP/1.1."
                    self._give_up(refuse("malformed_request", "request", message, "Send HTTP/1.1 requests."))
            else:
                if self._num_idle_bytes > size:
                    message = f"The request line, headers or trailers have more than the {size} bytes that are read."
                    self._give_up(refuse("metadata_too_large", "metadata", message))

    def on_message_begin(self) -> None:
        """Begin a request. One that does not wait for the response before it will not be answered."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._is_deaf = True
            self.cycle.keep_alive = False
            raise ValueError("pipelined")  # ends this reading
        super().on_message_begin()
        self._num_idle_bytes = 0
        self._enter(Stage.HEAD, _HEAD_S)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are none."""
        if self._stage is Stage.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand the request on."""
        self._num_idle_bytes = 0
        super().on_headers_complete()
        self.cycle.transport = _Ending(self)  # type: ignore[assignment]
        self._enter(Stage.BODY, self._bounds.request_timeout_s + _SLACK_S)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._num_idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the response, or for the next request where it has left already."""
        super().on_message_complete()
        if self._stage is Stage.BODY:
            self._enter(Stage.RESPONSE, self._bounds.request_timeout_s + _SLACK_S)
            if self.cycle.response_complete:
                self._enter(Stage.IDLE, _IDLE_S)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one, which nobody reads."""
        self.server_state.total_requests += 1
        if self._stage is Stage.END or self.transport.is_closing():
            return
        self.flow.resume_reading()
        self._enter(Stage.IDLE if self._stage is Stage.RESPONSE else Stage.BODY, _IDLE_S)

    def shutdown(self) -> None:
        """End after the response in progress; a request that is on its way, in whole or in part, gets a moment."""
        if self._stage is Stage.RESPONSE:
            self.cycle.keep_alive = False
        elif self._stage is not Stage.END:
            longest_s = _LAST_REQUEST_S if self._stage is Stage.IDLE else _LINGER_S
            self._deadline = min(self._deadline, time.monotonic() + longest_s)

    def end(self) -> None:
        """Close the connection, but let the peer read the last response even if it is still sending."""
        if self._stage is Stage.END:
            return
        is_heard = self._stage in (Stage.RESPONSE, Stage.IDLE) and not self._is_deaf
        self._is_deaf = True
        self._enter(Stage.END, _LINGER_S)
        if is_heard or not self.transport.can_write_eof():
            self.transport.close()
        elif not self.transport.is_closing():
            self.flow.resume_reading()
            self.transport.write_eof()

    def close_if_late(self, now: float) -> None:
        """Close the connection if its deadline is over; an incomplete head is answered.

        Args:
            now: on the monotonic clock.
        """
        if now < self._deadline:
            return
        if self._stage is Stage.HEAD and self._num_idle_bytes:
            self._give_up(ServingError("request_too_slow", "The request line and headers did not come in time."))
        elif self._stage in (Stage.HEAD, Stage.IDLE):
            self.end()
        else:
            self.transport.abort()

    def _enter(self, stage: Stage, longest_s: float) -> None:
        self._stage = stage
        self.entered = time.monotonic()
        self._deadline = self.entered + longest_s

    def _give_up(self, error: InputError | ServingError) -> None:
        """Refuse what comes: by the request that it belongs to, where there is one."""
        cycle = self.cycle
        self._is_deaf = True
        if self._stage is Stage.BODY and cycle is not None and not cycle.response_complete:
            cycle.scope["state"][FAULT] = error
            cycle.keep_alive = False
            cycle.more_body = False
            cycle.message_event.set()
            return
        if self._stage is Stage.HEAD:
            response = self._refuse(error)
            response.headers["connection"] = "close"
            lines = [STATUS_LINE[response.status_code]]
            lines += [b"%s: %s\r\n" % header for header in response.raw_headers]
            self.transport.write(b"".join([*lines, b"\r\n", bytes(response.body)]))
        self.end()

    def _leave_unread(self, num_bytes: int) -> None:
        """Throw away what a peer still sends, who may read the response afterwards."""
        self._num_idle_bytes += num_bytes
        if self._num_idle_bytes > self._bounds.max_unread_bytes:
            self.transport.abort()

    def _make_room(self) -> bool:
        """Close the connection that has kept the server waiting longest; return whether there is one."""
        for stages in ((Stage.IDLE, Stage.HEAD, Stage.END), (Stage.BODY,)):
            waiting = [c for c in self.connections if c is not self and getattr(c, "stage", None) in stages]
            if waiting:
                oldest: Any = min(waiting, key=lambda c: c.entered)  # type: ignore[union-attr]
                self.connections.discard(oldest)
                oldest.transport.abort()
                return True
        return False


class _Ending:
    """The transport that a request gets: it ends the connection so that the response is read."""

    def __init__(self, connection: BoundedProtocol) -> None:
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing
        self.close = connection.end
