"""The Open Inference Protocol, version 2, over REST (https://github.com/kserve/open-inference-protocol).

A request is a batch of questions in tensors of text: ``context`` and ``question``, one of each for a question or one
for all, and optionally ``choices`` for all. So is its response: ``answer``, and ``attributions``, which has for each
answer the JSON document of ``POST /v1/answer``. Tensors may stand in binary after the JSON, as in NVIDIA's extension
(https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md).
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any, Final, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field
from pydantic_core import to_json

from mqan_core import __version__
from mqan_core.answer.types import Answer
from mqan_serving.contract.answers import document_of
from mqan_serving.contract.calls import MOST_IN_ALL, AskedText, check_explained, check_shared, item_of
from mqan_serving.contract.errors import CODES_OF_ANSWER, AnsweringError, Failure, PlacedError, describe, shown_field
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import Question, json_body
from mqan_serving.formats.adapting import Part, Place, must, read, read_object, refuse
from mqan_serving.formats.foreign import CODES_OF_MODELS, EXAMPLES, Respond, responses
from mqan_serving.observability.logs import RequestLog, answer_and_log, using
from mqan_serving.service.answer_service import Service
from mqan_serving.service.catalog import Entry
from mqan_serving.service.many import Outcome
from mqan_serving.service.models import Models

INPUTS: Final = ("context", "question", "choices")
OUTPUTS: Final = ("answer", "attributions")
_NOT_FOR_TENSORS: Final = ("scale", "sources", "stream", "citations", "model")  # lists, and what changes the response
_PARAMETERS: Final = frozenset(Question.model_fields) - {*INPUTS, *_NOT_FOR_TENSORS}
_BINARY_OUTPUT: Final = "binary_data_output"
_LENGTH_BYTES: Final = 4  # before each text of a tensor in binary, the lowest first
_OBJECT: Final = {"type": "object"}
_HEADER: Final = "inference-header-content-length"  # bytes of JSON, where tensors in binary follow
_BINARY: Final = "application/octet-stream"
_MEDIA_TYPES: Final = ("application/json", _BINARY, "")  # NVIDIA's client sends no type
_MODEL: Final = "/v2/models/{model_name}"
_INFER: Final = f"{_MODEL}/infer"
_SERVER: Final = {"name": "mqan", "version": __version__, "extensions": ["binary_tensor_data"]}
_METADATA: Final = EXAMPLES[_MODEL]["response"]
_CODES_OF_HEALTH: Final = ("unknown_host", "metadata_too_large", "unavailable", "internal")


class _Binary(Part):
    binary_data_size: int | None = Field(default=None, ge=0)  # of an input
    binary_data: bool | None = None  # of an output


class _Input(Part):
    name: Literal["context", "question", "choices"]
    datatype: Annotated[str, must("BYTES".__eq__, "wrong_type", "it should be BYTES")]
    shape: list[int] = Field(max_length=8)
    data: list[str] | None = Field(default=None, max_length=MOST_IN_ALL)
    parameters: _Binary | None = None


class _Output(Part):
    name: Literal["answer", "attributions"]
    parameters: _Binary | None = None


class _InferRequest(Part):
    id: str | None = None
    inputs: list[_Input] = Field(min_length=1, max_length=len(INPUTS))
    outputs: list[_Output] | None = Field(default=None, max_length=2 * len(OUTPUTS))
    parameters: dict[str, Any] | None = None

    @property
    def wanted(self) -> dict[str, bool]:
        """The outputs that are wanted, and whether in binary."""
        usual = bool((self.parameters or {}).get(_BINARY_OUTPUT))
        named = {one.name: one.parameters and one.parameters.binary_data for one in self.outputs or ()}
        return {name: usual if named.get(name) is None else bool(named[name]) for name in named or OUTPUTS}


def add_inference_routes(
    app: FastAPI, get_models: Callable[[], Models], respond: Respond, dependencies: list[Any]
) -> None:
    """Add the routes; those with a version are not in the API document. ``dependencies``: of routes that need a key."""

    async def is_live() -> Response:
        get_models().check_live()
        return JSONResponse({"live": True})

    async def is_ready() -> Response:
        get_models().check_ready()
        return JSONResponse({"ready": True})

    async def is_model_ready(model_name: str, model_version: str = "") -> Response:
        models = get_models()
        found = _entry(models, model_name, model_version)
        models.check_ready()
        return JSONResponse({"name": found.name, "ready": True})

    async def describe_server() -> Response:
        return JSONResponse(_SERVER)

    async def describe_model(model_name: str, model_version: str = "") -> Response:
        found = _entry(get_models(), model_name, model_version)
        return JSONResponse(_METADATA | {"name": found.name, "versions": [found.version]})

    async def infer(request: Request, model_name: str, model_version: str = "") -> Response:
        async def run(body: bytes, models: Models, log: RequestLog) -> Response:
            found = _entry(models, model_name, model_version)
            asked, tensors = _read(body, request.headers.get(_HEADER))
            async with using(models, found.name, log) as service:
                texts = await models.aside(len(body), lambda: _texts_of(service, asked, tensors))
                outcomes = await answer_and_log(service, log, texts)
                return await models.aside(len(body), lambda: _response(asked, outcomes, service.model))

        return await respond(request, run, _MEDIA_TYPES)

    model_ready, result = {"name": _METADATA["name"], "ready": True}, EXAMPLES[_INFER]["response"]
    post: dict[str, Any] = {
        "methods": ["POST"],
        "openapi_extra": json_body(_OBJECT, example=EXAMPLES[_INFER]["request"]),
    }
    routes: list[tuple[str, Callable[..., Any], str, str, str, Any]] = [
        ("/v2/health/live", is_live, "Check", "ServerLive",
         "Whether the process works, as the Open Inference Protocol says it", {"live": True}),
        ("/v2/health/ready", is_ready, "Check", "ServerReady",
         "Whether to send requests here, as the Open Inference Protocol says it", {"ready": True}),
        (f"{_MODEL}/ready", is_model_ready, "Check", "ModelReady", "Whether the model takes requests", model_ready),
        ("/v2", describe_server, "GetModel", "ServerMetadata",
         "Describe the server, as the Open Inference Protocol does", _SERVER),
        (_MODEL, describe_model, "GetModel", "ModelMetadata", "Describe the tensors of the model", _METADATA),
        (_INFER, infer, "AnswerMany", "Infer",
         "Answer a batch of questions in tensors, as the Open Inference Protocol has them", result),
    ]  # fmt: skip
    for path, call, name, operation, summary, example in routes:
        codes = {"Check": _CODES_OF_HEALTH, "GetModel": CODES_OF_MODELS, "AnswerMany": CODES_OF_ANSWER}[name]
        more: dict[str, Any] = {"dependencies": [] if name == "Check" else dependencies}
        is_of_model = path.startswith(_MODEL)
        for version in ("", "/versions/{model_version}") if is_of_model else ("",):
            app.add_api_route(
                path.replace(_MODEL, _MODEL + version),
                call,
                responses=responses(path, example, _OBJECT, dict.fromkeys((*codes, *["unknown_model"] * is_of_model))),
                summary=summary,
                operation_id=f"inference{operation}",
                name=name,
                tags=["other formats"],
                include_in_schema=not version,
                **more,
                **(post if call is infer else {}),
            )


def _entry(models: Models, name: str, version: str) -> Entry:
    served = {entry.name: entry for entry, _, _ in models.listed()}
    found = served.get(name)
    if found is None or version not in ("", found.version):
        known = " or ".join(f"{entry.name!r}, version {entry.version!r} or none" for entry in served.values())
        raise refuse("unknown_model", ("model",), "The model or version is not served here.", f"Ask for {known}.")
    return found


def _refuse_input(code: str, name: str, message: str, hint: str = "", *below: str) -> PlacedError:
    return refuse(code, ("inputs", name, *below), f"The input {name} {message}", hint)


def _read(body: bytes, header: str | None) -> tuple[_InferRequest, dict[str, list[str]]]:
    """Return a request and the texts of its inputs; ``header``: how many bytes are JSON, where tensors follow it."""
    num_bytes = len(body)
    if header is not None:
        num_bytes = int(header[:20]) if header.isdecimal() and header.isascii() else num_bytes + 1
        if num_bytes > len(body):
            message = "The header Inference-Header-Content-Length is not a number of bytes that the body has."
            raise refuse("malformed_request", (), message, "Send how many bytes of the body are JSON.")
    request = read(_InferRequest, read_object(body[:num_bytes]))
    for name, value in (request.parameters or {}).items():
        place = ("parameters", shown_field(name, "a field of it"))
        if name not in {*_PARAMETERS, _BINARY_OUTPUT}:
            known = ", ".join(sorted(_PARAMETERS))
            raise refuse("unknown_field", place, f"The parameter {place[1]} is unknown.", f"Send {known} only.")
        if not isinstance(value, bool) and (name == _BINARY_OUTPUT or not isinstance(value, int | float | str)):
            raise refuse("wrong_type", place, f"The parameter {name} is not a number, flag or string that it can be.")
    return request, _tensors(request.inputs, body[num_bytes:])


def _tensors(inputs: Sequence[_Input], rest: bytes) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tensor in inputs:
        name = tensor.name
        size = None if tensor.parameters is None else tensor.parameters.binary_data_size
        if size is not None:
            if size > len(rest):
                message = f"has {size} bytes, of which {len(rest)} are in the body."
                raise _refuse_input("option_out_of_range", name, message, "", "parameters", "binary_data_size")
            texts, rest = decode_elements(rest[:size], ("inputs", name)), rest[size:]
        elif tensor.data is None:
            raise _refuse_input("missing_field", name, "has no data.", "Send them, too.", "data")
        else:
            texts = tensor.data
        if name in found:
            raise _refuse_input("unknown_field", name, "comes twice.", "Send each input at most once.")
        if tensor.shape != [len(texts)]:
            hint = "Send a shape of one number: how many texts there are."
            raise _refuse_input("invalid_input", name, f"has {len(texts)} texts, which its shape does not say.", hint)
        found[name] = texts
    if rest:
        message = f"{len(rest)} bytes follow that are of no input."
        raise refuse("malformed_request", ("inputs",), message, "Send binary_data_size with each input in binary.")
    for needed in ("context", "question"):
        if needed not in found:
            raise _refuse_input("missing_field", needed, "is missing.", "Send it, too.")
        if not found[needed]:
            raise _refuse_input("invalid_input", needed, "has no texts.", "Send at least one.")
        if len(found[needed]) > MOST_IN_ALL:
            message = f"has {len(found[needed])} texts; 1 to {MOST_IN_ALL} are accepted."
            raise _refuse_input("too_many_questions", needed, message)
    return found


def _texts_of(service: Service, request: _InferRequest, tensors: dict[str, list[str]]) -> list[AskedText]:
    contexts, questions = tensors["context"], tensors["question"]
    number = max(len(contexts), len(questions))
    choices = {"choices": tensors["choices"]} if "choices" in tensors else {}
    shared = sum(map(len, tensors.get("choices", ())))
    asked = number * len(questions[0]) if len(questions) == 1 else sum(map(len, questions))
    most = service.limits.max_request_bytes
    check_shared(number * shared + asked, most, "inputs", "The question and choices of all rows together")
    parameters = {name: value for name, value in (request.parameters or {}).items() if name != _BINARY_OUTPUT}
    rows = [{"question": one, **choices, **parameters} for one in _spread(questions, number, "question")]
    items = list(map(item_of, rows, _spread(contexts, number, "context")))
    for i, item in enumerate(items):
        if not isinstance(item.question, Question):
            raise _failed(describe(item.question), i, number)
    texts = [AskedText(None, tuple(items))] if len(contexts) == 1 else [AskedText(None, (item,)) for item in items]
    check_explained(texts)
    return texts


def _spread(texts: list[str], number: int, name: str) -> list[str]:
    if len(texts) not in (1, number):
        message = f"has {len(texts)} texts for {number} questions."
        raise _refuse_input("invalid_input", name, message, "Send one for each question, or one for all.")
    return texts * number if len(texts) == 1 else texts


def _failed(failure: Failure, index: int, number: int) -> AnsweringError:
    message = f"Question {index}: {failure.message}" if number > 1 else failure.message
    return AnsweringError(replace(failure, message=message), ("inputs",))


def _response(request: _InferRequest, outcomes: Iterable[Sequence[Outcome]], model: Model) -> Response:
    results = [outcome.result for outcome in chain.from_iterable(outcomes)]
    for i, result in enumerate(results):
        if not isinstance(result, Answer):
            raise _failed(result, i, len(results))
    answers = [result for result in results if isinstance(result, Answer)]
    tellers: dict[str, Callable[[Answer], str]] = {
        "answer": lambda answer: answer.text,
        "attributions": lambda answer: to_json(document_of(answer, model)).decode(),
    }
    tensors, binary = [], []
    for name, is_binary in request.wanted.items():
        texts = [tellers[name](answer) for answer in answers]
        tensor: dict[str, Any] = {"name": name, "shape": [len(texts)], "datatype": "BYTES"}
        if is_binary:
            binary.append(encode_elements(texts))
            tensor["parameters"] = {"binary_data_size": len(binary[-1])}
        else:
            tensor["data"] = texts
        tensors.append(tensor)
    named = {} if request.id is None else {"id": request.id}
    document = {"model_name": model.name, "model_version": model.version, **named, "outputs": tensors}
    head = json.dumps(document, ensure_ascii=False).encode("utf-8")
    if not binary:
        return Response(head, media_type="application/json")
    return Response(b"".join((head, *binary)), media_type=_BINARY, headers={_HEADER: str(len(head))})


def decode_elements(encoded: bytes, place: Place) -> list[str]:
    texts, at = [], 0
    while at < len(encoded):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(encoded[at:begin], "little")
        if at > len(encoded) or begin > len(encoded):
            hint = f"Send each text with its length before it, in {_LENGTH_BYTES} bytes, the lowest first."
            raise refuse("malformed_request", place, "A tensor in binary ends within a text.", hint)
        try:
            texts.append(encoded[begin:at].decode("utf-8"))
        except UnicodeDecodeError:
            raise refuse("invalid_text", place, "A text is not valid UTF-8.") from None
    return texts


def encode_elements(texts: Iterable[str]) -> bytes:
    encoded = (text.encode("utf-8") for text in texts)
    return b"".join(len(one).to_bytes(_LENGTH_BYTES, "little") + one for one in encoded)
