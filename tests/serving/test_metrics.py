"""Metrics: every request is counted as its caller saw it, in one process and in several, with labels of closed sets."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqan.v1 import answer_pb2
from mqan_core.answer.types import Answer, ChoiceProbability
from mqan_serving.contract.errors import ERRORS
from mqan_serving.keys import add_key
from mqan_serving.observability.metrics import CODES, METHODS, TRANSPORTS, Metrics
from mqan_serving.service.timeline import Timeline
from tests.serving.conftest import StartServer

Samples = dict[tuple[str, tuple[str, ...]], float]


def read(text: str) -> Samples:
    """Return the value of each sample by its name and the values of its labels, in order of their names."""
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def scrape(callers: Any) -> Samples:
    response = await callers.rest.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    return read(response.text)


async def until(callers: Any, name: str, value: float) -> None:
    async with asyncio.timeout(60):
        while (await scrape(callers))[name, ()] != value:
            await asyncio.sleep(0.02)


async def test_totals_are_those_of_the_callers(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(max_queued_requests=1, max_batch_size=1)
    seen: Counter[tuple[str, str, str]] = Counter()

    async def post(**changes: Any) -> None:
        response = await callers.post(**changes)
        seen["ok" if response.is_success else response.json()["code"], "Answer", "rest"] += 1

    async def call(timeout: float = 10, **changes: Any) -> None:
        try:
            await callers.rpc.Answer(callers.request(**changes), timeout=timeout)
        except grpc.aio.AioRpcError as error:
            # gRPC itself tells the deadline, without a word of the server's.
            code = dict(error.trailing_metadata() or ()).get("mqan-code", error.code().name.lower())
            seen[str(code), "Answer", "grpc"] += 1
        else:
            seen["ok", "Answer", "grpc"] += 1

    for _ in range(3):
        await post()
        await call()
    await post(context=" ")
    await call(question="")
    await post(context="explode")
    await post(timeout_ms=0)
    engine.may_answer.clear()
    late = asyncio.ensure_future(call(timeout=2))
    await until(callers, "mqan_requests_in_flight", 1)  # it has come before its time is over
    await post(timeout_ms=30)
    await late
    await until(callers, "mqan_requests_in_flight", 0)
    waiting = [asyncio.ensure_future(post()) for _ in range(2)]
    await until(callers, "mqan_requests_in_flight", 2)
    await post()
    await call()
    engine.may_answer.set()
    await asyncio.gather(*waiting)
    engine.may_answer.clear()
    gone: list[Any] = [asyncio.ensure_future(callers.post()), callers.call()]
    await until(callers, "mqan_requests_in_flight", 2)
    for request in gone:
        request.cancel()
    seen["cancelled", "Answer", "rest"] = seen["cancelled", "Answer", "grpc"] = 1
    await until(callers, "mqan_requests_in_flight", 0)
    await callers.rest.get("/health/ready")
    await callers.rest.get("/v1/model")
    await callers.rpc.GetModel(answer_pb2.GetModelRequest(), timeout=10)
    await callers.rest.get("/v1/\N{SNOWMAN}")
    seen["ok", "Check", "rest"] = seen["ok", "GetModel", "rest"] = seen["ok", "GetModel", "grpc"] = 1
    seen["not_found", "other", "rest"] = 1

    samples = await scrape(callers)
    counted = {labels: value for (name, labels), value in samples.items() if name == "mqan_requests_total" and value}
    scrapes = counted.pop(("ok", "other", "rest"))
    assert scrapes > 1
    assert counted == dict(seen)
    assert {code for code, _, _ in seen} >= {"ok", "overloaded", "deadline_exceeded", "cancelled", "internal"}
    for transport in TRANSPORTS:
        name = "mqan_request_duration_seconds_count"
        assert samples[name, ("Answer", transport)] == seen["ok", "Answer", transport]


async def test_answers_are_counted_by_source(start_server: StartServer) -> None:
    callers = await start_server(max_answer_tokens=2)
    for _ in range(4):
        await callers.post()
    samples = await scrape(callers)
    sources = ("context", "question", "vocabulary")
    assert [samples["mqan_answer_words_total", (source,)] for source in sources] == [8, 0, 0]
    assert [samples["mqan_answer_mass_total", (source,)] for source in sources] == [4, 2, 2]


async def test_answers_are_counted_by_kind_and_by_how_sure_they_are() -> None:
    metrics, timeline = Metrics(), Timeline()
    choice = ChoiceProbability("a", 0.4, 0.5, 0.6)
    free = Answer("a", 0.25, (), (), False)
    for answer in (
        free,
        replace(free, text="", answered=False, refusal=0.75),
        replace(free, choices=(choice,)),
        replace(free, choices=(choice,), is_multiple=True),
        replace(free, choices=(choice,), expected=1.0, answered=False, refusal=0.9),
    ):
        metrics.count_answer(answer, timeline)
    samples = read(metrics.render().decode())
    found = {labels: sure for (name, labels), sure in samples.items() if name == "mqan_answer_confidence_sum"}
    assert {labels: sure for labels, sure in found.items() if sure} == {
        ("free", "answered"): 0.25,
        ("free", "refused"): 0.75,
        ("choice", "answered"): 0.5,
        ("several", "answered"): 0.6,
        ("scale", "refused"): 0.9,
    }


async def test_a_series_without_events_is_one_that_its_method_can_have(start_server: StartServer) -> None:
    codes = {labels[0] for name, labels in await scrape(await start_server()) if name == "mqan_requests_total"}
    assert codes == {"ok", "cancelled", *(code for code, kind in ERRORS.items() if kind.http in (429, 500, 503, 504))}


async def test_state_of_the_server(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(max_queued_requests=7, max_batch_size=1)
    await callers.service.warm_up()
    samples = await scrape(callers)
    assert samples["mqan_requests_in_flight_limit", ()] == 8
    assert samples["mqan_model_info", ("stand-in", "StandIn", "0" * 64, "1")] == 1
    engine.may_answer.clear()
    waiting = [asyncio.ensure_future(callers.post()) for _ in range(4)]
    await until(callers, "mqan_requests_in_flight", 4)
    await until(callers, "mqan_queue_depth", 3)
    engine.may_answer.set()
    await asyncio.gather(*waiting)
    await until(callers, "mqan_queue_depth", 0)
    assert (await scrape(callers))["mqan_requests_in_flight", ()] == 0


async def test_nothing_callers_send_becomes_a_label(start_server: StartServer) -> None:
    callers = await start_server()
    before = await scrape(callers)
    for i in range(50):
        await callers.rest.get(f"/v1/path{i}", headers={"x-request-id": f"id{i}", "user-agent": f"agent{i}"})
        await callers.post(context=f"word{i}")
        await callers.rest.request(f"METHOD{i}", "/v1/answer")
    after = await scrape(callers)
    new = [labels for name, labels in after.keys() - before.keys() if name == "mqan_requests_total"]
    assert sorted(new) == [(code, "other", "rest") for code in ("malformed_request", "not_found", "ok")]
    for name, labels in after:
        if name == "mqan_requests_total":
            code, method, transport = labels
            assert transport in TRANSPORTS
            assert method in METHODS
            assert code in CODES
    assert set(CODES) == {"ok", "cancelled", *ERRORS}


async def test_metrics_may_need_a_key(start_server: StartServer, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    key = add_key(file, "prometheus")
    callers = await start_server(api_key_file=file)
    assert (await callers.rest.get("/metrics")).status_code == 200
    callers = await start_server(api_key_file=file, metrics_need_key=True)
    assert (await callers.rest.get("/metrics")).status_code == 401
    callers.rest.headers["authorization"] = f"Bearer {key}"
    assert (await callers.rest.get("/metrics")).status_code == 200


_PROCESS = """
import sys
from types import SimpleNamespace
from mqan_serving.observability.metrics import Metrics
metrics = Metrics()
limits = SimpleNamespace(max_concurrent_requests=8)
metrics.describe_server(SimpleNamespace(name="n", version="v", sha256="s", provider="p", limits=limits))
with metrics.track_request():
    metrics.observe("n", 2, 1.5)
    for _ in range(int(sys.argv[1])):
        metrics.count_request("rest", "Answer", "ok", 0.02)
    print("done", flush=True)
    if sys.stdin.readline():
        sys.stdout.write(metrics.render().decode())
"""


def test_processes_are_summed_and_the_ended_keep_their_counts(tmp_path: Path) -> None:
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "not" / "there")}
    processes = []
    for number in (3, 4, 5):
        process = subprocess.Popen(
            [sys.executable, "-c", _PROCESS, str(number)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
    processes[0].kill()
    processes[0].communicate()
    samples = read(processes[1].communicate("render\n", timeout=30)[0])
    processes[2].communicate("\n", timeout=30)
    assert samples["mqan_requests_total", ("ok", "Answer", "rest")] == 12
    assert samples["mqan_request_duration_seconds_count", ("Answer", "rest")] == 12
    assert samples["mqan_requests_in_flight", ()] == 2
    assert samples["mqan_queue_depth", ()] == 4
    assert samples["mqan_requests_in_flight_limit", ()] == 16
    assert sum(value for (name, _), value in samples.items() if name == "mqan_model_info") == 1


_LEFT: dict[str, tuple[str, bytes | None]] = {  # by what happened: a file and what it holds, a folder where None
    "killed while it was made": ("counter_999999.db", b""),
    "the disk was full": ("counter_999999.db", b"\x20\0\0\0"),
    "garbage": ("counter_999999.db", b"\xff" * 4096),
    "a gauge without a process": ("gauge_livesum_x.db", b""),
    "a gauge of the dead": ("gauge_livesum_999999.db", b""),
    "a file of others": ("notes.db", b"x"),
    "a folder in place of a file": ("counter_77.db", None),
}


@pytest.mark.parametrize("name", _LEFT)
def test_what_others_left_in_the_folder_costs_no_counts(name: str, tmp_path: Path) -> None:
    file, content = _LEFT[name]
    if content is None:
        (tmp_path / file).mkdir()
    else:
        (tmp_path / file).write_bytes(content)
    ended = subprocess.run(
        [sys.executable, "-c", _PROCESS, "3"],
        env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        input="render\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    samples = read(ended.stdout.removeprefix("done\n"))
    assert samples["mqan_requests_total", ("ok", "Answer", "rest")] == 3
    assert samples["mqan_requests_in_flight", ()] == 1
