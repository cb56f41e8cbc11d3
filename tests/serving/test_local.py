"""What callers see, over both transports, when the server is full, slow, failing or stopping, or when they go away."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from ray.serve._private.grpc_util import gRPCGenericServer

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_serving.local import LocalServer
from mqan_serving.observability.log_writer import WRITER
from mqan_serving.observability.logs import set_up_logs
from mqan_serving.observability.metrics import Metrics
from mqan_serving.rpc.methods import add_question_answering
from tests.processes import bytes_in_use
from tests.serving.conftest import StartServer, log_lines, refusal, until


async def test_full_server(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(max_queued_requests=1, max_batch_size=1)
    engine.may_answer.clear()
    admitted = [asyncio.ensure_future(callers.post()) for _ in range(2)]
    await until(lambda: callers.service.num_requests == 2)
    refused = await callers.post()
    assert (refused.status_code, refused.json()["code"]) == (429, "overloaded")
    assert refused.headers["retry-after"] == "1"
    status, told = await refusal(callers.call())
    assert (status, told["retry-after"]) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "1")
    engine.may_answer.set()
    assert [response.status_code for response in await asyncio.gather(*admitted)] == [200, 200]


async def test_callers_bound_their_own_wait(start_server: StartServer, engine: Any) -> None:
    callers = await start_server()
    engine.may_answer.clear()
    response = await callers.post(timeout_ms=60)
    assert (response.status_code, response.json()["code"]) == (504, "deadline_exceeded")
    assert "0.06 s" in response.json()["message"]
    assert callers.service.num_requests == 0
    refused = await callers.post(timeout_ms=0)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_timeout")
    assert "timeout_ms" in refused.json()["message"]
    engine.may_answer.set()
    assert (await callers.post(timeout_ms=10_000)).status_code == 200


async def test_the_servers_limit_bounds_longer_ones(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(request_timeout_s=0.05)
    engine.may_answer.clear()
    for timeout_ms in (10**15, 10**400):  # the second is above what a float holds
        response = await callers.post(timeout_ms=timeout_ms)
        assert (response.status_code, response.json()["code"]) == (504, "deadline_exceeded")
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await callers.call()  # with a deadline of 10 s
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "0.05 s" in str(raised.value.details())


async def test_who_gives_up_is_never_answered_by_the_engine(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(max_batch_size=1)
    engine.may_answer.clear()
    stays = asyncio.ensure_future(callers.post())
    await until(lambda: engine.num_started == 1)
    expired = await asyncio.gather(
        *(callers.post(context=f"rest {i}", timeout_ms=1 + 10 * i) for i in range(5)),
        *(_await(callers.rpc.Answer(callers.request(context=f"rpc {i}"), timeout=0.001 + 0.01 * i)) for i in range(5)),
        return_exceptions=True,
    )
    assert [response.status_code for response in expired[:5]] == [504] * 5  # type: ignore[union-attr]
    assert [error.code() for error in expired[5:]] == [grpc.StatusCode.DEADLINE_EXCEEDED] * 5  # type: ignore[union-attr]
    await until(lambda: callers.service.num_requests == 1)
    gone: list[Any] = [asyncio.ensure_future(callers.post(context=f"rest {i}")) for i in range(5)]
    gone += [callers.rpc.Answer(callers.request(context=f"rpc {i}")) for i in range(5)]
    await until(lambda: callers.service.num_requests == 11)
    for call in gone:
        call.cancel()
    await until(lambda: callers.service.num_requests == 1)
    engine.may_answer.set()
    assert (await stays).status_code == 200
    assert (await callers.post(context="the next")).status_code == 200
    assert engine.batches == [[callers.body["context"]], ["the next"]]


async def test_log_tells_expired_from_cancelled(
    start_server: StartServer, engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs("info")
    callers = await start_server()
    engine.may_answer.clear()
    late = [callers.rpc.Answer(callers.request(), timeout=2) for _ in range(5)]
    await until(lambda: callers.service.num_requests == 5)  # they have come before their time is over
    for call in late:
        assert (await refusal(call))[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    await until(lambda: callers.service.num_requests == 0)
    gone = callers.call()
    await until(lambda: callers.service.num_requests == 1)
    gone.cancel()
    await until(lambda: callers.service.num_requests == 0)
    await asyncio.sleep(0)
    lines = log_lines(capsys)
    assert [(line["event"], line.get("code")) for line in lines if line.get("transport")] == [
        *[("refused", "deadline_exceeded")] * 5,
        ("cancelled", None),
    ]


async def test_faults_of_ours_are_logged_and_not_told(
    start_server: StartServer, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs("info")
    callers = await start_server()
    response = await callers.post(context="explode")
    body = response.json()
    assert (response.status_code, body["code"]) == (500, "internal")
    assert "secret" not in response.text
    status, told = await refusal(callers.call(context="explode"))
    assert (status, told["grpc-retry-pushback-ms"]) == (grpc.StatusCode.INTERNAL, "-1")  # do not ask again
    assert "secret" not in str(told)
    lines = log_lines(capsys)
    failed = [line for line in lines if line["event"] == "failed"]
    assert [line["transport"] for line in failed] == ["rest", "grpc"]
    assert failed[0]["request_id"] == body["request_id"]
    assert "secret of the engine" in failed[0]["exception"]
    assert (await callers.post()).status_code == 200


async def check_kept(stub: Any, num_begun: Callable[[], int], most: int) -> None:
    """Let calls expire while they are being answered; at last, less than so many bytes of the heap are kept of one."""

    async def expire(number: int) -> int:
        """Return how many calls it took until so many were begun; on a slow machine some expire before."""
        most, num_calls = num_begun() + number, 0
        while num_begun() < most:
            num_calls += 10
            calls = [stub.Answer(answer_pb2.AnswerRequest(context="c", question="q"), timeout=0.02) for _ in range(10)]
            ended: list[Any] = await asyncio.gather(*map(_await, calls), return_exceptions=True)
            assert {error.code() for error in ended} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        return num_calls

    await expire(50)
    before = bytes_in_use()
    num_calls = await expire(300)
    await until(lambda: bytes_in_use() - before < most * num_calls)


async def test_nothing_is_kept_of_expired_calls(start_server: StartServer, engine: Any) -> None:
    """A status for a caller whose deadline has passed would stay in memory: some 500 bytes a call."""
    set_up_logs("error")  # the lines of a log may be kept, by who captures them
    callers = await start_server()
    engine.may_answer.clear()
    await check_kept(callers.rpc, lambda: engine.num_reads, 200)


async def test_nothing_is_kept_of_expired_calls_on_ray() -> None:
    """Ray catches that a call is cancelled, and answers it nonetheless: some 250 bytes a call."""
    num_begun = num_caught = 0

    async def catch(_: bytes, __: object) -> bytes:
        nonlocal num_begun, num_caught
        num_begun += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            num_caught += 1
        return b""

    server = gRPCGenericServer(lambda **_: catch)
    methods = answer_pb2.DESCRIPTOR.services_by_name["QuestionAnswering"].methods
    add_question_answering(SimpleNamespace(**{method.name: catch for method in methods}), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await check_kept(answer_pb2_grpc.QuestionAnsweringStub(channel), lambda: num_begun, 150)
    finally:
        await server.stop(0)
    assert num_caught > 50, "of 350 calls that are being answered some are cancelled meanwhile"


async def test_limits_are_published_alike(start_server: StartServer) -> None:
    callers = await start_server(max_queued_requests=7, max_batch_size=2, request_timeout_s=1.5, max_word_length=99)
    limits = (await callers.rest.get("/v1/model")).json()["limits"]
    message = await callers.rpc.GetModel(answer_pb2.GetModelRequest(), timeout=10)
    assert limits == {field.name: getattr(message.limits, field.name) for field in message.limits.DESCRIPTOR.fields}
    assert limits == {
        "max_request_bytes": 1024 * 1024,
        "max_context_tokens": 4000,
        "max_question_tokens": 256,
        "max_answer_tokens": 49,  # the model's own
        "max_word_length": 99,
        "max_metadata_bytes": 8192,
        "max_timeout_ms": 1500,
        "max_concurrent_requests": 9,
        "max_queued_requests": 7,
    }


async def test_too_many_headers_are_refused(start_server: StartServer) -> None:
    callers = await start_server(max_metadata_bytes=2000)
    enough, too_much = {"x-more": "a" * 1000}, {"x-more": "a" * 2000}
    assert (await callers.rest.get("/v1/model", headers=enough)).status_code == 200
    response = await callers.rest.get("/v1/model", headers=too_much)
    assert (response.status_code, response.json()["code"]) == (431, "metadata_too_large")
    request = answer_pb2.GetModelRequest()
    await callers.rpc.GetModel(request, metadata=list(enough.items()), timeout=10)
    status, told = await refusal(callers.rpc.GetModel(request, metadata=list(too_much.items()), timeout=10))
    assert (status, told["mqan-code"]) == (grpc.StatusCode.INVALID_ARGUMENT, "metadata_too_large")


@pytest.mark.parametrize(
    ("framing", "content"),
    [
        ("content-length: 1000000000\r\nexpect: 100-continue", b""),
        ("transfer-encoding: chunked", (b"1000\r\n" + b" " * 4096 + b"\r\n") * 5),
    ],
    ids=["announced", "chunked"],
)
async def test_a_body_is_refused_before_its_end(start_server: StartServer, framing: str, content: bytes) -> None:
    callers = await start_server(max_request_bytes=16_384)
    reader, writer = await asyncio.open_connection("127.0.0.1", callers.http_port)
    head = f"POST /v1/answer HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{framing}\r\n\r\n"
    writer.write(head.encode() + content)  # and never the rest
    async with asyncio.timeout(30):
        response = await reader.readuntil(b"}")
    assert response.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"request_too_large"' in response
    writer.close()


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/v2/health/ready", "/metrics", "/docs", "/none"])
async def test_head_is_answered_as_get_is_without_a_body(start_server: StartServer, path: str) -> None:
    callers = await start_server()
    for _ in range(2):  # on one connection
        head, get = [await callers.rest.request(method, path) for method in ("HEAD", "GET")]
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
    assert (await callers.rest.head("/v1/answer")).status_code == 405


async def test_stopping_finishes_what_is_in_progress(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(drain_delay_s=0.3)
    engine.may_answer.clear()
    in_progress = [asyncio.ensure_future(callers.post()), asyncio.ensure_future(_await(callers.call()))]
    await until(lambda: callers.service.num_requests == 2)
    stopping = asyncio.ensure_future(callers.server.stop())
    await until(lambda: not callers.server.models.health.is_ready)
    refused = await callers.post()
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["connection"] == "close"
    assert (await callers.rest.get("/health/ready")).status_code == 503
    assert (await callers.rest.get("/health/live")).status_code == 200
    assert (await refusal(callers.call()))[0] is grpc.StatusCode.UNAVAILABLE
    engine.may_answer.set()
    rest_answer, rpc_answer = await asyncio.gather(*in_progress)
    assert rest_answer.json()["answer"] == rpc_answer.answer == "The kettle is"
    await stopping


async def test_a_server_that_does_not_get_on_is_not_ready(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(unready_after_s=0.3)
    await callers.service.warm_up()
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{callers.grpc_port}")
    check = health_pb2_grpc.HealthStub(channel).Check

    async def is_ready() -> bool:
        response = await callers.rest.get("/health/ready")
        status = (await check(health_pb2.HealthCheckRequest(), timeout=10)).status
        assert response.status_code in (200, 503)
        if response.status_code == 503:
            assert "a question has waited" in response.json()["message"]
        if (status == health_pb2.HealthCheckResponse.SERVING) != (response.status_code == 200):
            return bool((await callers.rest.get("/health/ready")).status_code != 503)  # it has changed in between
        return bool(response.status_code == 200)

    def oldest_s() -> float:
        lines = callers.metrics.render().decode().splitlines()
        return float(next(line for line in lines if line.startswith("mqan_oldest_question_seconds")).split()[1])

    assert await is_ready()
    assert oldest_s() == 0
    engine.may_answer.clear()
    slow = asyncio.ensure_future(callers.post())
    await until(lambda: oldest_s() > 0.3)
    assert not await is_ready()
    assert (await callers.rest.get("/health/live")).status_code == 200
    also = asyncio.ensure_future(callers.post())  # whoever comes nevertheless is served
    await until(lambda: callers.service.num_requests == 2)
    engine.may_answer.set()
    assert [response.status_code for response in await asyncio.gather(slow, also)] == [200, 200]
    assert await is_ready()
    await until(lambda: oldest_s() == 0)
    await channel.close()


async def test_a_round_without_an_end_is_told_though_nobody_waits_for_it(
    start_server: StartServer, engine: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    callers = await start_server(unready_after_s=0.3)
    await callers.service.warm_up()
    engine.may_answer.clear()
    num_before, told = engine.num_started, ""
    gone = asyncio.ensure_future(callers.post())
    await until(lambda: engine.num_started > num_before)
    gone.cancel()
    await until(lambda: callers.service.num_requests == 0)
    async with asyncio.timeout(60):
        while "takes too long" not in told:
            await asyncio.sleep(0.05)
            WRITER.flush(1.0)
            told += capfd.readouterr().err
    refused = await callers.rest.get("/health/ready")
    assert refused.status_code == 503
    assert re.fullmatch(r"A round of the engine has taken \d+ s\.", refused.json()["message"])
    engine.may_answer.set()
    await until(lambda: callers.service.why_not_ready is None)
    WRITER.flush(1.0)
    assert (told + capfd.readouterr().err).count('"event": "takes too long"') == 1


STANDS_STILL = """
import asyncio
import time

from mqan_serving.service.health import Watch


async def stand_still() -> None:
    Watch(0.3).look()
    end = time.thread_time() + 1.0
    while time.thread_time() < end:
        sum(range(100_000))


asyncio.run(stand_still())
"""


def test_an_event_loop_that_stands_still_is_told() -> None:
    """In a process of its own: servers of other tests set the one timer that a process has anew."""
    run = subprocess.run([sys.executable, "-c", STANDS_STILL], capture_output=True, text=True, timeout=60, check=True)
    assert "in stand_still" in run.stderr


async def test_second_server_on_a_port_is_an_error(
    start_server: StartServer, free_ports: Callable[[int], list[int]]
) -> None:
    first = await start_server()
    settings = first.server._settings
    with pytest.raises(OSError, match="in use"):
        await LocalServer(first.server.models, settings, Metrics()).start()
    (http_port,) = free_ports(1)
    other = settings.model_copy(update={"http_port": http_port})
    with pytest.raises(OSError, match=str(settings.grpc_port)):
        await LocalServer(first.server.models, other, Metrics()).start()


async def _await(call: Any) -> Any:
    return await call
