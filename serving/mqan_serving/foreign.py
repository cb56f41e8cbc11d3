"""The routes whose formats are others': each turns its document into the service's questions, and its answers back."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, RootModel

from mqan_core.answer import Answer
from mqan_serving import decisions, systemone
from mqan_serving.adapting import Place, answers_of, asked
from mqan_serving.foreign_examples import (
    DECISIONS_REQUEST,
    DECISIONS_RESPONSE,
    SYSTEMONE_REQUEST,
    SYSTEMONE_RESPONSE,
)
from mqan_serving.many import Outcome, answer_texts
from mqan_serving.service import Service
from mqan_serving.telemetry import RequestRecord
from mqan_serving.validation import Question

Run = Callable[[Service, RequestRecord], Awaitable[BaseModel]]
Respond = Callable[[Request, Run], Awaitable[Response]]
Wait = Callable[[Request, Coroutine[Any, Any, list[list[Outcome]]]], Awaitable[list[list[Outcome]]]]


def add_foreign_routes(
    app: FastAPI, get_service: Callable[[], Service], respond: Respond, wait: Wait, dependencies: list[Any]
) -> None:
    """Add the routes.

    Args:
        app: where to.
        get_service: returns the service.
        respond: runs what answers a request, and tells whatever goes wrong.
        wait: awaits answers for as long as the caller is there.
        dependencies: of every route.
    """

    async def answer(
        request: Request, service: Service, record: RequestRecord, questions: Sequence[Question], places: list[Place]
    ) -> list[Answer]:
        record.note_questions(1, len(questions))
        [outcomes] = await wait(request, answer_texts(service, asked(questions)))
        for outcome in outcomes:
            if isinstance(outcome.result, Answer):
                record.note_answer(outcome.result, outcome.timeline)
        return answers_of(outcomes, places)

    @app.post(
        "/v1/systemone",
        openapi_extra=_schema(SYSTEMONE_REQUEST),
        responses=_responses(SYSTEMONE_RESPONSE),
        dependencies=dependencies,
        summary="Decide as TypeSafe's System One does",
        operation_id="systemone",
        tags=["formats of others"],
    )
    async def decide_systemone(request: Request) -> Response:
        async def run(service: Service, record: RequestRecord) -> BaseModel:
            rows = systemone.parse(await request.body(), service.model.name)
            found = await answer(request, service, record, [r.question for r in rows], [r.place for r in rows])
            return RootModel[dict[str, Any]](systemone.respond(rows, found, service.model.name))

        return await respond(request, run)

    @app.post(
        "/v1/decisions",
        openapi_extra=_schema(DECISIONS_REQUEST),
        responses=_responses(DECISIONS_RESPONSE),
        dependencies=dependencies,
        summary="Decide as OpenAI's Decisions do",
        operation_id="decisions",
        tags=["formats of others"],
    )
    async def decide(request: Request) -> Response:
        async def run(service: Service, record: RequestRecord) -> BaseModel:
            rows = decisions.parse(await request.body(), service.model.name)
            found = await answer(request, service, record, [r.question for r in rows], [r.place for r in rows])
            return RootModel[dict[str, Any]](decisions.respond(rows, found, service.model.name))

        return await respond(request, run)

    @app.get(
        "/v1/models",
        responses=_responses(systemone.list_models("mqan-default", "1")),
        dependencies=dependencies,
        summary="List what is served, for clients of TypeSafe and OpenAI",
        operation_id="listModels",
        tags=["formats of others"],
    )
    async def list_models() -> Response:
        model = get_service().model
        return JSONResponse(systemone.list_models(model.name, model.version))


def _responses(example: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {200: {"description": "Successful Response", "content": content}}


def _schema(example: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {"requestBody": {"required": True, "content": content}}
