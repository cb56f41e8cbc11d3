"""What every HTTP request passes first: an id, the API key, refusals that need no body, the last resort for faults."""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mqan_core.errors import InputError
from mqan_serving.errors import ERRORS, Failure, describe
from mqan_serving.keys import ApiKeys
from mqan_serving.metrics import CANCELLED, OK, Metrics
from mqan_serving.settings import Settings
from mqan_serving.telemetry import RequestRecord, choose_request_id
from mqan_serving.validation import check_metadata

_REQUEST_ID = "x-request-id"
# Health is for probes, which have no key; the others say nothing that is not public.
_OPEN_PATHS = frozenset({"/health/live", "/health/ready", "/", "/docs", "/openapi.json"})
METRICS_PATH = "/metrics"
# The same names as in gRPC.
_METHODS = {"/v1/answer": "Answer", "/v1/model": "GetModel", "/health/live": "Check", "/health/ready": "Check"}


def failure_response(failure: Failure, record: RequestRecord, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the one error body of the API, and note in the record that the request ends with it."""
    record.code = failure.code
    all_headers = dict(headers or {})
    if failure.retry_after_s is not None:
        all_headers["retry-after"] = str(failure.retry_after_s)
    if failure.code == "unauthenticated":
        all_headers["www-authenticate"] = "Bearer"
    if failure.code == "unavailable":
        all_headers["connection"] = "close"  # the next attempt shall find another server
    body = {"code": failure.code, "message": failure.message, "hint": failure.hint, "request_id": record.request_id}
    return JSONResponse(body, failure.kind.http, all_headers)


class Gateway:
    """ASGI middleware around the whole application.

    Args:
        app: the application.
        settings: limits.
        keys: who may ask.
        metrics: where requests are counted.
        echoes_request_id: whether responses get the header ``x-request-id``; Ray Serve adds it by itself.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, keys: ApiKeys, metrics: Metrics, echoes_request_id: bool
    ) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._metrics = metrics
        self._open_paths = _OPEN_PATHS if settings.metrics_need_key else _OPEN_PATHS | {METRICS_PATH}
        self._echoes_request_id = echoes_request_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = choose_request_id(headers.get(_REQUEST_ID))
        record = RequestRecord("rest", _METHODS.get(scope["path"], "other"), request_id, self._metrics, headers)
        scope.setdefault("state", {})["record"] = record
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                record.count()
                response_headers = MutableHeaders(scope=message)
                if self._echoes_request_id:
                    response_headers[_REQUEST_ID] = request_id
                response_headers["x-content-type-options"] = "nosniff"
            await send(message)

        try:
            self._check(headers)
            if scope["path"] not in self._open_paths:
                record.note_key(self._keys.authenticate(headers.get("authorization")))
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            record.log_failure(error)
            if not started:
                await failure_response(describe(error), record)(scope, receive, send_with_id)
        finally:
            if not started and record.code == OK:
                record.code = CANCELLED
            record.count()

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
