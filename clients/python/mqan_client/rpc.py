"""The gRPC transport. Deadlines are gRPC's own."""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from functools import cached_property
from typing import Any

import grpc
import grpc.aio

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_client.errors import (
    ClientError,
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
)
from mqan_client.messages import answer_many_request, answer_request, record_request
from mqan_client.records import Record
from mqan_client.responses import read_answer, read_answers, read_model, read_record, read_word
from mqan_client.results import Answer, Model, StreamedWord
from mqan_client.transport import Attempts, Call, Question, Retries, T

_ERRORS: dict[grpc.StatusCode, tuple[type[ClientError], str]] = {
    grpc.StatusCode.INVALID_ARGUMENT: (InvalidRequestError, "invalid_input"),
    grpc.StatusCode.UNAUTHENTICATED: (UnauthenticatedError, "unauthenticated"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (OverloadedError, "overloaded"),
    grpc.StatusCode.UNAVAILABLE: (UnavailableError, "unavailable"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (DeadlineExceededError, "deadline_exceeded"),
}
# Trailing metadata, where what lies between client and server keeps it.
_CODE_KEY = "mqan-code"
_REQUEST_ID_KEY = "x-request-id"
_RETRY_AFTER_KEY = "retry-after"
# gRPC waits 20 s for a connection that was taken but never spoken on, as by a proxy that is being replaced.
# It also refuses responses of more than 4 MB, which many answers can have.
_OPTIONS = (("grpc.min_reconnect_backoff_ms", 5_000), ("grpc.max_receive_message_length", -1))


class RpcCalls:
    """The calls, by methods and messages."""

    def answer(self, question: Question) -> Call[Answer]:
        """Answer one question."""
        return Call("Answer", answer_request(question), read_answer)

    def answer_questions(self, context: str, questions: Sequence[Question]) -> Call[list[Answer | ClientError]]:
        """Answer several questions about one context in one call."""
        return Call("AnswerMany", answer_many_request(context, questions), read_answers)

    def fill_record(self, context: str, schema: dict[str, Any]) -> Call[Record]:
        """Fill a record from a text."""
        return Call("FillRecord", record_request(context, schema), read_record)

    def get_model(self) -> Call[Model]:
        """Describe what is served."""
        return Call("GetModel", answer_pb2.GetModelRequest(), read_model)


class RpcTransport(RpcCalls):
    """Calls a server by gRPC and waits.

    Args:
        target: host and port.
        retries: when to call again.
        headers: metadata that every call carries.
        tls: whether to encrypt.
    """

    def __init__(self, target: str, retries: Retries, headers: dict[str, str], *, tls: bool) -> None:
        self._metadata = tuple(headers.items())
        self._retries = retries
        self._channel: grpc.Channel = _open(grpc, target, tls)
        self._stub = answer_pb2_grpc.QuestionAnsweringStub(self._channel)

    def answer_stream(self, question: Question, timeout_s: float) -> Generator[StreamedWord | Answer, None, None]:
        """Answer one question word by word."""
        attempts, request = Attempts(self._retries, timeout_s), answer_request(question)
        while True:
            has_begun = False
            call = self._stub.AnswerStream(request, timeout=attempts.remaining_s(), metadata=self._metadata)
            try:
                for part in call:
                    if part.WhichOneof("event") is not None:  # else an error follows
                        has_begun = True
                        yield _read_part(part)
                return
            except grpc.RpcError as error:
                failure = _explain(error.code(), error.details(), error.trailing_metadata())
                if has_begun:
                    raise failure[0] from None
                wait_s = attempts.wait_s(*failure)
            finally:
                call.cancel()  # of a call that has ended nothing is left
            time.sleep(wait_s)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def call(self, call: Call[T], timeout_s: float) -> T:
        """Make a call."""
        attempts, method = Attempts(self._retries, timeout_s), getattr(self._stub, call.name)
        while True:
            try:
                response = method(call.request, timeout=attempts.remaining_s(), metadata=self._metadata)
                return call.read(response)
            except grpc.RpcError as error:
                wait_s = attempts.wait_s(*_explain(error.code(), error.details(), error.trailing_metadata()))
            time.sleep(wait_s)


class AsyncRpcTransport(RpcCalls):
    """Calls a server by gRPC from asyncio.

    Args:
        target: host and port.
        retries: when to call again.
        headers: metadata that every call carries.
        tls: whether to encrypt.
    """

    def __init__(self, target: str, retries: Retries, headers: dict[str, str], *, tls: bool) -> None:
        self._metadata = tuple(headers.items())
        self._retries = retries
        self._target = target
        self._tls = tls

    @cached_property
    def _channel(self) -> grpc.aio.Channel:
        """Belongs to the event loop that runs when it is made."""
        channel: grpc.aio.Channel = _open(grpc.aio, self._target, self._tls)
        return channel

    @cached_property
    def _stub(self) -> answer_pb2_grpc.QuestionAnsweringStub:
        return answer_pb2_grpc.QuestionAnsweringStub(self._channel)

    async def answer_stream(self, question: Question, timeout_s: float) -> AsyncGenerator[StreamedWord | Answer, None]:
        """Answer one question word by word."""
        attempts, request = Attempts(self._retries, timeout_s), answer_request(question)
        while True:
            has_begun = False
            call = self._stub.AnswerStream(request, timeout=attempts.remaining_s(), metadata=self._metadata)
            try:
                async for part in call:
                    if part.WhichOneof("event") is not None:  # else an error follows
                        has_begun = True
                        yield _read_part(part)
                return
            except grpc.aio.AioRpcError as error:
                failure = _explain(error.code(), error.details(), error.trailing_metadata())
                if has_begun:
                    raise failure[0] from None
                wait_s = attempts.wait_s(*failure)
            finally:
                call.cancel()
            await asyncio.sleep(wait_s)

    async def close(self) -> None:
        """Close the channel."""
        if "_channel" in self.__dict__:
            await self._channel.close()

    async def call(self, call: Call[T], timeout_s: float) -> T:
        """Make a call."""
        attempts, method = Attempts(self._retries, timeout_s), getattr(self._stub, call.name)
        while True:
            try:
                response = await method(call.request, timeout=attempts.remaining_s(), metadata=self._metadata)
                return call.read(response)
            except grpc.aio.AioRpcError as error:
                wait_s = attempts.wait_s(*_explain(error.code(), error.details(), error.trailing_metadata()))
            await asyncio.sleep(wait_s)


def _open(library: Any, target: str, tls: bool) -> Any:
    if tls:
        return library.secure_channel(target, grpc.ssl_channel_credentials(), _OPTIONS)
    return library.insecure_channel(target, _OPTIONS)


def _read_part(part: answer_pb2.AnswerStreamResponse) -> StreamedWord | Answer:
    return read_answer(part.answer) if part.HasField("answer") else read_word(part.word)


def _explain(
    status: grpc.StatusCode, details: str | None, metadata: Iterable[Any] | None
) -> tuple[ClientError, str | None]:
    """Return what a status means, and how many seconds to wait as the server asks."""
    kind, code = _ERRORS.get(status, (ServerError, status.name.lower()))
    trailing = {key: value for key, value in metadata or () if isinstance(value, str)}
    # INTERNAL is of Ray's own proxy, whose replica has gone; CANCELLED of a server that has ended or that drops calls.
    if status in (grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED) and _CODE_KEY not in trailing:
        kind, code = UnavailableError, "unavailable"
    if (
        status is grpc.StatusCode.RESOURCE_EXHAUSTED
        and _CODE_KEY not in trailing
        and "larger than max" in (details or "")
    ):
        kind, code = InvalidRequestError, "request_too_large"  # says the server's transport
    error = kind(
        details or f"The server answered {status.name}.",
        code=trailing.get(_CODE_KEY, code),
        request_id=trailing.get(_REQUEST_ID_KEY),
    )
    return error, trailing.get(_RETRY_AFTER_KEY)
