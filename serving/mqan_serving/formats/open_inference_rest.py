"""The Open Inference Protocol over REST, with tensors in JSON or, as NVIDIA's extension has them, in binary behind it.

(https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md)
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from mqan_core import __version__
from mqan_serving.formats.adapting import (
    Place,
    as_flag,
    as_list,
    as_object,
    as_string,
    as_whole,
    get,
    read_object,
    refuse,
)
from mqan_serving.formats.foreign import CODES_OF_MODELS, Respond, Wait, content, responses
from mqan_serving.formats.open_inference import (
    BINARY_EXTENSION,
    DATATYPE,
    INPUTS,
    OUTPUTS,
    PLATFORM,
    SERVER_NAME,
    InferRequest,
    Tensor,
    check_model,
    decode_elements,
    encode_elements,
    outputs_of,
    texts_of,
)
from mqan_serving.formats.open_inference_examples import METADATA, REQUEST, RESPONSE
from mqan_serving.observability.logs import RequestRecord
from mqan_serving.service.answer_service import Model, Service
from mqan_serving.service.errors import CODES_OF_ANSWER
from mqan_serving.service.many import MOST_IN_ALL, answer_texts

_OBJECT: Final = {"type": "object"}
_TAGS: Final[list[Any]] = ["formats of others"]
_HEADER: Final = "inference-header-content-length"  # bytes of JSON, where tensors in binary follow
_BINARY: Final = "application/octet-stream"
_MEDIA_TYPES: Final = ("application/json", _BINARY, "")  # NVIDIA's client sends no type
_MODEL: Final = "/v2/models/{model_name}"
_VERSION: Final = "/versions/{model_version}"
_MOST_SIZE: Final = 2**63 - 1  # of a dimension, as over gRPC
_SERVER: Final = {"name": SERVER_NAME, "version": __version__, "extensions": [BINARY_EXTENSION]}
_CODES_OF_HEALTH: Final = ("unknown_host", "metadata_too_large", "unavailable", "internal")


@dataclass(frozen=True, slots=True)
class _Read:
    """A request that has been read.

    Attributes:
        id: what it is called by its caller, if anything.
        asked: what is asked.
        binary: which outputs are wanted in binary.
    """

    id: str | None
    asked: InferRequest
    binary: frozenset[str]


def add_inference_routes(
    app: FastAPI, get_service: Callable[[], Service], respond: Respond, wait: Wait, dependencies: list[Any]
) -> None:
    """Add the routes; those with a version are not in the API document.

    Args:
        app: where to.
        get_service: returns the service.
        respond: runs what answers a request, and tells whatever goes wrong.
        wait: awaits answers for as long as the caller is there.
        dependencies: of the routes that need a key.
    """
    _add_health(app, get_service)

    @app.get(
        "/v2",
        responses=responses("/v2", _SERVER, _OBJECT, CODES_OF_MODELS),
        dependencies=dependencies,
        summary="Describe the server, as the Open Inference Protocol does",
        operation_id="inferenceServerMetadata",
        tags=_TAGS,
    )
    async def describe_server() -> Response:
        return JSONResponse(_SERVER)

    async def describe_model(model_name: str, model_version: str = "") -> Response:
        model = get_service().model
        check_model(model, model_name, model_version)
        return JSONResponse(_metadata(model))

    async def infer(request: Request, model_name: str, model_version: str = "") -> Response:
        async def run(service: Service, record: RequestRecord) -> Response:
            check_model(service.model, model_name, model_version)
            body = await request.body()
            read = _read(body, request.headers.get(_HEADER))
            texts = await service.aside(len(body), lambda: texts_of(service, read.asked))
            outcomes = await wait(request, answer_texts(service, texts, record))

            def tell() -> Response:
                return _response(read, outputs_of(read.asked, outcomes, service.model), service.model)

            return await service.aside(len(body), tell)

        return await respond(request, run, _MEDIA_TYPES)

    for version in ("", _VERSION):
        app.get(
            _MODEL + version,
            responses=responses(_MODEL, METADATA, _OBJECT, (*CODES_OF_MODELS, "unknown_model")),
            dependencies=dependencies,
            summary="Describe the tensors of the model",
            operation_id="inferenceModelMetadata",
            tags=_TAGS,
            include_in_schema=not version,
        )(describe_model)
        app.post(
            f"{_MODEL}{version}/infer",
            openapi_extra={"requestBody": {"required": True, "content": content(REQUEST, _OBJECT)}},
            responses=responses(f"{_MODEL}/infer", RESPONSE, _OBJECT, (*CODES_OF_ANSWER, "unknown_model")),
            dependencies=dependencies,
            summary="Answer a batch of questions in tensors, as the Open Inference Protocol has them",
            operation_id="inferenceInfer",
            tags=_TAGS,
            include_in_schema=not version,
        )(infer)


def _add_health(app: FastAPI, get_service: Callable[[], Service]) -> None:
    @app.get(
        "/v2/health/live",
        responses=responses("/v2/health/live", {"live": True}, _OBJECT, _CODES_OF_HEALTH),
        summary="Whether the process works, as the Open Inference Protocol says it",
        operation_id="inferenceServerLive",
        tags=_TAGS,
    )
    async def is_live() -> Response:
        get_service().check_live()
        return JSONResponse({"live": True})

    @app.get(
        "/v2/health/ready",
        responses=responses("/v2/health/ready", {"ready": True}, _OBJECT, _CODES_OF_HEALTH),
        summary="Whether to send requests here, as the Open Inference Protocol says it",
        operation_id="inferenceServerReady",
        tags=_TAGS,
    )
    async def is_ready() -> Response:
        get_service().check_ready()
        return JSONResponse({"ready": True})

    async def is_model_ready(model_name: str, model_version: str = "") -> Response:
        service = get_service()
        check_model(service.model, model_name, model_version)
        service.check_ready()
        return JSONResponse({"name": service.model.name, "ready": True})

    for version in ("", _VERSION):
        app.get(
            f"{_MODEL}{version}/ready",
            responses=responses(
                f"{_MODEL}/ready",
                {"name": "mqan-default", "ready": True},
                _OBJECT,
                (*_CODES_OF_HEALTH, "unknown_model"),
            ),
            summary="Whether the model takes requests",
            operation_id="inferenceModelReady",
            tags=_TAGS,
            include_in_schema=not version,
        )(is_model_ready)


def _metadata(model: Model) -> dict[str, Any]:
    def describe(name: str) -> dict[str, Any]:
        return {"name": name, "datatype": DATATYPE, "shape": [-1]}

    return {
        "name": model.name,
        "versions": [model.version],
        "platform": PLATFORM,
        "inputs": [describe(name) for name in INPUTS],
        "outputs": [describe(name) for name in OUTPUTS],
    }


def _read(body: bytes, header: str | None) -> _Read:
    """Read a request.

    Args:
        body: the JSON document, and tensors in binary behind it.
        header: how many bytes the document has, where tensors follow.

    Raises:
        PlacedError: something in it is wrong; it says where.
    """
    num_bytes = len(body)
    if header is not None:
        num_bytes = int(header[:20]) if header.isdecimal() and header.isascii() else num_bytes + 1
        if num_bytes > len(body):
            message = "The header Inference-Header-Content-Length is no number of bytes that the body has."
            raise refuse("malformed_request", (), message, "Send how many bytes of the body are JSON.")
    document = read_object(body[:num_bytes])
    tensors, rest = [], body[num_bytes:]
    for i, row in enumerate(as_list(get(document, "inputs", ()), ("inputs",), 1, len(INPUTS))):
        tensor, rest = _read_tensor(row, rest, ("inputs", str(i)))
        tensors.append(tensor)
    if rest:
        message = f"{len(rest)} bytes follow that are of no input."
        raise refuse("malformed_request", ("inputs",), message, "Send binary_data_size with each input in binary.")
    parameters = _object_of(document, "parameters", ())
    is_binary = as_flag(parameters.get("binary_data_output", False), ("parameters", "binary_data_output"))
    wanted = _read_outputs(document, is_binary)
    asked = {name: value for name, value in parameters.items() if name != "binary_data_output"}
    name = document.get("id")
    return _Read(
        None if name is None else as_string(name, ("id",)),
        InferRequest(tensors, asked, list(wanted)),
        frozenset(name for name in wanted or OUTPUTS if wanted.get(name, is_binary)),
    )


def _read_tensor(row: Any, rest: bytes, place: Place) -> tuple[Tensor, bytes]:
    row = as_object(row, place)
    size = _object_of(row, "parameters", place).get("binary_data_size")
    if size is None:
        data = as_list(get(row, "data", place), (*place, "data"), 0, MOST_IN_ALL)
        texts = [as_string(text, (*place, "data", str(i))) for i, text in enumerate(data)]
    else:
        end = as_whole(size, (*place, "parameters", "binary_data_size"), 0, len(rest))
        texts, rest = decode_elements(rest[:end], place), rest[end:]
    given = as_list(get(row, "shape", place), (*place, "shape"), 0, 8)
    shape = [as_whole(size, (*place, "shape"), -_MOST_SIZE, _MOST_SIZE) for size in given]
    datatype = as_string(get(row, "datatype", place), (*place, "datatype"))
    return Tensor(as_string(get(row, "name", place), (*place, "name")), datatype, shape, texts), rest


def _read_outputs(document: dict[str, Any], is_binary: bool) -> dict[str, bool]:
    """Return the names of the outputs that are wanted, and whether in binary."""
    found: dict[str, bool] = {}
    given = document.get("outputs")
    for i, row in enumerate([] if given is None else as_list(given, ("outputs",), 0, 2 * len(OUTPUTS))):
        place = ("outputs", str(i))
        output = as_object(row, place)
        wanted = _object_of(output, "parameters", place).get("binary_data", is_binary)
        name = as_string(get(output, "name", place), (*place, "name"))
        found[name] = as_flag(wanted, (*place, "parameters", "binary_data"))
    return found


def _object_of(document: dict[str, Any], name: str, place: Place) -> dict[str, Any]:
    value = document.get(name)
    return {} if value is None else as_object(value, (*place, name))


def _response(read: _Read, outputs: dict[str, list[str]], model: Model) -> Response:
    tensors, binary = [], []
    for name, texts in outputs.items():
        tensor: dict[str, Any] = {"name": name, "shape": [len(texts)], "datatype": DATATYPE}
        if name in read.binary:
            binary.append(encode_elements(texts))
            tensor["parameters"] = {"binary_data_size": len(binary[-1])}
        else:
            tensor["data"] = texts
        tensors.append(tensor)
    named = {} if read.id is None else {"id": read.id}
    document = {"model_name": model.name, "model_version": model.version, **named, "outputs": tensors}
    head = json.dumps(document, ensure_ascii=False).encode("utf-8")
    if not binary:
        return Response(head, media_type="application/json")
    return Response(b"".join((head, *binary)), media_type=_BINARY, headers={_HEADER: str(len(head))})
