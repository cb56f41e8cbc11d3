"""gRPC: the methods of ``mqan.v1.QuestionAnswering`` and the standard health check.

The methods take and return what a plain ``grpc.aio`` server and Ray Serve both offer: the bytes of the request and a
context on which the status is set. The bytes are parsed here rather than by the transport, so that malformed ones are
refused like any other bad input, and no exception ever reaches a transport that would pass its text on.
"""

import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict
from inspect import isasyncgenfunction
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from grpc_health.v1 import health_pb2

from mqan.v1 import answer_pb2
from mqan_core import __version__
from mqan_core.answer import Answer, AnswerSpan, AnswerToken, Source, Span
from mqan_core.errors import InputError
from mqan_serving.asked import ChoiceField, SourceName
from mqan_serving.errors import ServingError
from mqan_serving.keys import ApiKeys
from mqan_serving.metrics import Metrics
from mqan_serving.rpc_calls import CallGuard, Context, remaining_s, sparing
from mqan_serving.service import Model, Service
from mqan_serving.settings import Settings
from mqan_serving.streaming import stream_answer
from mqan_serving.telemetry import RequestRecord
from mqan_serving.validation import Question

SERVICE_NAME = "mqan.v1.QuestionAnswering"
HEALTH_SERVICE_NAME = "grpc.health.v1.Health"

_LISTED_BYTES = 1024  # of unknown fields, up to which the first is named
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
        self._guard = CallGuard(settings, keys, metrics)

    async def answer(self, message: bytes, context: Context) -> answer_pb2.AnswerResponse:
        """Answer one question about one context."""

        async def run(record: RequestRecord) -> answer_pb2.AnswerResponse:
            service = self._get_service()
            question = _read_question(message, context, service, record)
            result = await service.answer(question, record.timeline)
            record.note_answer(result)
            return _answer_response(result, service.model)

        return await self._guard.respond("Answer", run, answer_pb2.AnswerResponse, context)

    def answer_stream(self, message: bytes, context: Context) -> AsyncGenerator[answer_pb2.AnswerStreamResponse, None]:
        """Answer one question about one context word by word."""

        async def run(record: RequestRecord) -> AsyncGenerator[answer_pb2.AnswerStreamResponse, None]:
            service = self._get_service()
            question = _read_question(message, context, service, record)
            async with aclosing(stream_answer(service, question, record.timeline)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        response = _answer_response(part, service.model)
                        record.note_answer(part)
                        record.count()
                        yield answer_pb2.AnswerStreamResponse(answer=response)
                    else:
                        word = answer_pb2.StreamedWord(token=_token(part.token), delta=part.delta)
                        yield answer_pb2.AnswerStreamResponse(word=word)

        return self._guard.stream("AnswerStream", run, context)

    async def get_model(self, message: bytes, context: Context) -> answer_pb2.GetModelResponse:
        """Describe the model and its limits."""

        async def run(_: RequestRecord) -> answer_pb2.GetModelResponse:
            parse_message(answer_pb2.GetModelRequest, message)
            return _model_response(self._get_service().model)

        return await self._guard.respond("GetModel", run, answer_pb2.GetModelResponse, context)

    async def check(self, message: bytes, context: Context) -> health_pb2.HealthCheckResponse:
        """Say whether requests should be sent here, for the whole server or for the service by its name."""

        async def run(_: RequestRecord) -> health_pb2.HealthCheckResponse:
            name = parse_message(health_pb2.HealthCheckRequest, message).service
            if name not in ("", SERVICE_NAME):
                raise ServingError("not_found", "There is no service of this name.")
            statuses = health_pb2.HealthCheckResponse
            ready = self._get_service().why_not_ready is None
            return statuses(status=statuses.SERVING if ready else statuses.NOT_SERVING)

        return await self._guard.respond("Check", run, health_pb2.HealthCheckResponse, context, is_open=True)


def add_question_answering(servicer: Any, server: Any) -> None:
    """Register ``servicer.Answer``, ``servicer.AnswerStream`` and ``servicer.GetModel`` with a server."""
    methods = {"Answer": servicer.Answer, "AnswerStream": servicer.AnswerStream, "GetModel": servicer.GetModel}
    _register(server, SERVICE_NAME, methods)


def add_health(servicer: Any, server: Any) -> None:
    """Register ``servicer.Check`` with a server.

    ``Watch`` is left out: its specification lets a server answer UNIMPLEMENTED, and a stream that never ends would
    hold up every drain.
    """
    _register(server, HEALTH_SERVICE_NAME, {"Check": servicer.Check})


def _register(server: Any, service_name: str, methods: dict[str, Callable[..., Any]]) -> None:
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for name, method in methods.items():
        make: Any = (
            grpc.unary_stream_rpc_method_handler if isasyncgenfunction(method) else grpc.unary_unary_rpc_method_handler
        )
        # the methods parse the bytes themselves
        handlers[name] = make(sparing(method), request_deserializer=None, response_serializer=_serialize)
    factory = getattr(server, "service_handler_factory", None)  # of Ray Serve's: it makes what takes the methods' place
    if factory is not None:
        server.service_handler_factory = lambda **arguments: sparing(factory(**arguments))
    try:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service_name, handlers),))
        server.add_registered_method_handlers(service_name, handlers)
    finally:
        if factory is not None:
            server.service_handler_factory = factory


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


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


def _read_question(message: bytes, context: Context, service: Service, record: RequestRecord) -> Question:
    """Return the question of a message, and note it.

    Raises:
        InputError: the message is none, or is too large.
    """
    service.validator.check_size(len(message))
    question = _question(parse_message(answer_pb2.AnswerRequest, message), remaining_s(context))
    record.note_question(question)
    return question


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
