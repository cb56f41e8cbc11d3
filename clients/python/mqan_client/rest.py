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

from mqan_client.documents import Document
from mqan_client.errors import (
    ClientError,
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
    error_of,
    message_of,
)
from mqan_client.questions import to_json
from mqan_client.transport import Attempts, Retries, Transport, seconds, shown_url, too_late

_PATHS = {"Answer": "/v1/answer", "AnswerMany": "/v1/answers", "FillRecord": "/v1/records", "GetModel": "/v1/model"}
_EVENTS = "text/event-stream"
# What a proxy says, without the API's error document, when the server behind it has gone.
_OF_PROXIES = frozenset({500, 502, 504})
_ERRORS: dict[int, tuple[type[ClientError], str]] = {
    401: (UnauthenticatedError, "unauthenticated"),
    408: (DeadlineExceededError, "request_too_slow"),
    429: (OverloadedError, "overloaded"),
    503: (UnavailableError, "unavailable"),
    504: (DeadlineExceededError, "deadline_exceeded"),
}
_HEADERS = {"content-type": "application/json", "accept": "application/json"}


class RestTransport(Transport):
    """Calls a server by REST, by the proxy that the environment names, if any."""

    def __init__(self, url: str, retries: Retries, headers: dict[str, str]) -> None:
        super().__init__(retries)
        try:
            self._http = httpx2.AsyncClient(base_url=url, headers=_HEADERS | headers, verify=_verification(url))
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
                if not _is_stream(response):
                    async with asyncio.timeout(attempts.remaining_s()):
                        await response.aread()
                    _read(response)
                    raise ServerError("The server does not answer word by word.", code="unknown_response")
                events, chunks = _EventReader(), response.aiter_bytes()
                while True:
                    async with asyncio.timeout(attempts.remaining_s()):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        return
                    for event in events.read(chunk):
                        yield event

    async def _close(self) -> None:
        await self._http.aclose()


@contextmanager
def _failures_told() -> Iterator[None]:
    try:
        yield
    except httpx2.TimeoutException:
        raise too_late() from None
    except httpx2.TransportError as error:
        raise UnavailableError(f"The server cannot be reached: {error}.", code="unavailable") from None
    except httpx2.HTTPError as error:
        message = f"The server's response cannot be read: {error}."
        raise ServerError(message, code="unknown_response") from None
    except ClientError:  # before TimeoutError, which what the server calls too late is, too
        raise
    except TimeoutError:
        raise too_late() from None


def _verification(url: str) -> ssl.SSLContext | bool:
    """Return how to verify servers. Without TLS that is by no certificate at all: reading them all takes 80 ms."""
    return True if urlsplit(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _body(request: Document, timeout_s: float) -> bytes:
    """Return what is sent, with how long the answer is of use: a proxy may hide from the server that we have gone."""
    return to_json(request | {"timeout_ms": max(1, math.ceil(timeout_s * 1000))}).encode()


def _is_stream(response: httpx2.Response) -> bool:
    media_type: str = response.headers.get("content-type", "")
    return response.is_success and media_type.partition(";")[0].strip() == _EVENTS


def _read(response: httpx2.Response) -> Document:
    """Return the document of a response, or raise the error that it is."""
    document = _object(response.content)
    if response.is_success and document is not None:
        return document
    status, told = response.status_code, document or {}
    default = (InvalidRequestError, "invalid_input") if 400 <= status < 500 and "code" in told else None
    kind, code = _ERRORS.get(status) or default or (ServerError, f"http_{status}")
    if status in _OF_PROXIES and "code" not in told:
        kind, code = UnavailableError, f"http_{status}"
    message = message_of(told) or f"The server answered HTTP {status}."
    if "code" not in told and issubclass(kind, ServerError | InvalidRequestError | UnauthenticatedError):
        message += _no_document(response)
    error = kind(message, code=str(told.get("code", code)), request_id=response.headers.get("x-request-id"))
    error.retry_after_s = seconds(response.headers.get("retry-after"))
    raise error


def _no_document(response: httpx2.Response) -> str:
    """Return what to do about a response that is no document of a mqan server, and not of a server that has gone."""
    location = response.headers.get("location")
    onward = f"; it points to {location!r:.200}" if response.is_redirect and location else ""
    return f" That is no document of a mqan server: check the URL{onward}."


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(content)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


class _EventReader:
    """Reads server-sent events from bytes as they come."""

    def __init__(self) -> None:
        self._unread = b""
        self._name = ""
        self._data: list[bytes] = []

    def read(self, chunk: bytes) -> Iterator[tuple[str, Document]]:
        """Yield the words and the answer that a chunk completes; raise the error that the server sends instead."""
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            field, _, value = line.rstrip(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if field == b"event":
                self._name = value.decode("utf-8", "replace")
            elif field == b"data":
                self._data.append(value)
            elif not line.strip() and self._data:
                name, document = self._name, _object(b"\n".join(self._data))
                self._name, self._data = "", []
                if document is None:
                    message = "The response is not one of a mqan server: an event is no JSON."
                    raise ServerError(message, code="unknown_response")
                if name == "error":
                    raise error_of(document, ServerError)
                if name in ("word", "answer"):
                    yield name, document
