"""The routes whose formats are others': each turns its document into the service's questions, and its answers back."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic_core import to_json

from mqan_core.answer.types import Answer
from mqan_serving.contract.calls import check_shared
from mqan_serving.contract.errors import CODES_OF_ANSWER, Failure
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import json_body
from mqan_serving.formats import decisions, hugging_face
from mqan_serving.formats.adapting import Asked, answers_of, asked_texts, name_in, read_object
from mqan_serving.observability.logs import RequestLog, answer_and_log, using
from mqan_serving.service.models import Models

Written = dict[str, Any] | Response
Run = Callable[[bytes, Models, RequestLog], Awaitable[Written]]  # with the body of a request
Respond = Callable[..., Awaitable[Response]]  # runs this for a request whose body has one of some media types

# By path: a request and what mqan-default answered to it, shortened.
EXAMPLES: Final[Mapping[str, Any]] = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
JSON_ONLY: Final = ("application/json",)
_OBJECT: Final = {"type": "object"}
_EITHER: Final = {"anyOf": [_OBJECT, {"type": "array", "items": {}}]}
OPENROUTER: Final = "/api/alpha/decisions"  # its path for TypeSafe's requests
_MODELS: Final = "/v1/models"
CODES_OF_MODELS: Final = (
    *("unauthenticated", "rate_limited", "metadata_too_large"),
    *("unknown_host", "unavailable", "internal"),
)


@dataclass(frozen=True, slots=True)
class Format:
    """A format that others speak."""

    path: str
    operation: str
    summary: str
    parse: Callable[[Any, Model], Sequence[Asked]]  # raises ``PlacedError``
    respond: Callable[[Sequence[Asked], Sequence[Answer], str], Any]  # with the model's name
    schema: Mapping[str, Any]


FORMATS: Final = (
    Format("/v1/systemone", "systemone", "Decide as TypeSafe's System One does",
           decisions.parse_systemone, decisions.respond_systemone, _OBJECT),
    Format("/v1/decisions", "decisions", "Decide as OpenAI's Decisions do",
           decisions.parse, decisions.respond, _OBJECT),
    Format("/v1/hf/question-answering", "hfQuestionAnswering",
           "Quote an answer as Hugging Face's question-answering task does",
           hugging_face.parse_quotation, hugging_face.respond_quotation, _EITHER),
    Format("/v1/hf/zero-shot-classification", "hfZeroShotClassification",
           "Choose among labels as transformers' zero-shot-classification pipeline does",
           hugging_face.parse_labels, hugging_face.respond_labels, _EITHER),
)  # fmt: skip


def add_foreign_routes(
    app: FastAPI, get_models: Callable[[], Models], respond: Respond, dependencies: list[Any]
) -> None:

    async def list_models() -> Response:
        models = get_models()
        listed = [(entry.name, entry.version) for entry, _, _ in models.listed()]
        return JSONResponse(decisions.list_models(listed, is_jev=models.is_alias(decisions.JEV)))

    given: dict[str, Any] = {"dependencies": dependencies, "tags": ["other formats"]}
    for spoken in FORMATS:
        example = EXAMPLES[spoken.path]
        app.post(
            spoken.path,
            openapi_extra=json_body(_OBJECT, example=example["request"]),
            responses=responses(spoken.path, example["response"], spoken.schema, CODES_OF_ANSWER),
            summary=spoken.summary,
            operation_id=spoken.operation,
            name="AnswerMany",
            **given,
        )(_answering(spoken, respond))
    app.post(OPENROUTER, name="AnswerMany", include_in_schema=False, **given)(_answering(FORMATS[0], respond))
    app.get(
        _MODELS,
        responses=responses(_MODELS, decisions.list_models([("mqan-default", "1")]), _OBJECT, CODES_OF_MODELS),
        summary="List what is served, for clients of TypeSafe and OpenAI",
        operation_id="listModels",
        name="GetModel",
        **given,
    )(list_models)


def _answering(spoken: Format, respond: Respond) -> Callable[[Request], Awaitable[Response]]:
    async def decide(request: Request) -> Response:
        async def run(body: bytes, models: Models, log: RequestLog) -> Response:
            models.check_open()
            document = await models.aside(len(body), lambda: read_object(body))
            wanted = name_in(document, models)
            async with using(models, wanted, log) as service:
                rows = await models.aside(len(body), lambda: spoken.parse(document, service.model))
                number = sum(len(label) for row in rows for label in row.question.labels)
                check_shared(number, service.limits.max_request_bytes, "body", "The labels of all texts together")
                outcomes = await answer_and_log(service, log, asked_texts([row.question for row in rows]))
                found = answers_of(chain.from_iterable(outcomes), rows)
                return await models.aside(
                    len(body), lambda: json_response(spoken.respond(rows, found, service.model.name))
                )

        return await respond(request, run)

    return decide


def json_response(document: Any) -> Response:
    return Response(to_json(document), media_type=JSON_ONLY[0])


def errors_by_status(codes: Iterable[str], path: str = "") -> dict[int, str]:
    """Return which codes a path has with which status, in words; a format of others may have statuses of its own."""
    names: dict[int, list[str]] = {}
    for code in codes:
        failure = Failure(code, "", "")
        status, _ = body_of(path, failure) or (failure.kind.http, None)
        names.setdefault(status, []).append(f"`{code}`")
    return {status: " or ".join(of_status) for status, of_status in sorted(names.items())}


def responses(
    path: str, example: Any, schema: Mapping[str, Any], codes: Iterable[str]
) -> dict[int | str, dict[str, Any]]:
    """Return what a path answers with: a success, and errors by the statuses that its format has for them."""
    content = {"application/json": {"schema": schema, "example": example}}
    error = {"application/json": {"schema": _OBJECT}}
    errors = errors_by_status(codes, path).items()
    told: dict[int | str, dict[str, Any]] = {200: {"description": "Successful Response", "content": content}}
    return told | {status: {"description": description, "content": error} for status, description in errors}


# Errors on the paths whose formats are others': by the path, since a request can be refused unread.

_TYPES_OF_SYSTEMONE = {"unauthenticated": "authentication_error", "unknown_model": "api_usage_error"}
_INFERENCE = "/v2"  # and all below it: the Open Inference Protocol, which has names of models in its paths
_TYPES_OF_OPENAI = {401: "authentication_error", 429: "rate_limit_error"}


def body_of(path: str, failure: Failure) -> tuple[int, dict[str, Any]] | None:
    """Return status and body of an error in the format of a path; None where that is this server's own."""
    shape = _inference if path == _INFERENCE or path.startswith(f"{_INFERENCE}/") else _SHAPES.get(path)
    return None if shape is None else shape(failure)


def _systemone(failure: Failure) -> tuple[int, dict[str, Any]]:
    message = f"{failure.message} {failure.hint}"
    if failure.kind.http in (400, 422):
        problem = {"loc": ["body", *failure.place], "msg": message, "type": failure.code}
        return 422, {"detail": [problem]}
    kind = _TYPES_OF_SYSTEMONE.get(failure.code, failure.code)
    status = 400 if failure.code == "unknown_model" else failure.kind.http
    return status, {"detail": {"error_type": kind, "message": message}}


def _openai(failure: Failure) -> tuple[int, dict[str, Any]]:
    status = 400 if failure.kind.http == 422 else failure.kind.http
    kind = _TYPES_OF_OPENAI.get(status, "server_error" if status >= 500 else "invalid_request_error")
    param = ".".join(failure.place) or None
    message = f"{failure.message} {failure.hint}"
    return status, {"error": {"message": message, "type": kind, "param": param, "code": failure.code}}


def _hugging_face(failure: Failure) -> tuple[int, dict[str, Any]]:
    where = ".".join(failure.place)
    message = failure.message if where in failure.message else f"{where}: {failure.message}"
    return failure.kind.http, {"error": f"{message} {failure.hint}", "error_type": failure.code}


def _inference(failure: Failure) -> tuple[int, dict[str, Any]]:
    return failure.kind.http, {"error": f"{failure.message} {failure.hint}", "x_code": failure.code}


_SHAPES: dict[str, Callable[[Failure], tuple[int, dict[str, Any]]]] = {
    "/v1/systemone": _systemone,
    "/v1/decisions": _openai,
    "/api/alpha/decisions": _openai,
    "/v1/models": _openai,
    "/v1/hf/question-answering": _hugging_face,
    "/v1/hf/zero-shot-classification": _hugging_face,
}
