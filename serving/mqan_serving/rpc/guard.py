"""The gate of gRPC: an id for every call, limits, the API key, errors as status and metadata, the log and the count.

The bytes are parsed here rather than by the transport, so that malformed ones are refused like any other bad input, and
no exception ever reaches a transport that would pass its text on.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import isasyncgenfunction
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from mqan_core.errors import InputError
from mqan_serving.contract.errors import ServingError, describe
from mqan_serving.keys import ApiKeys
from mqan_serving.observability.logs import MODEL, RequestLog, choose_request_id
from mqan_serving.observability.metrics import Metrics
from mqan_serving.service.validation import check_metadata
from mqan_serving.settings import Settings

_REQUEST_ID = "x-request-id"
_LISTED_BYTES = 1024  # of unknown fields, up to which the first is named
_DEADLINE_SLACK_S = 0.05  # the caller's clock started earlier, so that its cancellation overtakes the deadline

MessageT = TypeVar("MessageT", bound=Message)


Context = Any  # of a call, as gRPC and Ray Serve both have it


@dataclass(frozen=True, slots=True)
class RpcGuard:
    """What every call passes: size of metadata, API key, log and count, errors as status."""

    settings: Settings
    keys: ApiKeys
    metrics: Metrics

    async def run(
        self,
        method: str,
        run: Callable[[RequestLog], Awaitable[MessageT]],
        empty: Callable[[], MessageT],
        context: Context,
        *,
        is_open: bool = False,
    ) -> MessageT:
        """Run what answers a call; log and respond to whatever goes wrong, by an empty response that nobody reads."""
        response = empty()
        async with self._passing(method, context) as (metadata, log):
            self._check(metadata, log, is_open=is_open)
            response = await run(log)
            context.set_trailing_metadata(_trailing(log))
        return response

    async def stream(
        self,
        method: str,
        run: Callable[[RequestLog], AsyncGenerator[MessageT, None]],
        empty: Callable[[], MessageT],
        context: Context,
    ) -> AsyncGenerator[MessageT, None]:
        """Run a call that has several responses.

        Ray's proxy learns the status and the metadata of the end only together with a response, so that they are set
        before the last one, and an error comes with an empty one. ``run`` counts the call before its last response.
        """
        is_whole = False
        async with self._passing(method, context) as (metadata, log):
            context.set_trailing_metadata(_trailing(log))
            self._check(metadata, log)
            async with aclosing(run(log)) as responses:
                async for response in responses:
                    yield response
            is_whole = True
        if not is_whole and not hasattr(context, "time_remaining"):  # Ray's
            yield empty()

    @asynccontextmanager
    async def _passing(self, method: str, context: Context) -> AsyncIterator[tuple[list[tuple[str, Any]], RequestLog]]:
        """Log and count a call; an error ends it with its status, and goes no further."""
        metadata = [(key, value) for key, value in context.invocation_metadata() or ()]
        if isinstance(trailing := context.trailing_metadata(), list):
            trailing.clear()  # Ray's own id of the call: there shall be one
        request_id = choose_request_id(_first(metadata, _REQUEST_ID))
        texts = {key: value for key, value in metadata if isinstance(value, str)}
        log = RequestLog("grpc", method, request_id, self.metrics, texts)
        try:
            yield metadata, log
        except (asyncio.CancelledError, GeneratorExit):
            _note_cancelled(log, context)
            raise
        except Exception as error:
            _fail(error, log, context)
        finally:
            log.count()

    def _check(self, metadata: list[tuple[str, Any]], log: RequestLog, *, is_open: bool = False) -> None:
        check_metadata(metadata, self.settings.max_metadata_bytes)
        if not is_open:  # probes have no key
            log.note_key(name := self.keys.authenticate(_first(metadata, "authorization")))
            self.keys.check_rate(name)


def sparing(call: Callable[..., Any]) -> Callable[..., Any]:
    """Let a call whose caller has gone end without a response: grpc.aio never frees one that it cannot send.

    https://github.com/grpc/grpc/issues/43360
    """

    @wraps(call)
    async def respond(message: bytes, context: Any) -> Any:
        response = await call(message, context)
        _end_if_gone(context)
        return response

    @wraps(call)
    async def stream(message: bytes, context: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(call(message, context)) as responses:
            async for response in responses:
                yield response
        _end_if_gone(context)

    return stream if isasyncgenfunction(call) else respond


def _end_if_gone(context: Any) -> None:
    task = asyncio.current_task()
    is_cancelled = task is not None and task.cancelling() > 0  # also if somebody has caught that
    if is_cancelled or remaining_s_of(context) == 0:
        raise asyncio.CancelledError


def _note_cancelled(log: RequestLog, context: Context) -> None:
    left_s = remaining_s_of(context)
    if left_s is not None and left_s < _DEADLINE_SLACK_S:  # gRPC itself cancels at the deadline
        log.log_failure(ServingError("deadline_exceeded", "No answer within the caller's deadline."))
    else:
        log.log_cancelled()


def _fail(error: Exception, log: RequestLog, context: Context) -> None:
    log.log_failure(error)
    failure = describe(error)
    context.set_code(grpc.StatusCode[failure.kind.grpc])
    context.set_details(f"{failure.message} {failure.hint}")
    trailing = [*_trailing(log), ("mqan-code", failure.code)]
    if failure.retry_after_s is not None:
        trailing.append(("retry-after", str(failure.retry_after_s)))
    if failure.kind.grpc == "INTERNAL":  # clients ask again after a proxy's own, whose server has just gone
        trailing.append(("grpc-retry-pushback-ms", "-1"))
    context.set_trailing_metadata(trailing)


def _trailing(log: RequestLog) -> list[tuple[str, str]]:
    """Return what every call ends with: a list, as Ray Serve needs it."""
    return [(_REQUEST_ID, log.request_id), *([(MODEL, log.model_header)] if log.model_header else [])]


def _first(metadata: list[tuple[str, Any]], key: str) -> str | None:
    return next((value for name, value in metadata if name == key and isinstance(value, str)), None)


def remaining_s_of(context: Context) -> float | None:
    """Return the seconds until the caller's deadline; None without one, and on Ray, which cancels the call then."""
    time_remaining = getattr(context, "time_remaining", None)
    return None if time_remaining is None else time_remaining()


def parse_message(message_type: Callable[[], MessageT], content: bytes) -> MessageT:
    message = message_type()
    try:
        message.ParseFromString(content)
    except DecodeError:
        hint = "Send a message of the published contract, with texts in UTF-8."
        raise InputError("malformed_request", "request", "The request cannot be decoded.", hint) from None
    known = message_type()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    num_unknown = message.ByteSize() - known.ByteSize()
    if num_unknown:
        # A field this server does not know may ask for something it would silently not do. Listing such fields takes
        # seconds where a message is full of them.
        what = "unknown fields"
        if num_unknown <= _LISTED_BYTES:
            fields = UnknownFieldSet(message)  # of the message itself
            what = f"an unknown field, number {fields[0].field_number}" if len(fields) else "an unknown field in a part"
        hint = "Use the version of the contract that this server publishes by reflection."
        raise InputError("unknown_field", "request", f"The request has {what}.", hint)
    return message
