"""The routes whose formats are others': each turns its document into the service's questions, and its answers back."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic_core import to_json

from mqan_core.answer.types import Answer
from mqan_serving.contract.calls import check_shared
from mqan_serving.contract.errors import CODES_OF_ANSWER, ERRORS, Failure
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import json_body
from mqan_serving.formats import decisions, hugging_face
from mqan_serving.formats.adapting import Asked, answers_of, asked_texts, name_in, read_object
from mqan_serving.formats.error_bodies import body_of
from mqan_serving.observability.logs import RequestLog, answer_and_log, using
from mqan_serving.service.many import Outcome
from mqan_serving.service.models import Models

Written = dict[str, Any] | Response
Run = Callable[[Models, RequestLog], Awaitable[Written]]
Wait = Callable[[Request, Awaitable[list[list[Outcome]]]], Awaitable[list[list[Outcome]]]]

# By path: a request and what mqan-default answered to it, shortened.
EXAMPLES: Final[Mapping[str, Any]] = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
JSON_ONLY: Final = ("application/json",)
_OBJECT: Final = {"type": "object"}
_EITHER: Final = {"anyOf": [_OBJECT, {"type": "array", "items": {}}]}
OPENROUTER: Final = "/api/alpha/decisions"  # its path for TypeSafe's requests
_MODELS: Final = "/v1/models"
CODES_OF_MODELS: Final = (
    "unauthenticated",
    "rate_limited",
    "metadata_too_large",
    "unknown_host",
    "unavailable",
    "internal",
)


class Respond(Protocol):
    """Runs what answers a request, and responds to whatever goes wrong."""

    async def __call__(self, request: Request, run: Run, media_types: Sequence[str] = JSON_ONLY) -> Response:
        """Respond to a request whose body has one of these media types; an empty one: it need not say."""


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
    Format(
        "/v1/systemone",
        "systemone",
        "Decide as TypeSafe's System One does",
        decisions.parse_systemone,
        decisions.respond_systemone,
        _OBJECT,
    ),
    Format(
        "/v1/decisions",
        "decisions",
        "Decide as OpenAI's Decisions do",
        decisions.parse,
        decisions.respond,
        _OBJECT,
    ),
    Format(
        "/v1/hf/question-answering",
        "hfQuestionAnswering",
        "Quote an answer as Hugging Face's question-answering task does",
        hugging_face.parse_quotation,
        hugging_face.respond_quotation,
        _EITHER,
    ),
    Format(
        "/v1/hf/zero-shot-classification",
        "hfZeroShotClassification",
        "Choose among labels as transformers' zero-shot-classification pipeline does",
        hugging_face.parse_labels,
        hugging_face.respond_labels,
        _EITHER,
    ),
)


def add_foreign_routes(
    app: FastAPI, get_models: Callable[[], Models], respond: Respond, wait: Wait, dependencies: list[Any]
) -> None:
    """Add the routes. ``wait`` awaits answers for as long as the caller is there."""
    for spoken in FORMATS:
        example, codes = EXAMPLES[spoken.path], CODES_OF_ANSWER
        app.post(
            spoken.path,
            openapi_extra=json_body(_OBJECT, example=example["request"]),
            responses=responses(spoken.path, example["response"], spoken.schema, codes),
            dependencies=dependencies,
            summary=spoken.summary,
            operation_id=spoken.operation,
            name="AnswerMany",
            tags=["formats of others"],
        )(_answering(spoken, respond, wait))
    app.post(OPENROUTER, name="AnswerMany", dependencies=dependencies, include_in_schema=False)(
        _answering(FORMATS[0], respond, wait)
    )

    @app.get(
        _MODELS,
        responses=responses(_MODELS, decisions.list_models([("mqan-default", "1")]), _OBJECT, CODES_OF_MODELS),
        dependencies=dependencies,
        summary="List what is served, for clients of TypeSafe and OpenAI",
        operation_id="listModels",
        name="GetModel",
        tags=["formats of others"],
    )
    async def list_models() -> Response:
        models = get_models()
        listed = [(entry.name, entry.version) for entry, _, _ in models.listed()]
        return JSONResponse(decisions.list_models(listed, is_jev=models.is_alias(decisions.JEV)))


def _answering(spoken: Format, respond: Respond, wait: Wait) -> Callable[[Request], Awaitable[Response]]:
    async def decide(request: Request) -> Response:
        async def run(models: Models, log: RequestLog) -> Response:
            models.check_open()
            body = await request.body()
            document = await models.aside(len(body), lambda: read_object(body))
            wanted = name_in(document, models)
            async with using(models, wanted, log) as service:
                rows = await models.aside(len(body), lambda: spoken.parse(document, service.model))
                number = sum(len(label) for row in rows for label in row.question.labels)
                check_shared(number, service.limits.max_request_bytes, "body", "The labels of all texts together")
                texts = asked_texts([row.question for row in rows])
                outcomes = await wait(request, answer_and_log(service, log, texts))
                found = answers_of(chain.from_iterable(outcomes), rows)
                return await models.aside(
                    len(body), lambda: json_response(spoken.respond(rows, found, service.model.name))
                )

        return await respond(request, run)

    return decide


def json_response(document: Any) -> Response:
    return Response(to_json(document), media_type=JSON_ONLY[0])


def responses(
    path: str, example: Any, schema: Mapping[str, Any], codes: Iterable[str]
) -> dict[int | str, dict[str, Any]]:
    """Return what a path answers with: a success, and errors by the statuses that its format has for them."""
    names: dict[int, list[str]] = {}
    for code in codes:
        told = body_of(path, Failure(code, "", "", ERRORS[code]))
        names.setdefault(told[0] if told else ERRORS[code].http, []).append(code)
    errors: dict[int | str, dict[str, Any]] = {
        status: {
            "description": " or ".join(f"`{code}`" for code in of_status),
            "content": {"application/json": {"schema": _OBJECT}},
        }
        for status, of_status in sorted(names.items())
    }
    content = {"application/json": {"schema": schema, "example": example}}
    return {200: {"description": "Successful Response", "content": content}, **errors}
