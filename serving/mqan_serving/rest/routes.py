"""REST: the service as a FastAPI application, which runs in a plain uvicorn and inside Ray Serve alike."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from fastapi import FastAPI, Query, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

import mqan_core
from mqan_core.errors import MqanError
from mqan_serving.contract.calls import MANY_SCHEMA, AskedText, model_of, texts_of
from mqan_serving.contract.documents import AnswerDocument, AnswersDocument
from mqan_serving.contract.errors import CODES_OF_ANSWER, describe, describe_http_status, refuse
from mqan_serving.contract.model import ErrorDocument, HealthDocument, ModelDocument, model_document
from mqan_serving.contract.questions import json_body, question_of, question_schema, read_object
from mqan_serving.formats.foreign import JSON_ONLY, Run, Written, add_foreign_routes, errors_by_status, json_response
from mqan_serving.formats.open_inference import add_inference_routes
from mqan_serving.keys import ApiKeys
from mqan_serving.observability.logs import MODEL, RequestLog, answer_and_log, answer_one, stream_and_log, using
from mqan_serving.observability.metrics import CONTENT_TYPE, Metrics
from mqan_serving.pages import Page, load_playground, render_reference
from mqan_serving.records.documents import (
    RECORD_RESPONSES,
    RECORD_SCHEMA,
    RecordDocument,
    RecordsDocument,
    records_document,
)
from mqan_serving.records.filling import fill_records, parse_records
from mqan_serving.rest.adapting import make_adapter
from mqan_serving.rest.admin import add_admin_routes
from mqan_serving.rest.gateway import MEDIA_TYPE, METRICS_PATH, EventStream, Gateway, failure_response, meant_path
from mqan_serving.rest.http_server import HttpServer, listen
from mqan_serving.service.many import answers_document
from mqan_serving.service.models import Models
from mqan_serving.settings import Settings

ResultT = TypeVar("ResultT")
Responses = dict[int | str, dict[str, Any]]

_EXPORT_GRACE_S = 1.0
_CLIENT_GONE = 499  # never seen by anyone; the usual status of such requests in logs

_DESCRIPTION = """Answers a natural-language question about a text and says where every word of the answer came from.

Positions are half-open ranges of Unicode code points in the caller's own string. The same request always gets the same
answer, so it may be retried. Every error has the same body; `code` is stable, `hint` says how to fix it."""

_WANTED = "Name of the model; unset: the one that requests without a name get."

_EVENTS: dict[str, Any] = {
    "content": {
        MEDIA_TYPE: {
            "schema": {  # of each event, as tools read it before OpenAPI 3.2
                "type": "object",
                "properties": {
                    "event": {"enum": ["word", "answer", "error"]},
                    "data": {"type": "string", "contentMediaType": "application/json"},
                },
                "required": ["event", "data"],
            },
            "example": 'event: word\ndata: {"text": "330", ..., "delta": "330"}\n\n'
            'event: answer\ndata: {"answer": "330", ...}\n\n',
        }
    }
}


def create_rest_app(
    get_models: Callable[[], Models],
    settings: Settings,
    keys: ApiKeys,
    metrics: Metrics,
    *,
    echoes_request_id: bool = True,
) -> FastAPI:
    app = _create_app(settings, keys, metrics, echoes_request_id=echoes_request_id)
    # Does nothing but tell the documentation where to put a key.
    dependencies = [Security(HTTPBearer(auto_error=False))] if settings.api_key_file else []
    _add_own_routes(app, get_models, dependencies)

    async def respond(request: Request, run: Run, media_types: Sequence[str] = JSON_ONLY) -> Response:
        return await _respond(request, get_models, run, media_types)

    for add_routes in (add_foreign_routes, add_inference_routes):
        add_routes(app, get_models, respond, dependencies)
    playground = load_playground(settings.grpc_port, settings.page_links, makes_adapters=settings.makes_adapters)

    @app.get("/", include_in_schema=False)
    async def show_playground() -> HTMLResponse:
        return _show(playground)

    @app.get("/docs", include_in_schema=False)
    async def show_reference() -> HTMLResponse:
        return _show(render_reference(app.openapi()))

    @app.get("/card", include_in_schema=False)
    async def show_card(request: Request, model: str = "") -> Response:
        async with using(get_models(), model, request.state.log) as service:
            return PlainTextResponse(service.read_card())

    async def make(request: Request) -> Response:
        return await respond(request, make_adapter)

    if settings.makes_adapters:
        app.add_api_route("/v1/adapters", make, methods=["POST"], name="other", include_in_schema=False)
    if settings.admin_key_file is not None:
        add_admin_routes(app, get_models)
    _add_metrics(app, metrics, names_keys=settings.metrics_need_key)
    return app


async def export_metrics(settings: Settings, keys: ApiKeys, metrics: Metrics) -> HttpServer:
    """Tell the metrics of this machine on a port that its replicas share: a cluster's public ones answer from any."""
    app = _create_app(settings, keys, metrics, openapi_url=None)
    _add_metrics(app, metrics, names_keys=True)
    server = HttpServer(app, settings, metrics, _EXPORT_GRACE_S)
    if settings.metrics_port is not None:
        await server.open(listen(settings.host, settings.metrics_port, shared=True))
    return server


def _create_app(
    settings: Settings, keys: ApiKeys, metrics: Metrics, *, echoes_request_id: bool = True, **given: Any
) -> FastAPI:
    version = mqan_core.__version__
    app = FastAPI(
        title="mqan",
        version=version,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        **given,
    )
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=settings.max_request_bytes)
    app.add_middleware(
        Gateway,
        routes=app.router.routes,
        settings=settings,
        keys=keys,
        admin_keys=ApiKeys(settings.admin_key_file),
        metrics=metrics,
        echoes_request_id=echoes_request_id,
    )
    if settings.cors_origins:
        # Around the gateway: a browser asks without a key whether it may ask, and shows its page why it was refused.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "HEAD", "POST"],
            allow_headers=["*"],  # official clients send many of their own; none lets a page in
            # a page that is named may ask a server on this machine, too; with * none is named
            allow_private_network=settings.cors_origins != ("*",),
            expose_headers=["retry-after", "server-timing", MODEL, "x-request-id"],
        )
    app.add_exception_handler(MqanError, _on_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_wrong_form)
    return app


def _add_metrics(app: FastAPI, metrics: Metrics, *, names_keys: bool) -> None:
    @app.get(METRICS_PATH, include_in_schema=False)
    def show_metrics() -> Response:  # in a thread, since it may read files
        return Response(metrics.render(names_keys=names_keys), media_type=CONTENT_TYPE)


def _show(page: Page) -> HTMLResponse:
    return HTMLResponse(page.html, headers={"content-security-policy": page.content_security_policy})


async def _answer(body: bytes, models: Models, log: RequestLog) -> Written:
    question = question_of(read_object(body))
    log.note_question(question)
    if question.stream:
        log.note_stream()
        streamed = stream_and_log(models, question, log)
        return EventStream(await anext(streamed), streamed, log)
    return await answer_one(models, question, log)


async def _answer_many(body: bytes, models: Models, log: RequestLog) -> Written:
    def read() -> tuple[list[AskedText], str | None, int | None]:
        document = read_object(body)
        return texts_of(document), model_of(document), document.get("timeout_ms")

    texts, wanted, timeout_ms = await models.aside(len(body), read)
    async with using(models, wanted, log, timeout_ms) as service:
        outcomes = await answer_and_log(service, log, texts)
        return await models.aside(len(body), lambda: json_response(answers_document(texts, outcomes, service.model)))


async def _fill(body: bytes, models: Models, log: RequestLog) -> Written:
    wanted, ids = await models.aside(len(body), lambda: parse_records(body))
    async with using(models, wanted[0].model, log, wanted[0].timeout_ms) as service:
        records = await fill_records(wanted, service, partial(answer_and_log, service, log), ids)
        return records_document(records, ids, service.model)


def _add_own_routes(app: FastAPI, get_models: Callable[[], Models], dependencies: list[Any]) -> None:
    def ask(run: Run) -> Callable[..., Any]:
        async def respond(request: Request) -> Response:
            return await _respond(request, get_models, run)

        return respond

    async def get_model(request: Request, model: str = Query("", description=_WANTED)) -> dict[str, Any]:
        async with using(get_models(), model, request.state.log) as service:
            return model_document(service.model, service.adapters.documents())

    async def is_live() -> HealthDocument:
        get_models().check_live()
        return HealthDocument(status="live")

    async def is_ready() -> HealthDocument:
        get_models().check_ready()
        return HealthDocument(status="ready")

    errors, of_health = _error_responses(CODES_OF_ANSWER), _error_responses(["unavailable"])
    of_many = _error_responses([*CODES_OF_ANSWER, "too_many_questions", "duplicate_id"])
    codes = ["unauthenticated", "rate_limited", "metadata_too_large", "unknown_model", "unavailable", "internal"]
    of_model = _error_responses(codes)
    of_records = {status: errors.get(status, {}) | RECORD_RESPONSES.get(status, {}) for status in (200, *errors)}
    ready = {200: {"content": {"application/json": {"example": {"status": "ready"}}}}, **of_health}
    routes: list[tuple[str, Callable[..., Any], str, str, str, Any, Responses, dict[str, Any] | None]] = [
        ("/v1/answer", ask(_answer), "Answer", "answer", "Answer a question about a context",
         AnswerDocument, {200: _EVENTS, **errors}, json_body(question_schema())),
        ("/v1/answers", ask(_answer_many), "AnswerMany", "answerMany", "Answer many questions about one or many texts",
         AnswersDocument, of_many, MANY_SCHEMA),
        ("/v1/model", get_model, "GetModel", "getModel", "Describe the model and its limits",
         ModelDocument, of_model, None),
        ("/v1/records", ask(_fill), "FillRecord", "fillRecord", "Fill a record from a text, or from each of many",
         RecordDocument | RecordsDocument, of_records, RECORD_SCHEMA),
        ("/health/live", is_live, "Check", "isLive", "Whether the process works", HealthDocument, of_health, None),
        ("/health/ready", is_ready, "Check", "isReady", "Whether to send requests here", HealthDocument, ready, None),
    ]  # fmt: skip
    for path, call, name, operation, summary, model, responses, body in routes:
        is_health = name == "Check"
        app.add_api_route(
            path,
            call,
            methods=["POST" if body else "GET"],
            name=name,
            operation_id=operation,
            summary=summary,
            response_model=model,
            responses=responses,
            openapi_extra=body,
            dependencies=[] if is_health else dependencies,
            tags=["health" if is_health else "answering"],
        )


async def _respond(
    request: Request, get_models: Callable[[], Models], run: Run, media_types: Sequence[str] = JSON_ONLY
) -> Response:
    """Run what answers a request, once it is whole and while its caller is there; log and describe what goes wrong."""
    log: RequestLog = request.state.log
    try:
        models = get_models()
        _check_media_type(request, media_types)
        body = await request.body()
        written = await _while_connected(request, run(body, models, log))
    except (asyncio.CancelledError, ClientDisconnect) as error:
        log.log_cancelled()
        if isinstance(error, ClientDisconnect):
            return Response(status_code=_CLIENT_GONE)
        raise
    except HTTPException:
        raise  # the framework's own refusal of the body
    except Exception as error:
        log.log_failure(error)
        return failure_response(describe(error), log)
    return written if isinstance(written, Response) else json_response(written)


def _error_responses(codes: Iterable[str]) -> Responses:
    errors = errors_by_status(codes).items()
    return {status: {"model": ErrorDocument, "description": description} for status, description in errors}


def _check_media_type(request: Request, media_types: Sequence[str]) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        message = f"The body is {'of no stated type' if not media_type else 'not declared as JSON'}."
        raise refuse("unsupported_media_type", "body", message)


async def _while_connected(request: Request, answering: Awaitable[ResultT]) -> ResultT:
    """Await an answer; cancel it, and raise ``ClientDisconnect``, when the caller goes away."""
    this_task = cast(asyncio.Task[Any], asyncio.current_task())
    is_waiting, is_gone = True, False

    def stop_waiting(_: object) -> None:
        nonlocal is_gone
        if is_waiting:
            is_gone = this_task.cancel()

    gone_task = asyncio.ensure_future(request.receive())  # the body has been read: only a disconnect can come
    gone_task.add_done_callback(stop_waiting)
    try:
        return await answering
    except asyncio.CancelledError:
        if is_gone and not this_task.uncancel():
            raise ClientDisconnect from None
        raise
    finally:
        is_waiting = False
        gone_task.cancel()


async def _on_error(request: Request, error: Exception) -> JSONResponse:
    return failure_response(describe(error), request.state.log)


async def _on_wrong_form(request: Request, error: Exception) -> JSONResponse:
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": (), "msg": ""}
    message = f"{'.'.join(map(str, first['loc']))} is wrong: {first['msg']}."
    return failure_response(describe(refuse("invalid_input", "body", message)), request.state.log)


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    failure = describe_http_status(status)
    if failure.code == "not_found" and (meant := meant_path(request.url.path, request.app.routes)):
        failure = replace(failure, hint=f"Did you mean {meant}? {failure.hint}")
    headers = error.headers if isinstance(error, HTTPException) else None
    return failure_response(failure, request.state.log, headers)
