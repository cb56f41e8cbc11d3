"""The REST transport."""

import asyncio
import json
import math
import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2

from mqan_client import errors
from mqan_client.documents import Document, to_json
from mqan_client.transport import Attempts, Retries, Transport, seconds, shown_url, too_late

_PATHS = {"Answer": "/v1/answer", "AnswerMany": "/v1/answers", "FillRecord": "/v1/records", "GetModel": "/v1/model"}
_EVENTS = "text/event-stream"
# What a proxy says, without the API's error document, when the server behind it has gone.
_OF_PROXIES = frozenset({500, 502, 504})
_ERRORS: dict[int, type[errors.ClientError]] = {
    401: errors.UnauthenticatedError,
    408: errors.DeadlineExceededError,
    429: errors.OverloadedError,
    503: errors.UnavailableError,
    504: errors.DeadlineExceededError,
}
_HEADERS = {"content-type": "application/json", "accept": "application/json"}


class RestTransport(Transport):
    """Calls a server by REST, by the proxy that the environment names, if any."""

    def __init__(self, url: str, retries: Retries, headers: dict[str, str]) -> None:
        super().__init__(retries)
        # Without TLS servers are verified by no certificate at all: reading them all takes 80 ms.
        verify = True if urlsplit(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            self._http = httpx2.AsyncClient(base_url=url, headers=_HEADERS | headers, verify=verify)
        except httpx2.InvalidURL as error:
            raise ValueError(
                f"{shown_url(url)!r} is not a server's URL, or a proxy's in the environment is none: {error}"
            ) from None
        except ImportError as error:
            message = f"the proxy in the environment (ALL_PROXY, HTTP_PROXY, HTTPS_PROXY) cannot be used: {error}"
            raise ValueError(message) from None

    async def _call(self, name: str, request: Document, timeout_s: float) -> Document:
        method, content = ("POST", _body(request, timeout_s)) if request else ("GET", None)
        with _failures_told():
            async with asyncio.timeout(timeout_s):  # httpx2's own is for each connect, write and read
                response = await self._http.request(method, _PATHS[name], content=content, timeout=None)
        return _read(response)

    async def _stream(self, request: Document, attempts: Attempts) -> AsyncGenerator[tuple[str, Document], None]:
        content = _body(request | {"stream": True}, attempts.remaining_s())
        asking = self._http.build_request("POST", _PATHS["Answer"], content=content, timeout=None)
        with _failures_told():
            async with asyncio.timeout(attempts.remaining_s()):
                response = await self._http.send(asking, stream=True)
            async with aclosing(response):
                media_type: str = response.headers.get("content-type", "")
                if not (response.is_success and media_type.partition(";")[0].strip() == _EVENTS):
                    async with asyncio.timeout(attempts.remaining_s()):
                        await response.aread()
                    _read(response)
                    raise errors.ServerError("The server does not answer word by word.", code="unknown_response")
                events = aiter(httpx2.EventSource(response, max_event_size=None))
                while True:
                    async with asyncio.timeout(attempts.remaining_s()):
                        event = await anext(events, None)
                    if event is None:
                        return
                    if (document := _object(event.data)) is None:
                        message = "The response is not one of a mqan server: an event is no JSON."
                        raise errors.ServerError(message, code="unknown_response")
                    if event.event == "error":
                        raise errors.error_of(document, errors.ServerError)
                    if event.event in ("word", "answer"):
                        yield event.event, document

    async def _close(self) -> None:
        await self._http.aclose()


@contextmanager
def _failures_told() -> Iterator[None]:
    try:
        yield
    except httpx2.TimeoutException:
        raise too_late() from None
    except httpx2.TransportError as error:
        raise errors.UnavailableError(f"The server cannot be reached: {error}.") from None
    except httpx2.HTTPError as error:
        raise errors.ServerError(f"The server's response cannot be read: {error}.", code="unknown_response") from None
    except errors.ClientError:  # before TimeoutError, which what the server calls too late is, too
        raise
    except TimeoutError:
        raise too_late() from None


def _body(request: Document, timeout_s: float) -> bytes:
    """Return what is sent, with how long the answer is of use: a proxy may hide from the server that we have gone."""
    return to_json(request | {"timeout_ms": max(1, math.ceil(timeout_s * 1000))}).encode()


def _read(response: httpx2.Response) -> Document:
    document = _object(response.content)
    if response.is_success and document is not None:
        return document
    status, told = response.status_code, document or {}
    is_refusal = 400 <= status < 500 and "code" in told
    kind = _ERRORS.get(status) or (errors.InvalidRequestError if is_refusal else errors.ServerError)
    code = "request_too_slow" if status == 408 else f"http_{status}" if kind is errors.ServerError else None
    if status in _OF_PROXIES and "code" not in told:
        kind, code = errors.UnavailableError, f"http_{status}"
    message = errors.message_of(told) or f"The server answered HTTP {status}."
    if "code" not in told and kind in (errors.ServerError, errors.UnauthenticatedError):
        location = response.headers.get("location")
        onward = f"; it points to {location!r:.200}" if response.is_redirect and location else ""
        message += f" That is no document of a mqan server: check the URL{onward}."
    error = kind(
        message, code=str(told["code"]) if "code" in told else code, request_id=response.headers.get("x-request-id")
    )
    error.retry_after_s = seconds(response.headers.get("retry-after"))
    raise error


def _object(content: str | bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(content)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
