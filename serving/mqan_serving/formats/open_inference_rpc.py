"""The Open Inference Protocol over gRPC: the methods of ``inference.GRPCInferenceService``."""

from typing import Any, Final

from mqan.inference import open_inference_pb2 as pb2
from mqan_core import __version__
from mqan_serving.formats.adapting import Place, refuse
from mqan_serving.formats.open_inference import (
    DATATYPE,
    INPUTS,
    OUTPUTS,
    PLATFORM,
    SERVER_NAME,
    InferRequest,
    Tensor,
    check_model,
    decode_elements,
    decode_texts,
    encode_elements,
    outputs_of,
    texts_of,
)
from mqan_serving.observability.logs import RequestRecord
from mqan_serving.rpc.guard import Context, RpcMethods, parse_message
from mqan_serving.service.answer_service import Model
from mqan_serving.service.many import answer_texts

INFERENCE_SERVICE_NAME: Final = "inference.GRPCInferenceService"
INFERENCE_METHODS: Final = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")


class InferenceMethods(RpcMethods):
    """The methods, by the protocol's names. As of the health check, those that probes call need no key."""

    async def ServerLive(self, message: bytes, grpc_context: Context) -> pb2.ServerLiveResponse:
        """Say whether the server works."""

        async def run(_: RequestRecord) -> pb2.ServerLiveResponse:
            parse_message(pb2.ServerLiveRequest, message)
            return pb2.ServerLiveResponse(live=self._get_service().health.is_live)

        return await self._guard.run("Check", run, pb2.ServerLiveResponse, grpc_context, is_open=True)

    async def ServerReady(self, message: bytes, grpc_context: Context) -> pb2.ServerReadyResponse:
        """Say whether requests should be sent here."""

        async def run(_: RequestRecord) -> pb2.ServerReadyResponse:
            parse_message(pb2.ServerReadyRequest, message)
            return pb2.ServerReadyResponse(ready=self._get_service().why_not_ready is None)

        return await self._guard.run("Check", run, pb2.ServerReadyResponse, grpc_context, is_open=True)

    async def ModelReady(self, message: bytes, grpc_context: Context) -> pb2.ModelReadyResponse:
        """Say whether the model takes requests."""

        async def run(_: RequestRecord) -> pb2.ModelReadyResponse:
            request = parse_message(pb2.ModelReadyRequest, message)
            service = self._get_service()
            check_model(service.model, request.name, request.version)
            return pb2.ModelReadyResponse(ready=service.why_not_ready is None)

        return await self._guard.run("Check", run, pb2.ModelReadyResponse, grpc_context, is_open=True)

    async def ServerMetadata(self, message: bytes, grpc_context: Context) -> pb2.ServerMetadataResponse:
        """Describe the server."""

        async def run(_: RequestRecord) -> pb2.ServerMetadataResponse:
            parse_message(pb2.ServerMetadataRequest, message)
            return pb2.ServerMetadataResponse(name=SERVER_NAME, version=__version__)

        return await self._guard.run("GetModel", run, pb2.ServerMetadataResponse, grpc_context)

    async def ModelMetadata(self, message: bytes, grpc_context: Context) -> pb2.ModelMetadataResponse:
        """Describe the tensors of the model."""

        async def run(_: RequestRecord) -> pb2.ModelMetadataResponse:
            request = parse_message(pb2.ModelMetadataRequest, message)
            model = self._get_service().model
            check_model(model, request.name, request.version)
            return _metadata(model)

        return await self._guard.run("GetModel", run, pb2.ModelMetadataResponse, grpc_context)

    async def ModelInfer(self, message: bytes, grpc_context: Context) -> pb2.ModelInferResponse:
        """Answer a batch of questions."""

        async def run(record: RequestRecord) -> pb2.ModelInferResponse:
            service = self._get_service()
            service.validator.check_size(len(message))
            request = parse_message(pb2.ModelInferRequest, message)
            check_model(service.model, request.model_name, request.model_version)
            asked = _read(request)
            texts = await service.aside(len(message), lambda: texts_of(service, asked))
            outcomes = await answer_texts(service, texts, record)

            def tell() -> pb2.ModelInferResponse:
                return _response(request, outputs_of(asked, outcomes, service.model), service.model)

            return await service.aside(len(message), tell)

        return await self._guard.run("AnswerMany", run, pb2.ModelInferResponse, grpc_context)


def _metadata(model: Model) -> pb2.ModelMetadataResponse:
    def describe(name: str) -> pb2.ModelMetadataResponse.TensorMetadata:
        return pb2.ModelMetadataResponse.TensorMetadata(name=name, datatype=DATATYPE, shape=[-1])

    return pb2.ModelMetadataResponse(
        name=model.name,
        versions=[model.version],
        platform=PLATFORM,
        inputs=map(describe, INPUTS),
        outputs=map(describe, OUTPUTS),
    )


def _read(request: pb2.ModelInferRequest) -> InferRequest:
    raw = request.raw_input_contents
    if raw and (len(raw) != len(request.inputs) or any(tensor.HasField("contents") for tensor in request.inputs)):
        message = "raw_input_contents does not hold every input, or an input has contents beside it."
        raise refuse("invalid_input", ("raw_input_contents",), message, "Send all inputs in one of the two ways.")
    tensors = []
    for i, tensor in enumerate(request.inputs):
        place: Place = ("inputs", str(i))
        texts = decode_elements(raw[i], place) if raw else decode_texts(tensor.contents.bytes_contents, place)
        tensors.append(Tensor(tensor.name, tensor.datatype, tensor.shape, texts))
    parameters: dict[str, Any] = {}
    for name, given in request.parameters.items():
        kind = given.WhichOneof("parameter_choice")
        parameters[name] = None if kind is None else getattr(given, kind)
    return InferRequest(tensors, parameters, [output.name for output in request.outputs])


def _response(request: pb2.ModelInferRequest, outputs: dict[str, list[str]], model: Model) -> pb2.ModelInferResponse:
    """Return the response, its tensors in the way in which those of the request came."""
    is_raw = bool(request.raw_input_contents)
    tensors = []
    for name, texts in outputs.items():
        tensor = pb2.ModelInferResponse.InferOutputTensor(name=name, datatype=DATATYPE, shape=[len(texts)])
        if not is_raw:
            tensor.contents.bytes_contents.extend(text.encode("utf-8") for text in texts)
        tensors.append(tensor)
    return pb2.ModelInferResponse(
        model_name=model.name,
        model_version=model.version,
        id=request.id,
        outputs=tensors,
        raw_output_contents=map(encode_elements, outputs.values()) if is_raw else (),
    )
