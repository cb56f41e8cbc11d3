"""Server-sent events, as a mqan server sends them: an answer word by word over REST."""

import json
from collections.abc import Iterator
from typing import Any

from mqan_client.errors import (
    ClientError,
    DeadlineExceededError,
    OverloadedError,
    ServerError,
    UnavailableError,
)

MEDIA_TYPE = "text/event-stream"
_KINDS: dict[str, type[ClientError]] = {
    "deadline_exceeded": DeadlineExceededError,
    "overloaded": OverloadedError,
    "unavailable": UnavailableError,
}


class EventReader:
    """Reads events from bytes as they come."""

    def __init__(self) -> None:
        self._unread = b""
        self._name = ""
        self._data: list[bytes] = []

    def read(self, chunk: bytes) -> Iterator[tuple[str, Any]]:
        """Yield the events that a chunk completes: their names, and their documents.

        Raises:
            ClientError: the event is an error of the server, or no JSON.
        """
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            field, _, value = line.rstrip(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if field == b"event":
                self._name = value.decode("utf-8", "replace")
            elif field == b"data":
                self._data.append(value)
            elif not line.strip() and self._data:
                yield self._name, _read(self._name, b"\n".join(self._data))
                self._name, self._data = "", []


def ended_early() -> UnavailableError:
    """Return the error of a stream that ends before its answer."""
    return UnavailableError("The connection ended before the answer was whole.", code="unavailable")


def _read(name: str, data: bytes) -> Any:
    try:
        document = json.loads(data)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ServerError("The response is not one of a mqan server: an event is no JSON.", code="unknown_response")
    if name == "error":
        code = str(document.get("code", "internal"))
        message = " ".join(str(document[key]) for key in ("message", "hint") if document.get(key))
        raise _KINDS.get(code, ServerError)(message, code=code, request_id=document.get("request_id"))
    return document
