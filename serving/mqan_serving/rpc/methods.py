"""gRPC: the methods of ``mqan.v1.QuestionAnswering`` and of the standard health check, and what a server registers.

The methods take and return what a plain ``grpc.aio`` server and Ray Serve both offer: the bytes of the request and a
context on which the status is set.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from operator import methodcaller
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from mqan.v1 import answer_pb2
from mqan_serving.contract.calls import texts_of
from mqan_serving.contract.errors import ServingError
from mqan_serving.contract.model import model_document
from mqan_serving.contract.questions import Question
from mqan_serving.observability.logs import RequestLog, answer_and_log, answer_one, stream_and_log, using
from mqan_serving.records.documents import record_document
from mqan_serving.records.filling import fill_record
from mqan_serving.rpc import messages
from mqan_serving.rpc.guard import Context, RpcGuard, parse_message, remaining_s_of, sparing
from mqan_serving.service.many import answers_document
from mqan_serving.service.models import Models

SERVICE_NAME = "mqan.v1.QuestionAnswering"
HEALTH_SERVICE_NAME = "grpc.health.v1.Health"
SERVICE_NAMES = (SERVICE_NAME, HEALTH_SERVICE_NAME)
_STREAMED = ("AnswerStream",)  # methods with several responses

_REFLECTION, _FILE = "grpc.reflection.v1", "grpc/reflection/v1/reflection.proto"
V1: Final = f"{_REFLECTION}.ServerReflection"


class QuestionAnsweringMethods:
    """The methods of ``mqan.v1.QuestionAnswering`` and of the health check, by the contract's names."""

    def __init__(self, get_models: Callable[[], Models], guard: RpcGuard) -> None:
        self._get_models = get_models
        self._guard = guard

    async def Answer(self, message: bytes, grpc_context: Context) -> answer_pb2.AnswerResponse:
        async def run(log: RequestLog) -> answer_pb2.AnswerResponse:
            models = self._get_models()
            question = _read_question(message, grpc_context, models, log)
            return messages.answer_response(await answer_one(models, question, log))

        return await self._guard.run("Answer", run, answer_pb2.AnswerResponse, grpc_context)

    async def AnswerStream(
        self, message: bytes, grpc_context: Context
    ) -> AsyncGenerator[answer_pb2.AnswerStreamResponse, None]:
        async def run(log: RequestLog) -> AsyncGenerator[answer_pb2.AnswerStreamResponse, None]:
            models = self._get_models()
            question = _read_question(message, grpc_context, models, log)
            async with aclosing(stream_and_log(models, question, log)) as parts:
                async for name, document in parts:
                    yield messages.stream_response(name, document)

        stream = self._guard.stream("AnswerStream", run, answer_pb2.AnswerStreamResponse, grpc_context)
        async with aclosing(stream) as responses:
            async for response in responses:
                yield response

    async def AnswerMany(self, message: bytes, grpc_context: Context) -> answer_pb2.AnswerManyResponse:
        async def run(log: RequestLog) -> answer_pb2.AnswerManyResponse:
            models = self._get_models()
            models.check_size(len(message))
            request = parse_message(answer_pb2.AnswerManyRequest, message)
            remaining_s = remaining_s_of(grpc_context)
            texts = await models.aside(len(message), lambda: texts_of(messages.call_document(request, remaining_s)))
            async with using(models, request.model, log, messages.timeout_ms_of(remaining_s)) as service:
                outcomes = await answer_and_log(service, log, texts)
                return await models.aside(
                    len(message), lambda: messages.answers_response(answers_document(texts, outcomes, service.model))
                )

        return await self._guard.run("AnswerMany", run, answer_pb2.AnswerManyResponse, grpc_context)

    async def FillRecord(self, message: bytes, grpc_context: Context) -> answer_pb2.FillRecordResponse:
        async def run(log: RequestLog) -> answer_pb2.FillRecordResponse:
            models = self._get_models()
            models.check_size(len(message))
            request = messages.record_request_of(
                parse_message(answer_pb2.FillRecordRequest, message), remaining_s_of(grpc_context)
            )
            async with using(models, request.model, log, request.timeout_ms) as service:
                record = await fill_record(request, service, partial(answer_and_log, service, log))
                return messages.record_response(record_document(record, service.model))

        return await self._guard.run("FillRecord", run, answer_pb2.FillRecordResponse, grpc_context)

    async def GetModel(self, message: bytes, grpc_context: Context) -> answer_pb2.GetModelResponse:
        async def run(log: RequestLog) -> answer_pb2.GetModelResponse:
            request = parse_message(answer_pb2.GetModelRequest, message)
            async with using(self._get_models(), request.model, log) as service:
                return messages.model_response(model_document(service.model, service.adapters.documents()))

        return await self._guard.run("GetModel", run, answer_pb2.GetModelResponse, grpc_context)

    async def Check(self, message: bytes, grpc_context: Context) -> health_pb2.HealthCheckResponse:
        async def run(_: RequestLog) -> health_pb2.HealthCheckResponse:
            name = parse_message(health_pb2.HealthCheckRequest, message).service
            if name not in ("", SERVICE_NAME):
                raise ServingError(
                    "not_found", "There is no service of this name; use '' or mqan.v1.QuestionAnswering."
                )
            statuses = health_pb2.HealthCheckResponse
            ready = self._get_models().why_not_ready is None
            return statuses(status=statuses.SERVING if ready else statuses.NOT_SERVING)

        return await self._guard.run("Check", run, health_pb2.HealthCheckResponse, grpc_context, is_open=True)


def add_question_answering(servicer: Any, server: Any) -> None:
    names = ("Answer", "AnswerMany", "AnswerStream", "FillRecord", "GetModel")
    _register(server, SERVICE_NAME, {name: getattr(servicer, name) for name in names})


def add_health(servicer: Any, server: Any) -> None:
    """Register ``Check``; ``Watch`` may be left out, and would hold up every drain, since it never ends."""
    _register(server, HEALTH_SERVICE_NAME, {"Check": servicer.Check})


def _register(server: Any, service_name: str, methods: dict[str, Callable[..., Any]]) -> None:
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    serialize = methodcaller("SerializeToString")
    for name, method in methods.items():
        is_streamed = name in _STREAMED  # not told by the method: Ray registers names without methods
        make: Any = grpc.unary_stream_rpc_method_handler if is_streamed else grpc.unary_unary_rpc_method_handler
        # the methods parse the bytes themselves
        handlers[name] = make(sparing(method), request_deserializer=None, response_serializer=serialize)
    factory = getattr(server, "service_handler_factory", None)  # of Ray Serve's: it makes what takes the methods' place
    if factory is not None:
        server.service_handler_factory = lambda **arguments: sparing(factory(**arguments))
    try:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service_name, handlers),))
        server.add_registered_method_handlers(service_name, handlers)
    finally:
        if factory is not None:
            server.service_handler_factory = factory


def _read_question(message: bytes, context: Context, models: Models, log: RequestLog) -> Question:
    models.check_size(len(message))
    question = messages.question_of_message(parse_message(answer_pb2.AnswerRequest, message), remaining_s_of(context))
    log.note_question(question)
    return question


def add_reflection(services: Sequence[str], server: grpc.aio.Server) -> None:
    """Let tools list the services of a server by v1alpha, which the library has, and v1, of the same messages."""
    _describe_v1()
    servicer = reflection.aio.ReflectionServicer((*services, reflection.SERVICE_NAME, V1))
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(V1, {"ServerReflectionInfo": method}),))


def _describe_v1() -> None:
    pool = descriptor_pool.Default()
    try:
        pool.FindFileContainingSymbol(V1)
    except KeyError:
        file = descriptor_pb2.FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(file)
        text = text_format.MessageToString(file).replace(reflection_pb2.DESCRIPTOR.package, _REFLECTION)
        file = text_format.Parse(text, descriptor_pb2.FileDescriptorProto())
        file.name = _FILE
        pool.AddSerializedFile(file.SerializeToString())
