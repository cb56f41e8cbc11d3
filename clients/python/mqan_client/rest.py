"""The REST transport."""

import asyncio
import json
import math
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2

from mqan_client.errors import (
    ClientError,
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
)
from mqan_client.events import MEDIA_TYPE, EventReader, ended_early
from mqan_client.records import Record, record_body
from mqan_client.responses import read_answer, read_answers, read_model, read_record, read_word
from mqan_client.results import Answer, Model, StreamedWord
from mqan_client.transport import TOO_LATE, Attempts, Call, Question, Retries, T, shown_url

HttpT = TypeVar("HttpT", httpx2.Client, httpx2.AsyncClient)

# What a proxy says, without the API's error document, when the server behind it has gone.
_OF_PROXIES = frozenset({500, 502, 504})
_ERRORS: dict[int, tuple[type[ClientError], str]] = {
    401: (UnauthenticatedError, "unauthenticated"),
    408: (DeadlineExceededError, "request_too_slow"),
    429: (OverloadedError, "overloaded"),
    503: (UnavailableError, "unavailable"),
    504: (DeadlineExceededError, "deadline_exceeded"),
}
_OTHERS = ("none", "contiguous", "all", "alternatives", "explain", "parse")
_HEADERS = {"content-type": "application/json", "accept": "application/json"}


class RestCalls:
    """The calls, by paths and bodies; those that only describe the server have no body."""

    def answer(self, question: Question) -> Call[Answer]:
        """Answer one question."""
        return Call("/v1/answer", _body(question), read_answer)

    def answer_questions(self, context: str, questions: Sequence[Question]) -> Call[list[Answer | ClientError]]:
        """Answer several questions about one context in one call."""
        return Call("/v1/answers", _body_of_questions(context, questions), read_answers)

    def fill_record(self, context: str, schema: dict[str, Any]) -> Call[Record]:
        """Fill a record from a text."""
        return Call("/v1/records", record_body(context, schema), read_record)

    def get_model(self) -> Call[Model]:
        """Describe what is served."""
        return Call("/v1/model", None, read_model)


class RestTransport(RestCalls):
    """Calls a server by REST and waits.

    Args:
        url: the server.
        retries: when to call again.
        headers: what every call carries.
    """

    def __init__(self, url: str, retries: Retries, headers: dict[str, str]) -> None:
        self._retries = retries
        self._http = _opened(httpx2.Client, url, headers)

    def answer_stream(self, question: Question, timeout_s: float) -> Generator[StreamedWord | Answer, None, None]:
        """Answer one question word by word."""
        attempts, body = Attempts(self._retries, timeout_s), _body(question, is_streamed=True)
        while True:
            has_begun, retry_after = False, None
            remaining_s = attempts.remaining_s()
            try:
                content = _with_timeout(body, remaining_s)
                with self._http.stream("POST", "/v1/answer", content=content, timeout=remaining_s) as response:
                    retry_after = response.headers.get("retry-after")
                    if not _is_stream(response):
                        _refuse(response, response.read())
                    reader = EventReader()
                    for chunk in response.iter_bytes():
                        attempts.remaining_s()
                        for part in _read_parts(reader.read(chunk)):
                            has_begun = True
                            yield part
                            if isinstance(part, Answer):
                                return
                raise ended_early()
            except httpx2.HTTPError as error:
                failure = _unreached(error)
            except ClientError as error:
                failure = error
            if has_begun:
                raise failure from None
            time.sleep(attempts.wait_s(failure, retry_after))

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def call(self, call: Call[T], timeout_s: float) -> T:
        """Make a call."""
        attempts = Attempts(self._retries, timeout_s)
        while True:
            remaining_s = attempts.remaining_s()
            try:
                content = _with_timeout(call.request, remaining_s)
                with self._http.stream(_method(call), call.name, content=content, timeout=remaining_s) as response:
                    chunks = []
                    for chunk in response.iter_bytes():
                        attempts.remaining_s()  # httpx2's own limit is for each connect, write and read
                        chunks.append(chunk)
                return call.read(_read(response, b"".join(chunks)))
            except httpx2.HTTPError as error:
                wait_s = attempts.wait_s(_unreached(error))
            except ClientError as error:
                wait_s = attempts.wait_s(error, response.headers.get("retry-after"))
            time.sleep(wait_s)


class AsyncRestTransport(RestCalls):
    """Calls a server by REST from asyncio.

    Args:
        url: the server.
        retries: when to call again.
        headers: what every call carries.
    """

    def __init__(self, url: str, retries: Retries, headers: dict[str, str]) -> None:
        self._retries = retries
        self._http = _opened(httpx2.AsyncClient, url, headers)

    async def answer_stream(self, question: Question, timeout_s: float) -> AsyncGenerator[StreamedWord | Answer, None]:
        """Answer one question word by word."""
        attempts, body = Attempts(self._retries, timeout_s), _body(question, is_streamed=True)
        while True:
            has_begun, retry_after = False, None
            remaining_s = attempts.remaining_s()
            try:
                content = _with_timeout(body, remaining_s)
                request = self._http.build_request("POST", "/v1/answer", content=content, timeout=None)
                async with asyncio.timeout(remaining_s):  # httpx2's own is for each connect, write and read
                    response = await self._http.send(request, stream=True)
                async with aclosing(response):
                    retry_after = response.headers.get("retry-after")
                    async with asyncio.timeout(attempts.remaining_s()):
                        if not _is_stream(response):
                            _refuse(response, await response.aread())
                    reader = EventReader()
                    async for chunk in _in_time(response.aiter_bytes(), attempts):
                        for part in _read_parts(reader.read(chunk)):
                            has_begun = True
                            yield part
                            if isinstance(part, Answer):
                                return
                raise ended_early()
            except httpx2.HTTPError as error:
                failure = _unreached(error)
            except ClientError as error:  # before TimeoutError, which what the server calls too late is, too
                failure = error
            except TimeoutError:
                failure = DeadlineExceededError(TOO_LATE, code="deadline_exceeded")
            if has_begun:
                raise failure from None
            await asyncio.sleep(attempts.wait_s(failure, retry_after))

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def call(self, call: Call[T], timeout_s: float) -> T:
        """Make a call."""
        attempts = Attempts(self._retries, timeout_s)
        while True:
            remaining_s = attempts.remaining_s()
            try:
                content = _with_timeout(call.request, remaining_s)
                async with asyncio.timeout(remaining_s):  # httpx2's own is for each connect, write and read
                    response = await self._http.request(_method(call), call.name, content=content, timeout=None)
                return call.read(_read(response, response.content))
            except httpx2.HTTPError as error:
                wait_s = attempts.wait_s(_unreached(error))
            except ClientError as error:  # before TimeoutError, which what the server calls too late is, too
                wait_s = attempts.wait_s(error, response.headers.get("retry-after"))
            except TimeoutError:
                wait_s = attempts.wait_s(DeadlineExceededError(TOO_LATE, code="deadline_exceeded"))
            await asyncio.sleep(wait_s)


async def _in_time(chunks: AsyncIterator[bytes], attempts: Attempts) -> AsyncGenerator[bytes, None]:
    """Yield what comes until the time of the call is over."""
    while True:
        async with asyncio.timeout(attempts.remaining_s()):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        yield chunk


def _opened(kind: Callable[..., HttpT], url: str, headers: dict[str, str]) -> HttpT:
    """Return a client of HTTP, by the proxy that the environment names, if any.

    Raises:
        ValueError: the URL cannot be called, or the proxy's cannot.
    """
    try:
        return kind(base_url=url, headers=_HEADERS | headers, verify=_verification(url))
    except httpx2.InvalidURL as error:
        raise ValueError(
            f"{shown_url(url)!r} is not a server's URL, or a proxy's in the environment is none: {error}"
        ) from None
    except ImportError as error:
        message = f"the proxy in the environment (ALL_PROXY, HTTP_PROXY, HTTPS_PROXY) cannot be used: {error}"
        raise ValueError(message) from None


def _method(call: Call[Any]) -> str:
    return "GET" if call.request is None else "POST"


def _verification(url: str) -> ssl.SSLContext | bool:
    """Return how to verify servers. Without TLS that is by no certificate at all: reading them all takes 80 ms."""
    return True if urlsplit(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _body(question: Question, *, is_streamed: bool = False) -> bytes:
    document = {"context": question.context, **_asked(question)}
    if is_streamed:
        document["stream"] = True
    return _encoded(document)


def _body_of_questions(context: str, questions: Sequence[Question]) -> bytes:
    return _encoded({"context": context, "questions": [_asked(question) for question in questions]})


def _asked(question: Question) -> dict[str, Any]:
    document: dict[str, Any] = {"question": question.question}
    if question.choices:
        document["choices"] = [asdict(choice) for choice in question.choices]
    for name in ("max_answer_tokens", "multiple", "yes_no", "scale", "sources", "min_probability", *_OTHERS):
        value = getattr(question, name)
        if value is not None and value is not False and value != () and (name, value) != ("alternatives", 0):
            document[name] = list(value) if isinstance(value, tuple) else value
    return document


def _encoded(document: dict[str, Any]) -> bytes:
    try:
        return json.dumps(document, ensure_ascii=False).encode("utf-8")
    except (UnicodeEncodeError, TypeError) as error:
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_text") from None


def _with_timeout(body: bytes | None, timeout_s: float) -> bytes | None:
    """Tell the server how long the answer is of use: what lies between may hide from it that the caller has gone."""
    return body and body[:-1] + b', "timeout_ms": %d}' % max(1, math.ceil(timeout_s * 1000))


def _unreached(error: httpx2.HTTPError) -> ClientError:
    if isinstance(error, httpx2.TimeoutException):
        return DeadlineExceededError(TOO_LATE, code="deadline_exceeded")
    if isinstance(error, httpx2.TransportError):
        return UnavailableError(f"The server cannot be reached: {error}.", code="unavailable")
    return ServerError(f"The server's response cannot be read: {error}.", code="unknown_response")


def _is_stream(response: httpx2.Response) -> bool:
    media_type: str = response.headers.get("content-type", "")
    return response.is_success and media_type.partition(";")[0].strip() == MEDIA_TYPE


def _refuse(response: httpx2.Response, content: bytes) -> None:
    """Raise the error that a response is instead of a stream."""
    _read(response, content)
    raise ServerError("The server does not answer word by word.", code="unknown_response")


def _read_parts(events: Iterable[tuple[str, Any]]) -> Iterator[StreamedWord | Answer]:
    for name, document in events:
        if name == "answer":
            yield read_answer(document)
        elif name == "word":
            yield read_word(document)


def _read(response: httpx2.Response, content: bytes) -> Any:
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    if response.is_success and isinstance(document, dict):
        return document
    status = response.status_code
    told = document if isinstance(document, dict) else {}
    default = (InvalidRequestError, "invalid_input") if 400 <= status < 500 and "code" in told else None
    kind, code = _ERRORS.get(status) or default or (ServerError, f"http_{status}")
    if status in _OF_PROXIES and "code" not in told:
        kind, code = UnavailableError, f"http_{status}"
    message = " ".join(str(told[key]) for key in ("message", "hint") if told.get(key))
    message = message or f"The server answered HTTP {status}."
    if "code" not in told and issubclass(kind, ServerError | InvalidRequestError | UnauthenticatedError):
        message += _no_document(response)
    raise kind(message, code=str(told.get("code", code)), request_id=response.headers.get("x-request-id"))


def _no_document(response: httpx2.Response) -> str:
    """Return what to do about a response that is no document of a mqan server, and not of a server that has gone."""
    location = response.headers.get("location")
    onward = f"; it points to {location!r:.200}" if response.is_redirect and location else ""
    return f" That is no document of a mqan server: check the URL{onward}."
