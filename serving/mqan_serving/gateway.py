"""What every HTTP request passes first: an id, refusals that need no body, and the last resort for faults."""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mqan_core.errors import InputError
from mqan_serving.errors import ERRORS, Failure, describe
from mqan_serving.settings import Settings
from mqan_serving.telemetry import RequestRecord, choose_request_id
from mqan_serving.validation import check_metadata

_REQUEST_ID = "x-request-id"


def failure_response(failure: Failure, request_id: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the one error body of the API."""
    all_headers = dict(headers or {})
    if failure.retry_after_s is not None:
        all_headers["retry-after"] = str(failure.retry_after_s)
    if failure.code == "unavailable":
        all_headers["connection"] = "close"  # the next attempt shall find another server
    body = {"code": failure.code, "message": failure.message, "hint": failure.hint, "request_id": request_id}
    return JSONResponse(body, failure.kind.http, all_headers)


class Gateway:
    """ASGI middleware around the whole application.

    Args:
        app: the application.
        settings: limits.
        echoes_request_id: whether responses get the header ``x-request-id``; Ray Serve adds it by itself.
    """

    def __init__(self, app: ASGIApp, settings: Settings, echoes_request_id: bool) -> None:
        self._app = app
        self._settings = settings
        self._echoes_request_id = echoes_request_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = choose_request_id(headers.get(_REQUEST_ID))
        scope.setdefault("state", {})["request_id"] = request_id
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
            await self._app(scope, receive, send_with_id)
        except InputError as error:
            await failure_response(describe(error), request_id)(scope, receive, send_with_id)
        except Exception as error:
            RequestRecord("rest", request_id).log_failure(error)
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
