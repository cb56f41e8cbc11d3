"""A server on loopback that speaks both transports and fails as it is told to, and the environment without proxies."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_serving.rpc.messages import answer_response

ANSWER: Any = json.loads((Path(__file__).parent / "answer.json").read_text())
MODEL: Any = json.loads((Path(__file__).parent / "model.json").read_text())
_GRPC = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}


@dataclass
class Script:
    """What the server does next, and what it saw."""

    failures: list[tuple[int, str]] = field(
        default_factory=list
    )  # HTTP status and code of the next responses; afterwards it answers
    delay_s: float = 0.0  # time it takes for each response
    at_least: int = 0  # requests that it has to have had at the same time before it answers any
    requests: list[dict[str, Any]] = field(default_factory=list)  # questions that it received
    most_at_once: int = 0  # most requests that it had at the same time
    timeouts_ms: list[int] = field(default_factory=list)  # time that each question asked for, over REST
    more_limits: dict[str, int] = field(
        default_factory=dict
    )  # limits that REST publishes beside those that clients know
    retry_after_s: int | None = None  # what its failures ask to wait
    location: str = ""  # where its failures point to, over REST
    text: str = "Paris yes"  # its answer, over gRPC
    _now: int = 0

    async def take(self, seen: dict[str, Any]) -> tuple[int, str] | None:
        """Take a request; return how to fail it, or None. One that outlives its test stays with that test's script."""
        self.requests.append(seen)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            await asyncio.sleep(self.delay_s)
            while self.most_at_once < self.at_least:
                await asyncio.sleep(0.01)
        finally:
            self._now -= 1
        return self.failures.pop(0) if self.failures else None


class FakeServer(answer_pb2_grpc.QuestionAnsweringServicer):
    """Both transports on one event loop in a thread."""

    def __init__(self) -> None:
        self.script = Script()
        self.urls: dict[str, str] = {}
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def start(self) -> None:
        self._thread.start()
        self._started.result(timeout=20)

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=20)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        rpc = grpc.aio.server()
        answer_pb2_grpc.add_QuestionAnsweringServicer_to_server(self, rpc)
        self.urls["grpc"] = f"grpc://127.0.0.1:{rpc.add_insecure_port('127.0.0.1:0')}"
        await rpc.start()
        routes = [
            Route("/v1/answer", self._rest_answer, methods=["POST"]),
            Route("/v1/model", self._rest_model, methods=["GET"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            host="127.0.0.1",
            port=0,
            log_level="error",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        rest = uvicorn.Server(config)
        rest_task = asyncio.create_task(rest.serve())
        while not rest.started:
            await asyncio.sleep(0.01)
        self.urls["rest"] = f"http://127.0.0.1:{rest.servers[0].sockets[0].getsockname()[1]}"
        self._started.set_result(None)
        await self._stop.wait()
        rest.should_exit = True
        await rest_task
        await rpc.stop(0)

    async def Answer(self, request: answer_pb2.AnswerRequest, context: Any) -> answer_pb2.AnswerResponse:
        seen = {"context": request.context, "question": request.question}
        limit = {"max_answer_tokens": request.max_answer_tokens} if request.HasField("max_answer_tokens") else {}
        await self._take(seen | limit, context)
        return answer_response({**ANSWER, "answer": self.script.text})

    async def GetModel(self, request: answer_pb2.GetModelRequest, context: Any) -> answer_pb2.GetModelResponse:
        await self._take({}, context)
        return answer_pb2.GetModelResponse(**MODEL)

    async def _rest_answer(self, request: Request) -> Response:
        document = await request.json()
        self.script.timeouts_ms.append(document.pop("timeout_ms"))
        return await self._take_rest(document) or JSONResponse(ANSWER)

    async def _rest_model(self, request: Request) -> Response:
        return await self._take_rest({}) or JSONResponse(MODEL | {"limits": MODEL["limits"] | self.script.more_limits})

    async def _take(self, seen: dict[str, Any], context: Any) -> None:
        failure = await self.script.take(seen)
        if failure is not None:
            status, code = failure
            told = (("mqan-code", code), ("x-request-id", "id-1"), *self._retry_after())
            if code == "no json":  # as Ray's proxy does, which knows of the failure after it has begun its response
                await context.send_initial_metadata(())
                await asyncio.sleep(0.05)
            await context.abort(_GRPC[status], "A message. A hint.", () if code == "no json" else told)

    def _retry_after(self) -> tuple[tuple[str, str], ...]:
        wait_s = self.script.retry_after_s
        return () if wait_s is None else (("retry-after", f"{wait_s}"),)

    async def _take_rest(self, seen: dict[str, Any]) -> Response | None:
        failure = await self.script.take(seen)
        if failure is None:
            return None
        status, code = failure
        headers = {"x-request-id": "id-1", **dict(self._retry_after())}
        if code == "no json":
            return PlainTextResponse("<html>", status, headers | {"location": self.script.location})
        return JSONResponse({"code": code, "message": "A message.", "hint": "A hint."}, status, headers)


@pytest.fixture(scope="session")
def running_server() -> Iterator[FakeServer]:
    server = FakeServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(running_server: FakeServer) -> FakeServer:
    running_server.script = Script()
    return running_server


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
