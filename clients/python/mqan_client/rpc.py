"""The gRPC transport. Deadlines are gRPC's own."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from dataclasses import fields
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
from mqan_client.results import (
    AcceptedQuestion,
    Alternative,
    Answer,
    AnswerSpan,
    AnswerToken,
    Candidate,
    ChoiceProbability,
    Limits,
    Masses,
    Model,
    ModelVersion,
    Place,
    PointerWeight,
    Score,
    Source,
    Span,
    Step,
    StreamedWord,
)
from mqan_client.transport import Attempts, Question, Retries

_SOURCES = {
    answer_pb2.SOURCE_CONTEXT: Source.CONTEXT,
    answer_pb2.SOURCE_QUESTION: Source.QUESTION,
    answer_pb2.SOURCE_VOCABULARY: Source.VOCABULARY,
}
_NUMBERS = {source: number for number, source in _SOURCES.items()}
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
_OPTIONS = (("grpc.min_reconnect_backoff_ms", 5_000),)


class RpcTransport:
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
        self._channel = (
            grpc.secure_channel(target, grpc.ssl_channel_credentials(), _OPTIONS)
            if tls
            else grpc.insecure_channel(target, _OPTIONS)
        )
        self._stub = answer_pb2_grpc.QuestionAnsweringStub(self._channel)

    def answer(self, question: Question, timeout_s: float) -> Answer:
        """Answer one question."""
        return _read_answer(self._call(self._stub.Answer, _request(question), timeout_s))

    def answer_stream(self, question: Question, timeout_s: float) -> Generator[StreamedWord | Answer, None, None]:
        """Answer one question word by word."""
        attempts, request = Attempts(self._retries, timeout_s), _request(question)
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

    def get_model(self, timeout_s: float) -> Model:
        """Describe what is served."""
        return _read_model(self._call(self._stub.GetModel, answer_pb2.GetModelRequest(), timeout_s))

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _call(self, method: Callable[..., Any], request: object, timeout_s: float) -> Any:
        attempts = Attempts(self._retries, timeout_s)
        while True:
            try:
                return method(request, timeout=attempts.remaining_s(), metadata=self._metadata)
            except grpc.RpcError as error:
                wait_s = attempts.wait_s(*_explain(error.code(), error.details(), error.trailing_metadata()))
            time.sleep(wait_s)


class AsyncRpcTransport:
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
        if self._tls:
            return grpc.aio.secure_channel(self._target, grpc.ssl_channel_credentials(), _OPTIONS)
        return grpc.aio.insecure_channel(self._target, _OPTIONS)

    @cached_property
    def _stub(self) -> answer_pb2_grpc.QuestionAnsweringStub:
        return answer_pb2_grpc.QuestionAnsweringStub(self._channel)

    async def answer(self, question: Question, timeout_s: float) -> Answer:
        """Answer one question."""
        return _read_answer(await self._call(self._stub.Answer, _request(question), timeout_s))

    async def answer_stream(self, question: Question, timeout_s: float) -> AsyncGenerator[StreamedWord | Answer, None]:
        """Answer one question word by word."""
        attempts, request = Attempts(self._retries, timeout_s), _request(question)
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

    async def get_model(self, timeout_s: float) -> Model:
        """Describe what is served."""
        return _read_model(await self._call(self._stub.GetModel, answer_pb2.GetModelRequest(), timeout_s))

    async def close(self) -> None:
        """Close the channel."""
        if "_channel" in self.__dict__:
            await self._channel.close()

    async def _call(self, method: Callable[..., Any], request: object, timeout_s: float) -> Any:
        attempts = Attempts(self._retries, timeout_s)
        while True:
            try:
                return await method(request, timeout=attempts.remaining_s(), metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                wait_s = attempts.wait_s(*_explain(error.code(), error.details(), error.trailing_metadata()))
            await asyncio.sleep(wait_s)


def _request(question: Question) -> answer_pb2.AnswerRequest:
    try:
        return answer_pb2.AnswerRequest(
            context=question.context,
            question=question.question,
            max_answer_tokens=question.max_answer_tokens,
            choices=[answer_pb2.Choice(label=c.label, description=c.description) for c in question.choices],
            multiple=question.multiple,
            yes_no=question.yes_no,
            scale=question.scale,
            sources=[_NUMBERS[source] for source in question.sources],
            contiguous=question.contiguous,
            all=question.all,
            alternatives=question.alternatives,
            explain=question.explain,
            min_probability=question.min_probability,
        )
    except (ValueError, TypeError) as error:  # a lone surrogate, a number that is no uint32, a value of another type
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None


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


def _read_part(part: answer_pb2.AnswerStreamResponse) -> StreamedWord | Answer:
    if part.HasField("answer"):
        return _read_answer(part.answer)
    (token,) = _read_tokens([part.word.token])
    return StreamedWord(token, part.word.delta)


def _read_answer(response: answer_pb2.AnswerResponse) -> Answer:
    is_old = not response.windows  # a server before 0.17
    return Answer(
        response.answer,
        response.probability,
        _read_tokens(response.tokens),
        _read_spans(response.spans),
        response.truncated,
        ModelVersion(response.model.name, response.model.version),
        response.answered or is_old,
        response.probability if is_old else response.confidence,
        tuple(ChoiceProbability(c.label, c.probability, _read_spans(c.spans)) for c in response.choices),
        tuple(response.chosen),
        response.expected if response.HasField("expected") else None,
        1 if is_old else response.windows,
        tuple(Place(_read_span(place.span), place.probability) for place in response.places),
        tuple(
            Alternative(other.answer, other.probability, _read_tokens(other.tokens), _read_spans(other.spans))
            for other in response.alternatives
        ),
        tuple(
            Step(
                _read_weights(step.context),
                _read_weights(step.question),
                tuple(Candidate(c.text, c.probability, _source(c.source)) for c in step.candidates),
            )
            for step in response.steps
        ),
    )


def _read_weights(weights: Iterable[answer_pb2.PointerWeight]) -> tuple[PointerWeight, ...]:
    return tuple(PointerWeight(Span(found.span.start, found.span.end), found.weight) for found in weights)


def _read_tokens(tokens: Iterable[answer_pb2.AnswerToken]) -> tuple[AnswerToken, ...]:
    return tuple(
        AnswerToken(
            token.text,
            token.probability,
            _source(token.source),
            Masses(token.masses.context, token.masses.question, token.masses.vocabulary),
            Span(token.span.start, token.span.end) if token.HasField("span") else None,
        )
        for token in tokens
    )


def _source(number: answer_pb2.Source) -> Source:
    if number not in _SOURCES:
        raise ServerError("The answer names a source that this client does not know.", code="unknown_response")
    return _SOURCES[number]


def _read_spans(spans: Iterable[answer_pb2.AnswerSpan]) -> tuple[AnswerSpan, ...]:
    return tuple(map(_read_span, spans))


def _read_span(span: answer_pb2.AnswerSpan) -> AnswerSpan:
    return AnswerSpan(_source(span.source), span.start, span.end, span.text)


def _read_model(response: answer_pb2.GetModelResponse) -> Model:
    return Model(
        response.model.name,
        response.model.version,
        response.sha256,
        response.provider,
        Limits(**{field.name: getattr(response.limits, field.name) for field in fields(Limits)}),
        response.num_generated,
        response.num_words,
        tuple(Score(score.task, score.metric, score.value) for score in response.scores),
        response.server_version,
        tuple(AcceptedQuestion(q.task, q.question, q.context, tuple(q.labels)) for q in response.questions),
    )
