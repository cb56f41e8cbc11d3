"""gRPC: the methods of ``mqan.v1.QuestionAnswering`` and the standard health check.

The methods take and return what a plain ``grpc.aio`` server and Ray Serve both offer: the bytes of the request and a
context on which the status is set. The bytes are parsed here rather than by the transport, so that malformed ones are
refused like any other bad input, and no exception ever reaches a transport that would pass its text on.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from grpc_health.v1 import health_pb2

from mqan.v1 import answer_pb2
from mqan_core import __version__
from mqan_core.answer import Answer, AnswerSpan, AnswerToken, Source, Span
from mqan_core.errors import InputError
from mqan_serving.asked import ChoiceField, SourceName
from mqan_serving.errors import ServingError, describe
from mqan_serving.keys import ApiKeys
from mqan_serving.metrics import Metrics
from mqan_serving.service import Model, Service
from mqan_serving.settings import Settings
from mqan_serving.telemetry import RequestRecord, choose_request_id
from mqan_serving.validation import Question, check_metadata

SERVICE_NAME = "mqan.v1.QuestionAnswering"
HEALTH_SERVICE_NAME = "grpc.health.v1.Health"

_REQUEST_ID = "x-request-id"
_LISTED_BYTES = 1024  # of unknown fields, up to which the first is named
_DEADLINE_SLACK_S = 0.05  # the caller's clock started earlier, so that its cancellation overtakes the deadline
_SOURCES = {
    Source.CONTEXT: answer_pb2.SOURCE_CONTEXT,
    Source.QUESTION: answer_pb2.SOURCE_QUESTION,
    Source.VOCABULARY: answer_pb2.SOURCE_VOCABULARY,
}
_SOURCE_NAMES: dict[int, SourceName] = {
    answer_pb2.SOURCE_CONTEXT: "context",
    answer_pb2.SOURCE_QUESTION: "question",
    answer_pb2.SOURCE_VOCABULARY: "vocabulary",
}

MessageT = TypeVar("MessageT", bound=Message)


class Context(Protocol):
    """What the methods need of the context of a call."""

    def invocation_metadata(self) -> Any:
        """Return the caller's metadata."""

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status."""

    def set_details(self, details: str) -> None:
        """Set the message of the status."""

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """Set the metadata that ends the call."""


class RpcMethods:
    """The methods, over one service.

    Args:
        get_service: returns the service.
        settings: limits.
        keys: who may ask.
        metrics: where calls are counted.
    """

    def __init__(self, get_service: Callable[[], Service], settings: Settings, keys: ApiKeys, metrics: Metrics) -> None:
        self._get_service = get_service
        self._metrics = metrics
        self._keys = keys
        self._settings = settings

    async def answer(self, message: bytes, context: Context) -> answer_pb2.AnswerResponse:
        """Answer one question about one context."""

        async def run(record: RequestRecord) -> answer_pb2.AnswerResponse:
            service = self._get_service()
            service.validator.check_size(len(message))
            request = parse_message(answer_pb2.AnswerRequest, message)
            question = _question(request, _remaining_s(context))
            record.note_question(question)
            result = await service.answer(question, record.timeline)
            record.note_answer(result)
            return _answer_response(result, service.model)

        return await self._guard("Answer", run, answer_pb2.AnswerResponse, context)

    async def get_model(self, message: bytes, context: Context) -> answer_pb2.GetModelResponse:
        """Describe the model and its limits."""

        async def run(_: RequestRecord) -> answer_pb2.GetModelResponse:
            parse_message(answer_pb2.GetModelRequest, message)
            return _model_response(self._get_service().model)

        return await self._guard("GetModel", run, answer_pb2.GetModelResponse, context)

    async def check(self, message: bytes, context: Context) -> health_pb2.HealthCheckResponse:
        """Say whether requests should be sent here, for the whole server or for the service by its name."""

        async def run(_: RequestRecord) -> health_pb2.HealthCheckResponse:
            name = parse_message(health_pb2.HealthCheckRequest, message).service
            if name not in ("", SERVICE_NAME):
                raise ServingError("not_found", "There is no service of this name.")
            statuses = health_pb2.HealthCheckResponse
            ready = self._get_service().why_not_ready is None
            return statuses(status=statuses.SERVING if ready else statuses.NOT_SERVING)

        return await self._guard("Check", run, health_pb2.HealthCheckResponse, context, is_open=True)

    async def _guard(
        self,
        method: str,
        run: Callable[[RequestRecord], Awaitable[MessageT]],
        empty: Callable[[], MessageT],
        context: Context,
        *,
        is_open: bool = False,
    ) -> MessageT:
        metadata = [(key, value) for key, value in context.invocation_metadata() or ()]
        request_id = choose_request_id(_first(metadata, _REQUEST_ID))
        record = RequestRecord(
            "grpc", method, request_id, self._metrics, {k: v for k, v in metadata if isinstance(v, str)}
        )
        try:
            check_metadata(metadata, self._settings.max_metadata_bytes)
            if not is_open:  # probes have no key
                record.note_key(self._keys.authenticate(_first(metadata, "authorization")))
            response = await run(record)
        except asyncio.CancelledError:
            remaining_s = _remaining_s(context)
            if remaining_s is not None and remaining_s < _DEADLINE_SLACK_S:  # gRPC itself cancels at the deadline
                record.log_failure(ServingError("deadline_exceeded", "No answer within the caller's deadline."))
            else:
                record.log_cancelled()
            raise
        except Exception as error:
            record.log_failure(error)
            failure = describe(error)
            context.set_code(grpc.StatusCode[failure.kind.grpc])
            context.set_details(f"{failure.message} {failure.hint}")
            trailing = [(_REQUEST_ID, request_id), ("mqan-code", failure.code)]
            if failure.retry_after_s is not None:
                trailing.append(("retry-after", str(failure.retry_after_s)))
            if failure.kind.grpc == "INTERNAL":  # clients ask again after a proxy's own, whose server has just gone
                trailing.append(("grpc-retry-pushback-ms", "-1"))
            context.set_trailing_metadata(trailing)
            return empty()
        finally:
            record.count()
        context.set_trailing_metadata([(_REQUEST_ID, request_id)])  # a list: Ray Serve adds its own
        return response


def add_question_answering(servicer: Any, server: Any) -> None:
    """Register ``servicer.Answer`` and ``servicer.GetModel`` with a server."""
    _register(server, SERVICE_NAME, {"Answer": servicer.Answer, "GetModel": servicer.GetModel})


def add_health(servicer: Any, server: Any) -> None:
    """Register ``servicer.Check`` with a server.

    ``Watch`` is left out: its specification lets a server answer UNIMPLEMENTED, and a stream that never ends would
    hold up every drain.
    """
    _register(server, HEALTH_SERVICE_NAME, {"Check": servicer.Check})


def _register(server: Any, service_name: str, methods: dict[str, Callable[..., Any]]) -> None:
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(
            _sparing(method),
            request_deserializer=None,  # the methods parse the bytes themselves
            response_serializer=_serialize,
        )
        for name, method in methods.items()
    }
    factory = getattr(server, "service_handler_factory", None)  # of Ray Serve's: it makes what takes the methods' place
    if factory is not None:
        server.service_handler_factory = lambda **arguments: _sparing(factory(**arguments))
    try:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service_name, handlers),))
        server.add_registered_method_handlers(service_name, handlers)
    finally:
        if factory is not None:
            server.service_handler_factory = factory


def _sparing(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Let a call whose caller has gone end without a response: grpc.aio never frees one that it cannot send.

    (https://github.com/grpc/grpc/issues/43360)
    """

    if not iscoroutinefunction(call):  # it streams
        return call

    @wraps(call)
    async def run(message: bytes, context: Any) -> Any:
        response = await call(message, context)
        task = asyncio.current_task()
        is_cancelled = task is not None and task.cancelling() > 0  # also if somebody has caught that
        if is_cancelled or _remaining_s(context) == 0:
            raise asyncio.CancelledError
        return response

    return run


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _first(metadata: list[tuple[str, Any]], key: str) -> str | None:
    return next((value for name, value in metadata if name == key and isinstance(value, str)), None)


def _remaining_s(context: Context) -> float | None:
    """Return the seconds until the caller's deadline, 0 after it; None without one.

    Ray Serve does not tell it, but cancels the call when it has passed, which has the same effect.
    """
    time_remaining = getattr(context, "time_remaining", None)
    return None if time_remaining is None else time_remaining()


def parse_message(message_type: Callable[[], MessageT], content: bytes) -> MessageT:
    """Read a message of the contract.

    Raises:
        InputError: it is none, or has fields that this server does not know.
    """
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
            what = f"an unknown field, number {UnknownFieldSet(message)[0].field_number}"
        hint = "Use the version of the contract that this server publishes by reflection."
        raise InputError("unknown_field", "request", f"The request has {what}.", hint)
    return message


def _question(request: answer_pb2.AnswerRequest, remaining_s: float | None) -> Question:
    """Return the question of a request.

    Raises:
        InputError: a source is none of the contract's.
    """
    names = [_SOURCE_NAMES.get(source) for source in request.sources]
    if None in names:
        message = "sources names a source that is neither context, question nor vocabulary."
        raise InputError("wrong_type", "sources", message, "Use the contract's enumeration Source.")
    return Question(
        context=request.context,
        question=request.question,
        max_answer_tokens=request.max_answer_tokens if request.HasField("max_answer_tokens") else None,
        timeout_ms=None if remaining_s is None else max(1, math.ceil(1000 * remaining_s)),
        choices=[ChoiceField(label=c.label, description=c.description) for c in request.choices] or None,
        multiple=request.multiple,
        yes_no=request.yes_no,
        scale=list(request.scale) or None,
        sources=[name for name in names if name is not None] or None,
        contiguous=request.contiguous,
        all=request.all,
        alternatives=request.alternatives,
        explain=request.explain,
        min_probability=request.min_probability if request.HasField("min_probability") else None,
    )


def _answer_response(answer: Answer, model: Model) -> answer_pb2.AnswerResponse:
    return answer_pb2.AnswerResponse(
        answer=answer.text,
        probability=answer.probability,
        tokens=[_token(token) for token in answer.tokens],
        spans=[_span(span) for span in answer.spans],
        truncated=answer.truncated,
        model=answer_pb2.ModelVersion(name=model.name, version=model.version),
        answered=answer.answered,
        confidence=answer.confidence,
        choices=[
            answer_pb2.ChoiceProbability(label=choice.label, probability=share, spans=[_span(s) for s in choice.spans])
            for choice, share in zip(answer.choices, answer.shares, strict=True)
        ],
        chosen=answer.chosen,
        expected=answer.expected,
        windows=answer.num_windows,
        places=[answer_pb2.Place(span=_span(place.span), probability=place.probability) for place in answer.places],
        alternatives=[
            answer_pb2.Alternative(
                answer=other.text,
                probability=other.probability,
                tokens=[_token(token) for token in other.tokens],
                spans=[_span(span) for span in other.spans],
            )
            for other in answer.alternatives
        ],
        steps=[
            answer_pb2.Step(
                context=_weights(step.context),
                question=_weights(step.question),
                candidates=[
                    answer_pb2.Candidate(text=c.text, probability=c.probability, source=_SOURCES[c.source])
                    for c in step.candidates
                ],
            )
            for step in answer.explanation
        ],
    )


def _weights(weights: Sequence[tuple[Span, float]]) -> list[answer_pb2.PointerWeight]:
    return [
        answer_pb2.PointerWeight(span=answer_pb2.TextSpan(start=span.start, end=span.end), weight=weight)
        for span, weight in weights
    ]


def _token(token: AnswerToken) -> answer_pb2.AnswerToken:
    masses = token.masses
    return answer_pb2.AnswerToken(
        text=token.text,
        probability=token.probability,
        source=_SOURCES[token.source],
        masses=answer_pb2.SourceMasses(context=masses.context, question=masses.question, vocabulary=masses.vocabulary),
        span=None if token.span is None else answer_pb2.TextSpan(start=token.span.start, end=token.span.end),
    )


def _span(span: AnswerSpan) -> answer_pb2.AnswerSpan:
    return answer_pb2.AnswerSpan(source=_SOURCES[span.source], start=span.start, end=span.end, text=span.text)


def _model_response(model: Model) -> answer_pb2.GetModelResponse:
    return answer_pb2.GetModelResponse(
        model=answer_pb2.ModelVersion(name=model.name, version=model.version),
        sha256=model.sha256,
        provider=model.provider,
        limits=answer_pb2.Limits(**asdict(model.limits)),
        num_generated=model.num_generated,
        num_words=model.num_words,
        scores=[answer_pb2.Score(task=s.task, metric=s.metric, value=s.value) for s in model.scores],
        server_version=__version__,
    )
