"""The closed set of errors that callers can meet, and their one mapping to HTTP and gRPC.

ServingError      something on the server's side: it is full, draining, too slow, or the resource does not exist
InputError        (mqan_core) something in the caller's input
SettingsError     the server cannot start as it is configured; never reaches a caller

Both kinds of error carry a code of the table below. Whatever else escapes is ``internal``: callers get an id, the log
gets the traceback.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from mqan_core.errors import InputError, MqanError


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """The statuses of one code, and how to fix it where the place that raises it does not say."""

    http: int
    grpc: str
    hint: str


_INVALID = "INVALID_ARGUMENT"
_MOST_SHOWN = 40  # characters of a field's name in a message

ERRORS: Mapping[str, ErrorKind] = MappingProxyType(
    {
        # The caller's input.
        "malformed_request": ErrorKind(400, _INVALID, "Send one JSON object in UTF-8."),
        "invalid_timeout": ErrorKind(400, _INVALID, "Send whole milliseconds above 0, or leave timeout_ms out."),
        "invalid_input": ErrorKind(422, _INVALID, "Compare the request with the API's documentation."),
        "missing_field": ErrorKind(422, _INVALID, "Send both context and question."),
        "unknown_field": ErrorKind(422, _INVALID, "Compare the fields with the API's documentation."),
        "wrong_type": ErrorKind(422, _INVALID, "Send texts as strings and numbers as integers."),
        "invalid_text": ErrorKind(422, _INVALID, "Send text that can be encoded in UTF-8."),
        "empty_context": ErrorKind(422, _INVALID, "Send the text that the question is about."),
        "empty_question": ErrorKind(422, _INVALID, "Send a question in natural language."),
        "context_too_long": ErrorKind(422, _INVALID, "Send a shorter context; GET /v1/model has the limits."),
        "question_too_long": ErrorKind(422, _INVALID, "Send a shorter question; GET /v1/model has the limits."),
        "word_too_long": ErrorKind(422, _INVALID, "Remove encoded data such as base64, or put spaces into the word."),
        "empty_choice": ErrorKind(422, _INVALID, "Give each label some text."),
        "choices_too_long": ErrorKind(422, _INVALID, "Send fewer or shorter choices."),
        "duplicate_choice": ErrorKind(422, _INVALID, "Send each label once."),
        "wrong_number_of_choices": ErrorKind(422, _INVALID, "Send a number of labels that is accepted."),
        "incompatible_options": ErrorKind(422, _INVALID, "Leave one of the fields out."),
        "senseless_combination": ErrorKind(422, _INVALID, "Leave one of the fields out."),  # its name before 0.18
        "option_out_of_range": ErrorKind(422, _INVALID, "Choose a number in the accepted range."),
        "unknown_adapter": ErrorKind(422, _INVALID, "GET /v1/model lists the adapters; mqan adapt makes one."),
        "unusable_adapter": ErrorKind(422, _INVALID, "Make it anew with mqan adapt, or leave it out."),
        "option_not_supported": ErrorKind(422, _INVALID, "Leave the field out, or serve a model that supports it."),
        "too_many_questions": ErrorKind(422, _INVALID, "Send them in several calls."),
        "unsupported_schema": ErrorKind(
            422, _INVALID, "Change the schema: strings, numbers, booleans, enums and arrays of strings are supported."
        ),
        "duplicate_id": ErrorKind(422, _INVALID, "Give each entry an id of its own, or leave ids out."),
        "max_answer_tokens_out_of_range": ErrorKind(422, _INVALID, "GET /v1/model has the limits."),
        "unknown_model": ErrorKind(404, "NOT_FOUND", "GET /v1/models lists the models."),
        "request_too_large": ErrorKind(413, _INVALID, "Send a smaller request; GET /v1/model has the limits."),
        "metadata_too_large": ErrorKind(431, _INVALID, "Send fewer or shorter headers; GET /v1/model has the limits."),
        "unsupported_media_type": ErrorKind(415, _INVALID, "Send the header content-type: application/json."),
        "unsupported_encoding": ErrorKind(415, _INVALID, "Send the body as zstd, or uncompressed."),
        "request_too_slow": ErrorKind(408, "DEADLINE_EXCEEDED", "Send the whole request without long pauses."),
        "unknown_host": ErrorKind(421, _INVALID, "Use a host name that the server allows (MQAN_ALLOWED_HOSTS)."),
        # The caller.
        "unauthenticated": ErrorKind(
            401, "UNAUTHENTICATED", "Send authorization: Bearer KEY, with a key from the server's operator."
        ),
        # The resource.
        "not_found": ErrorKind(404, "NOT_FOUND", "GET /docs lists the paths."),
        "method_not_allowed": ErrorKind(405, "UNIMPLEMENTED", "GET /docs lists the methods of each path."),
        # The server.
        "overloaded": ErrorKind(429, "RESOURCE_EXHAUSTED", "Try again after a moment."),
        "rate_limited": ErrorKind(429, "RESOURCE_EXHAUSTED", "Send fewer requests with this API key."),
        "unavailable": ErrorKind(503, "UNAVAILABLE", "Try again after a moment."),
        "deadline_exceeded": ErrorKind(
            504, "DEADLINE_EXCEEDED", "Try again with a longer timeout or a shorter context."
        ),
        "internal": ErrorKind(500, "INTERNAL", "Report the request id to the server's operator."),
    }
)

CODES_OF_ANSWER = (
    *(code for code, kind in ERRORS.items() if kind.grpc == _INVALID),
    *("unknown_model", "request_too_slow", "unauthenticated"),
    *("overloaded", "rate_limited", "unavailable", "deadline_exceeded", "internal"),
)
"""The codes that a question can be refused with."""

_CODE_OF_HTTP_STATUS = {400: "malformed_request", 404: "not_found", 405: "method_not_allowed", 413: "request_too_large"}


class ServingError(MqanError):
    """An answer cannot be given for a reason that is not in the input."""

    def __init__(self, code: str, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s


class PlacedError(InputError):
    """Something in a caller's document, at the names of the fields that lead to it; of a question its id, too."""

    def __init__(self, code: str, place: tuple[str, ...], message: str, hint: str) -> None:
        super().__init__(code, place[-1] if place else "body", message, hint)
        self.place = place


def refuse(code: str, field: str, message: str, hint: str = "") -> InputError:
    """Return the error that refuses what a caller sent, with the hint of its code where none is given."""
    return InputError(code, field, message, hint or ERRORS[code].hint)


def shown_field(name: str, instead: str) -> str:
    """Return the name of a caller's field as messages show it; ``instead`` of one that is long or odd."""
    return name if name.isidentifier() and len(name) <= _MOST_SHOWN else instead


class SettingsError(MqanError, ValueError):
    """The server cannot start; the message names the setting at fault."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as callers are told it."""

    code: str
    message: str
    hint: str
    retry_after_s: int | None = None
    place: tuple[str, ...] = ()
    field: str | None = None

    @property
    def kind(self) -> ErrorKind:
        return ERRORS[self.code]

    @property
    def document(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, "hint": self.hint}

    @property
    def is_internal(self) -> bool:
        return self.code == "internal"


class AnsweringError(MqanError):
    """A question among several could not be answered."""

    def __init__(self, failure: Failure, place: tuple[str, ...]) -> None:
        super().__init__(failure.message)
        self.failure = replace(failure, place=place)


def describe(error: BaseException) -> Failure:
    """Return what callers are told about an exception; nothing of an unexpected one is passed on."""
    if isinstance(error, AnsweringError):
        return error.failure
    if isinstance(error, InputError):
        place = error.place if isinstance(error, PlacedError) else ()
        code = error.code if error.code in ERRORS else "invalid_input"
        return Failure(code, error.message, error.hint or ERRORS[code].hint, place=place, field=error.field)
    if isinstance(error, ServingError):
        return Failure(error.code, error.message, ERRORS[error.code].hint, error.retry_after_s)
    return Failure("internal", "The server failed to answer this request.", ERRORS["internal"].hint)


def describe_http_status(status: int) -> Failure:
    """Return what callers are told about a status that the HTTP framework chose."""
    code = _CODE_OF_HTTP_STATUS.get(status, "invalid_input" if status < 500 else "internal")
    messages = {
        "not_found": "There is nothing at this path.",
        "method_not_allowed": "This path does not accept this method.",
        "request_too_large": "The request body is larger than this server accepts.",
        "malformed_request": "The request is malformed.",
        "invalid_input": "The request cannot be served.",
        "internal": "The server failed to answer this request.",
    }
    return Failure(code, messages[code], ERRORS[code].hint)
