"""Errors of the client: the class says whose fault it is that there is no answer."""

from functools import partial
from typing import Any


class ClientError(Exception):
    """Base of every error of the client.

    Its code is that of the cause, for example ``context_too_long``, and stays; its request id names the request in the
    server's log, and is None where the server was not reached.
    """

    retry_after_s: int | None = None  # as the server asks

    def __init__(self, message: str, *, code: str | None = None, request_id: str | None = None) -> None:
        super().__init__(message)
        self.code = code or _CODES.get(type(self), "internal")
        self.message = message
        self.request_id = request_id

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.message, code=self.code, request_id=self.request_id), (), self.__dict__


class InvalidRequestError(ClientError, ValueError):
    """The request cannot be answered as it is; the message says why and how to fix it."""


class UnauthenticatedError(ClientError, PermissionError):
    """The server asks for an API key and did not get one that it knows."""


class OverloadedError(ClientError):
    """The server is full."""


class UnavailableError(ClientError, ConnectionError):
    """The server cannot be reached, is starting or is draining."""


class DeadlineExceededError(ClientError, TimeoutError):
    """No answer came in time."""


class ServerError(ClientError):
    """The server failed, or what answers is no mqan server."""


_CODES: dict[type[ClientError], str] = {  # where nothing more is known of the cause
    InvalidRequestError: "invalid_input",
    UnauthenticatedError: "unauthenticated",
    OverloadedError: "overloaded",
    UnavailableError: "unavailable",
    DeadlineExceededError: "deadline_exceeded",
    ServerError: "internal",
}
_BY_CODE = {code: kind for kind, code in _CODES.items() if kind not in (InvalidRequestError, UnauthenticatedError)}


def error_of(document: dict[str, Any], default: type[ClientError]) -> ClientError:
    """Return the error that a document of an error stands for where it comes inside a response."""
    code = str(document.get("code", "internal"))
    return _BY_CODE.get(code, default)(message_of(document), code=code, request_id=document.get("request_id"))


def message_of(document: dict[str, Any]) -> str:
    """Return what a document of an error says: what is wrong, and how to fix it."""
    return " ".join(str(document[key]) for key in ("message", "hint") if document.get(key))


def unsendable(reason: object, code: str = "invalid_input") -> InvalidRequestError:
    """Return the error of a request that is wrong before it is sent."""
    return InvalidRequestError(f"The request cannot be sent: {reason}", code=code)
