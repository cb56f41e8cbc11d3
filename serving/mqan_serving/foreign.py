"""The routes whose formats are others': each turns its document into the service's questions, and its answers back."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, RootModel

from mqan_core.answer import Answer
from mqan_serving import decisions, systemone
from mqan_serving.adapting import answers_of, asked
from mqan_serving.foreign_examples import (
    DECISIONS_REQUEST,
    DECISIONS_RESPONSE,
    SYSTEMONE_REQUEST,
    SYSTEMONE_RESPONSE,
)
from mqan_serving.many import Outcome, answer_texts
from mqan_serving.service import Service
from mqan_serving.telemetry import RequestRecord

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

    def add(
        path: str,
        parse: Callable[[bytes, str], Sequence[Any]],
        tell: Callable[[Any, Sequence[Answer], str], dict[str, Any]],
        examples: tuple[dict[str, Any], dict[str, Any]],
        summary: str,
    ) -> None:
        async def decide(request: Request) -> Response:
            async def run(service: Service, record: RequestRecord) -> BaseModel:
                rows = parse(await request.body(), service.model.name)
                texts = asked([row.question for row in rows])
                [outcomes] = await wait(request, answer_texts(service, texts, record))
                found = answers_of(outcomes, [row.place for row in rows])
                return RootModel[dict[str, Any]](tell(rows, found, service.model.name))

            return await respond(request, run)

        app.post(
            path,
            openapi_extra=_schema(examples[0]),
            responses=_responses(examples[1]),
            dependencies=dependencies,
            summary=summary,
            operation_id=path.rpartition("/")[2],
            tags=["formats of others"],
        )(decide)

    add(
        "/v1/systemone",
        systemone.parse,
        systemone.respond,
        (SYSTEMONE_REQUEST, SYSTEMONE_RESPONSE),
        "Decide as TypeSafe's System One does",
    )
    add(
        "/v1/decisions",
        decisions.parse,
        decisions.respond,
        (DECISIONS_REQUEST, DECISIONS_RESPONSE),
        "Decide as OpenAI's Decisions do",
    )

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
    return {200: {"description": "Successful Response", "content": _content(example)}}


def _schema(example: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": _content(example)}}


def _content(example: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": {"type": "object"}, "example": example}}
