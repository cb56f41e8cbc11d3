"""What every HTTP request passes first: an id, the API key, refusals that need no body, the last resort for faults."""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mqan_core.errors import InputError
from mqan_serving.errors import ERRORS, Failure, describe
from mqan_serving.keys import ApiKeys
from mqan_serving.settings import Settings
from mqan_serving.telemetry import RequestRecord, choose_request_id
from mqan_serving.validation import check_metadata

_REQUEST_ID = "x-request-id"
# Health is for probes, which have no key; the others say nothing that is not public.
_OPEN_PATHS = frozenset({"/health/live", "/health/ready", "/", "/docs", "/openapi.json"})


def failure_response(failure: Failure, request_id: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the one error body of the API."""
    all_headers = dict(headers or {})
    if failure.retry_after_s is not None:
        all_headers["retry-after"] = str(failure.retry_after_s)
    if failure.code == "unauthenticated":
        all_headers["www-authenticate"] = "Bearer"
    if failure.code == "unavailable":
        all_headers["connection"] = "close"  # the next attempt shall find another server
    body = {"code": failure.code, "message": failure.message, "hint": failure.hint, "request_id": request_id}
    return JSONResponse(body, failure.kind.http, all_headers)


class Gateway:
    """ASGI middleware around the whole application.

    Args:
        app: the application.
        settings: limits.
        keys: who may ask.
        echoes_request_id: whether responses get the header ``x-request-id``; Ray Serve adds it by itself.
    """

    def __init__(self, app: ASGIApp, settings: Settings, keys: ApiKeys, echoes_request_id: bool) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._echoes_request_id = echoes_request_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = choose_request_id(headers.get(_REQUEST_ID))
        record = RequestRecord("rest", request_id)
        scope.setdefault("state", {})["record"] = record
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                response_headers = MutableHeaders(scope=message)
                if self._echoes_request_id:
                    response_headers[_REQUEST_ID] = request_id
                response_headers["x-content-type-options"] = "nosniff"
            await send(message)

        try:
            self._check(headers)
            if scope["path"] not in _OPEN_PATHS:
                record.note_key(self._keys.authenticate(headers.get("authorization")))
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            record.log_failure(error)
            if not started:
                await failure_response(describe(error), request_id)(scope, receive, send_with_id)

    def _check(self, headers: Headers) -> None:
        check_metadata(headers.raw, self._settings.max_metadata_bytes)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            message = "The body is compressed, which this server does not accept."
            raise InputError("unsupported_encoding", "body", message, ERRORS["unsupported_encoding"].hint)
        length = headers.get("content-length", "")
        limit = self._settings.max_request_bytes
        if length.isdecimal() and int(length[:20]) > limit:
            message = f"The request is larger than the {limit} bytes that are accepted."
            raise InputError("request_too_large", "body", message, ERRORS["request_too_large"].hint)
