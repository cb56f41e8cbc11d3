"""What both transports do: they make a call once, and ask again by one policy of retries."""

import asyncio
import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from urllib.parse import urlsplit

from mqan_client.documents import Document, read
from mqan_client.errors import ClientError, DeadlineExceededError, OverloadedError, UnavailableError, unsendable
from mqan_client.results import Answer, StreamedWord

_DEFAULT_PORTS = {"grpc": 9000, "grpcs": 443}
_SCHEMES = ("grpc", "grpcs", "http", "https")
# 23 days, for who waits as long as it takes: sockets, and what carries deadlines, count milliseconds in 32 bits.
_LONGEST_S = 2e6


@dataclass(frozen=True, slots=True)
class Retries:
    """When to ask again. A question always gets the same answer, so it may be asked twice."""

    max_attempts: int = 5  # of one call, the first included
    initial_s: float = 0.1  # longest wait before the second attempt
    max_s: float = 2.0  # longest wait before any attempt; what the server asks for, cut to as much, comes on top
    factor: float = 2.0  # growth of the longest wait from attempt to attempt

    def longest_wait_s(self, num_attempts: int) -> float:
        try:
            return min(self.initial_s * self.factor ** (num_attempts - 1), self.max_s)
        except OverflowError:  # after more than 1,000 attempts
            return self.max_s


class Attempts:
    """Counts the attempts of one call and says how long to wait before the next.

    gRPC's own retries end with the first header of a response, and Ray's proxy sends one before the error that tells of
    its replica's death; so both transports ask again by this.
    """

    def __init__(self, retries: Retries, timeout_s: float) -> None:
        if math.isnan(timeout_s):
            raise unsendable("timeout_s is not a number.")
        self._retries = retries
        self._deadline = time.monotonic() + min(timeout_s, _LONGEST_S)
        self._num_failed = 0

    def remaining_s(self) -> float:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise too_late()
        return remaining

    def wait_s(self, error: ClientError) -> float:
        """Return how long to wait after an attempt that failed; raise its error if there is to be no other."""
        is_limited = error.code == "rate_limited"  # which ends by waiting as long as the server says
        self._num_failed += not is_limited
        if not isinstance(error, OverloadedError | UnavailableError) or self._num_failed >= self._retries.max_attempts:
            raise error from None
        # Waits differ, so that callers refused together do not come back together.
        wait_s = self._retries.longest_wait_s(max(1, self._num_failed)) * random.uniform(0.5, 1)  # noqa: S311  no secret
        wait_s += (error.retry_after_s or 0) if is_limited else min(error.retry_after_s or 0, self._retries.max_s)
        if time.monotonic() + wait_s >= self._deadline:
            raise error from None
        return wait_s


class Transport(ABC):
    """Calls a server. Calls have the names of gRPC's methods, requests and responses are documents of REST.

    Belongs to the event loop that it is first used in.
    """

    def __init__(self, retries: Retries) -> None:
        self._retries = retries
        self._is_closed = False

    async def call(self, name: str, request: Document, timeout_s: float) -> Document:
        self._check_open()
        attempts = Attempts(self._retries, timeout_s)
        while True:
            try:
                return await self._call(name, request, attempts.remaining_s())
            except ClientError as error:
                wait_s = attempts.wait_s(error)
            await asyncio.sleep(wait_s)

    async def answer_stream(self, request: Document, timeout_s: float) -> AsyncGenerator[StreamedWord | Answer, None]:
        self._check_open()
        attempts = Attempts(self._retries, timeout_s)
        while True:
            has_begun = False
            try:
                async with aclosing(self._stream(request, attempts)) as parts:
                    async for name, document in parts:
                        has_begun = True
                        yield read(Answer, document) if name == "answer" else read(StreamedWord, document)
                        if name == "answer":
                            return
                raise UnavailableError("The connection ended before the answer was whole.")
            except ClientError as error:
                if has_begun:
                    raise error from None
                wait_s = attempts.wait_s(error)
            await asyncio.sleep(wait_s)

    async def close(self) -> None:
        self._is_closed = True
        await self._close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the client is closed")

    @abstractmethod
    async def _call(self, name: str, request: Document, timeout_s: float) -> Document: ...

    @abstractmethod
    def _stream(self, request: Document, attempts: Attempts) -> AsyncGenerator[tuple[str, Document], None]:
        """Yield words, then the answer, each with its name."""

    @abstractmethod
    async def _close(self) -> None: ...


def too_late() -> DeadlineExceededError:
    return DeadlineExceededError("No answer came in time.")


def seconds(retry_after: str | None) -> int | None:
    return int(retry_after) if retry_after is not None and retry_after.isdecimal() else None


def shown_url(url: str) -> str:
    """Return a URL for a message: without a user name and a password."""
    scheme, slashes, rest = url.partition("//")
    return scheme + slashes + rest.rpartition("@")[2]


def authorization(api_key: str | None) -> dict[str, str]:
    """Return the header, or gRPC metadata, that carries a key; raise ``ValueError`` where no key looks like this."""
    if api_key is None:
        return {}
    if not api_key or not all("!" <= char <= "~" for char in api_key):
        raise ValueError("the API key is empty or has characters that no key has")
    return {"authorization": f"Bearer {api_key}"}


def split_url(url: str) -> tuple[str, str]:
    """Return the scheme of a server's URL, and its host with the port; raise ``ValueError`` where it is none."""
    if not url.isprintable() or " " in url:  # urlsplit() leaves line ends out, and who calls the URL does not
        raise ValueError(
            f"{shown_url(url)!r} is not a server's URL: it has characters that no URL has, such as a line end"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:  # whose text may have a part of a password
        raise ValueError(f"{shown_url(url)!r} is not a server's URL: its host or port is none") from None
    if parts.username is not None:  # gRPC would not send it, and HTTP in place of the API key
        raise ValueError(f"{shown_url(url)!r} had a user name or a password: leave them out, and give an API key")
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError(f"{shown_url(url)!r} is not a server's URL: expected {'://..., '.join(_SCHEMES)}://HOST:PORT")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts.scheme, f"{host}:{_DEFAULT_PORTS.get(parts.scheme, 80) if port is None else port}"
