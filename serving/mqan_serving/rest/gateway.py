"""The gate of HTTP: an id for every request, the host it names, the API key, refusals that need no body, bounds on
how a body comes, the last resort for faults; and answers as server-sent events.
"""

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from fastapi.responses import StreamingResponse
from pydantic_core import to_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mqan_serving.contract.errors import Failure, ServingError, describe, refuse
from mqan_serving.formats.foreign import body_of
from mqan_serving.keys import ApiKeys
from mqan_serving.observability.logs import MODEL, RequestLog, Told, choose_request_id
from mqan_serving.observability.metrics import CANCELLED, METHODS, OK, Metrics
from mqan_serving.rest.compression import ENCODING, Decompressed
from mqan_serving.service.validation import check_metadata
from mqan_serving.settings import Settings

_REQUEST_ID = "x-request-id"
_HEALTH = "Check"  # is for probes, which have no key
_OPEN_PATHS = frozenset({"/", "/docs", "/openapi.json"})  # say nothing that is not public
METRICS_PATH = "/metrics"
ADMIN = "/admin/"
_HELD_BODIES = 64  # incomplete bodies of the largest size that are held at once

MEDIA_TYPE: Final = "text/event-stream"
# What lies between server and client is to hand each event on as it comes; the second is nginx's.
_HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}


def failure_response(failure: Failure, log: RequestLog, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the one error body of the API, and note in its log entry that the request ends with it."""
    log.code = failure.code
    all_headers = dict(headers or {})
    if failure.retry_after_s is not None:
        all_headers["retry-after"] = str(failure.retry_after_s)
    if failure.code == "unauthenticated":
        all_headers["www-authenticate"] = "Bearer"
    if failure.code in ("unavailable", "request_too_slow"):
        all_headers["connection"] = "close"  # the next attempt shall find another server, and the rest is not awaited
    status, body = body_of(log.path, failure) or (failure.kind.http, failure_body(failure, log))
    return JSONResponse(body, status, all_headers)


def failure_body(failure: Failure, log: RequestLog) -> dict[str, Any]:
    return failure.document | {"request_id": log.request_id}


def refuse_unread(error: Exception, metrics: Metrics) -> JSONResponse:
    """Count and log a refusal of what is no request yet, and return the response."""
    log = RequestLog("rest", "other", choose_request_id(None), metrics, {})
    log.log_failure(error)
    log.count()
    return failure_response(describe(error), log, {_REQUEST_ID: log.request_id})


@dataclass
class Gateway:
    """ASGI middleware around the whole application."""

    app: ASGIApp
    routes: Sequence[BaseRoute]  # each names what its requests are counted as
    settings: Settings
    keys: ApiKeys
    admin_keys: ApiKeys
    metrics: Metrics
    echoes_request_id: bool  # Ray Serve does by itself

    def __post_init__(self) -> None:
        self._open_paths = _OPEN_PATHS if self.settings.metrics_need_key else _OPEN_PATHS | {METRICS_PATH}
        self.num_held_bytes = 0  # of bodies that are incomplete

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # is answered as GET is, without the body
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        headers = Headers(scope=scope)
        request_id = choose_request_id(headers.get(_REQUEST_ID))
        method = self._method_of(scope["path"])
        log = RequestLog("rest", method, request_id, self.metrics, headers)
        log.path = scope["path"]
        scope.setdefault("state", {})["log"] = log
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if not log.is_streaming:
                    log.count()
                response_headers = MutableHeaders(scope=message)
                if self.echoes_request_id:
                    response_headers[_REQUEST_ID] = request_id
                if scope["path"] == "/v1/systemone":
                    response_headers["x-typesafe-request-id"] = request_id
                if log.model_header:
                    response_headers[MODEL] = log.model_header
                if log.server_timing:
                    response_headers["server-timing"] = log.server_timing
                response_headers["x-content-type-options"] = "nosniff"
            await send(message)

        body = _Body(receive, self)
        decoded = body.receive
        if _encoding(headers) == ENCODING:
            decoded = Decompressed(body.receive, self.settings.max_request_bytes).receive
        try:
            self._check(scope, headers)
            if method != _HEALTH and scope["path"] not in self._open_paths:
                keys = self.admin_keys if scope["path"].startswith(ADMIN) else self.keys
                log.note_key(name := keys.authenticate(headers.get("authorization")))
                keys.check_rate(name)
            await self.app(scope, decoded, send_with_id)
        except Exception as error:
            log.log_failure(error)
            if not started:
                await failure_response(describe(error), log)(scope, receive, send_with_id)
        finally:
            body.forget()
            if not started and log.code == OK:
                log.code = CANCELLED
            log.count()

    def _method_of(self, path: str) -> str:
        for route in self.routes:
            if isinstance(route, Route) and route.path_regex.match(path):
                return route.name if route.name in METHODS else "other"
        return "other"

    def _check(self, scope: Scope, headers: Headers) -> None:
        target = scope.get("raw_path") or scope["path"].encode()
        check_metadata([(target, scope["query_string"]), *headers.raw], self.settings.max_metadata_bytes)
        check_host(headers, self.settings.allowed_hosts)
        if _encoding(headers) not in ("", "identity", ENCODING):
            message = "The body is encoded in a way that this server does not know; it knows zstd."
            raise refuse("unsupported_encoding", "body", message)
        length = headers.get("content-length", "")
        limit = self.settings.max_request_bytes
        if length.isdecimal() and int(length[:20]) > limit:
            message = f"The request is larger than the {limit} bytes that are accepted."
            raise refuse("request_too_large", "body", message)


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_head


def meant_path(path: str, routes: Iterable[BaseRoute]) -> str | None:
    """Return the path that somebody may have meant who asks at another with the same end."""
    end = path.rstrip("/").rpartition("/")[2]
    known = (route.path for route in routes if isinstance(route, Route) and route.name in METHODS)
    return next((path for path in known if end and path.endswith(f"/{end}")), None)


def _encoding(headers: Headers) -> str:
    return headers.get("content-encoding", "identity").strip().lower()


def check_host(headers: Headers, allowed: tuple[str, ...]) -> None:
    """Refuse other names than the server's: a page whose name was made to mean this address asks by its own."""
    given = headers.getlist("host")
    if allowed and not (len(given) == 1 and is_allowed_host(given[0], allowed)):
        raise refuse("unknown_host", "host", "The request names a host that is not this server.")


def is_allowed_host(given: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a ``Host`` header is of these names, or an address: no other page can have that for a name."""
    name, colon, port = given.rpartition(":")
    if not colon or not port.isdecimal():
        name = given
    name = name.lower().removesuffix(".")
    if name in allowed or name == "localhost":
        return True
    try:
        ipaddress.ip_address(name[1:-1] if name.startswith("[") and name.endswith("]") else name)
    except ValueError:
        return False
    return True


class _Body:
    """The body of one request as it comes: whole within the time of a request, and not beside too many others."""

    def __init__(self, receive: Receive, gateway: Gateway) -> None:
        self._receive = receive
        self._deadline = asyncio.get_running_loop().time() + gateway.settings.request_timeout_s
        self._gateway = gateway
        self._num_bytes = 0
        self._is_whole = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise ServingError("request_too_slow", "The body of the request did not come in time.") from None
        num_bytes = len(message.get("body", b""))
        self._num_bytes += num_bytes
        self._gateway.num_held_bytes += num_bytes
        if self._gateway.num_held_bytes > _HELD_BODIES * self._gateway.settings.max_request_bytes:
            raise ServingError("overloaded", "The server is reading too many requests.", retry_after_s=1)
        if not message.get("more_body", False):
            self._is_whole = True
            self.forget()
        return message

    def forget(self) -> None:
        self._gateway.num_held_bytes -= self._num_bytes
        self._num_bytes = 0


class EventStream(StreamingResponse):
    """An answer as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    ``word`` comes for each word, ``answer`` at the end with the document of the plain call, ``error`` in its place with
    that of an error. What fails before the first word, or the answer, is told by a status.
    """

    def __init__(self, first: Told, rest: AsyncGenerator[Told, None], log: RequestLog) -> None:
        self._rest = rest
        self._log = log
        log.is_streaming = True
        super().__init__(self._write(first), headers=_HEADERS, media_type=MEDIA_TYPE)

    async def stream_response(self, send: Send) -> None:
        """Send all events; when the caller goes away, which cancels this, the decoding ends at once."""
        try:
            async with aclosing(self._rest):
                await super().stream_response(send)
        finally:
            self._log.log_cancelled()  # does nothing after the last event

    async def _write(self, first: Told) -> AsyncIterator[str]:
        try:
            yield _event(*first)
            async for name, document in self._rest:
                yield _event(name, document)
        except Exception as error:
            self._log.log_failure(error)
            self._log.count()
            yield _event("error", failure_body(describe(error), self._log))


def _event(name: str, document: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {to_json(document).decode()}\n\n"
