"""Errors of the client.

ClientError
 +- InvalidRequestError     the request cannot be answered as it is; the message says why and how to fix it
 +- UnauthenticatedError    the server asks for an API key and did not get one that it knows
 +- OverloadedError         the server is full, retries included
 +- UnavailableError        the server cannot be reached, is starting or is draining, retries included
 +- DeadlineExceededError   no answer in time
 +- ServerError             the server failed, or what answers is no mqan server
"""

from typing import Any


class ClientError(Exception):
    """Base of every error of the client.

    Attributes:
        code: stable code of the cause, for example ``context_too_long``.
        message: what is wrong and, where the server says so, how to fix it.
        request_id: names the request in the server's log; None where the server was not reached.
    """

    def __init__(self, message: str, *, code: str, request_id: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.request_id = request_id

    def __reduce__(self) -> tuple[Any, ...]:
        """Say how to make it again, as pickle and pools of processes do."""
        return _made_again, (type(self), self.message, self.code, self.request_id), self.__dict__


def _made_again(kind: type[ClientError], message: str, code: str, request_id: str | None) -> ClientError:
    return kind(message, code=code, request_id=request_id)


class InvalidRequestError(ClientError, ValueError):
    """The request cannot be answered as it is."""


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


_OF_QUESTIONS: dict[str, type[ClientError]] = {
    "overloaded": OverloadedError,
    "unavailable": UnavailableError,
    "deadline_exceeded": DeadlineExceededError,
    "internal": ServerError,
}


def question_error(code: str, message: str, hint: str) -> ClientError:
    """Return why one question of a call with several was not answered."""
    return _OF_QUESTIONS.get(code, InvalidRequestError)(f"{message} {hint}".strip(), code=code)
