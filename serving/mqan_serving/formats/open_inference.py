"""The Open Inference Protocol, version 2, over REST (https://github.com/kserve/open-inference-protocol).

A request is a batch of questions in tensors of text: ``context`` and ``question``, one of each for a question or one
for all, and optionally ``choices`` for all. So is its response: ``answer``, and ``attributions``, which has for each
answer the JSON document of ``POST /v1/answer``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any, Final, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field, model_validator
from pydantic_core import to_json

from mqan_core import __version__
from mqan_core.answer.types import Answer
from mqan_serving.contract.answers import document_of
from mqan_serving.contract.calls import MOST_IN_ALL, AskedText, check_explained, check_shared, item_of
from mqan_serving.contract.errors import CODES_OF_ANSWER, AnsweringError, Failure, describe
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import Question, json_body
from mqan_serving.formats.adapting import Part, must, problem, read, read_object, refuse
from mqan_serving.formats.foreign import CODES_OF_MODELS, EXAMPLES, Respond, json_response, responses
from mqan_serving.observability.logs import RequestLog, answer_and_log, using
from mqan_serving.service.answer_service import Service
from mqan_serving.service.catalog import Entry
from mqan_serving.service.many import Outcome
from mqan_serving.service.models import Models

OUTPUTS: Final = ("answer", "attributions")
# Fields of a question that are tensors, lists or would change the response.
_NO_PARAMETERS: Final = ("context", "question", "choices", "scale", "sources", "stream", "citations", "model")
_OBJECT: Final = {"type": "object"}
_BINARY: Final = "inference-header-content-length"  # the header of a body with tensors in binary
_MEDIA_TYPES: Final = ("application/json", "")  # NVIDIA's client sends no type
_MODEL: Final = "/v2/models/{model_name}"
_INFER: Final = f"{_MODEL}/infer"
_SERVER: Final = {"name": "mqan", "version": __version__, "extensions": []}
_METADATA: Final = EXAMPLES[_MODEL]["response"]
_CODES_OF_HEALTH: Final = ("unknown_host", "metadata_too_large", "unavailable", "internal")


class _InJson(Part):
    binary_data: Literal[False] | None = None  # NVIDIA's clients say so, for each output


class _Input(Part):
    name: Literal["context", "question", "choices"]
    datatype: Annotated[str, must("BYTES".__eq__, "wrong_type", "it should be BYTES")]
    shape: list[int] = Field(max_length=8)
    data: list[str] = Field(max_length=MOST_IN_ALL)

    @model_validator(mode="after")
    def _fits(self) -> "_Input":
        if self.shape != [len(self.data)]:
            raise problem("invalid_input", f"it should be [{len(self.data)}], as many texts as there are", "shape")
        return self


class _Output(Part):
    name: Literal["answer", "attributions"]
    parameters: _InJson | None = None


class _InferRequest(Part):
    id: str | None = None
    inputs: list[_Input] = Field(min_length=1, max_length=3)
    outputs: list[_Output] | None = Field(default=None, max_length=2 * len(OUTPUTS))
    parameters: dict[str, Any] | None = None

    @property
    def texts(self) -> dict[str, list[str]]:
        return {tensor.name: tensor.data for tensor in self.inputs}

    @model_validator(mode="after")
    def _is_whole(self) -> "_InferRequest":
        texts = self.texts
        if len(texts) < len(self.inputs):
            raise problem("unknown_field", "one comes twice", "inputs")
        for needed in ("context", "question"):
            if not texts.get(needed):
                code = "invalid_input" if needed in texts else "missing_field"
                raise problem(code, "it has no texts", "inputs", needed)
        for name in self.parameters or ():
            if name in _NO_PARAMETERS:
                raise problem("unknown_field", "it is none of a batch", "parameters", name)
        return self


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
            if _BINARY in request.headers:
                hint = "Send them in the JSON; NVIDIA's client does so with binary_data=False."
                raise refuse("malformed_request", (), "Tensors in binary are not read here.", hint)
            asked = read(_InferRequest, read_object(body))
            async with using(models, found.name, log) as service:
                texts = await models.aside(len(body), lambda: _texts_of(service, asked))
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


def _texts_of(service: Service, request: _InferRequest) -> list[AskedText]:
    contexts, questions, labels = (request.texts.get(name, []) for name in ("context", "question", "choices"))
    number = max(len(contexts), len(questions))
    for name, texts in (("context", contexts), ("question", questions)):
        if len(texts) not in (1, number):
            message = f"The input {name} has {len(texts)} texts for {number} questions."
            raise refuse("invalid_input", ("inputs", name), message, "Send one for each question, or one for all.")
    asked = number * len(questions[0]) if len(questions) == 1 else sum(map(len, questions))
    what = "The question and choices of all rows together"
    check_shared(number * sum(map(len, labels)) + asked, service.limits.max_request_bytes, "inputs", what)
    same = (request.parameters or {}) | ({"choices": labels} if "choices" in request.texts else {})
    rows = [{"question": one, **same} for one in questions * (number // len(questions))]
    items = list(map(item_of, rows, contexts * (number // len(contexts))))
    for i, item in enumerate(items):
        if not isinstance(item.question, Question):
            raise _failed(describe(item.question), i, number)
    found = [AskedText(None, tuple(items))] if len(contexts) == 1 else [AskedText(None, (item,)) for item in items]
    check_explained(found)
    return found


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
    names = dict.fromkeys(one.name for one in request.outputs or ()) or OUTPUTS
    outputs = [
        {"name": name, "shape": [len(answers)], "datatype": "BYTES", "data": list(map(tellers[name], answers))}
        for name in names
    ]
    named = {} if request.id is None else {"id": request.id}
    return json_response({"model_name": model.name, "model_version": model.version, **named, "outputs": outputs})
