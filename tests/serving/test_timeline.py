"""Stages: what is in the histograms and in the spans is what the question went through."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mqan_serving.service.timeline import STAGES, Timeline
from tests.serving.conftest import StartServer, until

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture(scope="module")
def provider() -> TracerProvider:
    """What collects spans in this process; there can be only one."""
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    return provider


@pytest.fixture
def spans(provider: TracerProvider) -> Iterator[Callable[[], dict[str, ReadableSpan]]]:
    """Returns the spans that have ended, by name."""
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield lambda: {span.name: span for span in exporter.get_finished_spans()}
    exporter.shutdown()


def test_a_stage_ends_where_the_next_begins() -> None:
    timeline = Timeline()
    begun = time.perf_counter()
    timeline.begin("queue")
    time.sleep(0.02)
    timeline.begin("encode")
    timeline.begin("encode")  # again, after a failure
    time.sleep(0.01)
    timeline.end()
    elapsed = time.perf_counter() - begun
    assert list(timeline.seconds) == ["queue", "encode"]
    assert timeline.seconds["queue"] >= 0.02
    assert timeline.seconds["encode"] >= 0.01
    assert sum(timeline.seconds.values()) <= elapsed + 1e-3


async def test_every_stage_of_an_answer_is_measured(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(max_batch_size=1)
    engine.may_answer.clear()
    waiting = [asyncio.ensure_future(callers.post()) for _ in range(2)]
    await until(lambda: engine.num_started >= 1 and callers.service.num_requests >= 2)
    await asyncio.sleep(0.15)
    engine.may_answer.set()
    await asyncio.gather(*waiting)
    await callers.call(question="what ? step step")
    await callers.post(context="explode")
    text = (await callers.rest.get("/metrics")).text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    for stage in STAGES:
        assert values[f'mqan_stage_duration_seconds_count{{stage="{stage}"}}'] == "3.0", stage
    assert float(values['mqan_stage_duration_seconds_sum{stage="queue"}']) > 0.09, "the second waited for the first"
    assert float(values['mqan_stage_duration_seconds_sum{stage="encode"}']) > 0.09, "the first was held up there"
    assert values["mqan_batch_requests_count"] == values["mqan_batch_requests_sum"] == "3.0"
    assert values["mqan_decoding_steps_total"] == values["mqan_decoding_step_questions_total"] == "5.0"


async def test_questions_that_go_together_are_counted_so(start_server: StartServer, engine: Any) -> None:
    callers = await start_server()
    engine.may_answer.clear()
    first = asyncio.ensure_future(callers.post())
    while engine.num_started < 1:
        await asyncio.sleep(0.01)
    others = [asyncio.ensure_future(callers.post(question="what ? step")) for _ in range(3)]
    await until(lambda: callers.service.num_requests >= 4)
    await until(lambda: callers.service._batcher.num_waiting >= 3)
    engine.may_answer.set()
    await asyncio.gather(first, *others)
    text = (await callers.rest.get("/metrics")).text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert (values["mqan_batch_requests_count"], values["mqan_batch_requests_sum"]) == ("2.0", "4.0")
    tokens = [engine.read(callers.body["context"], question) for question in (callers.body["question"], "what ? step")]
    lengths = [request.num_context_tokens + request.num_question_tokens for request in tokens]
    assert float(values["mqan_batch_tokens_sum"]) == lengths[0] + 3 * lengths[1]
    assert values["mqan_decoding_step_questions_total"] == "7.0"


@pytest.mark.parametrize("transport", ["rest", "grpc"])
async def test_spans_belong_to_the_callers(
    start_server: StartServer, spans: Callable[[], dict[str, ReadableSpan]], transport: str
) -> None:
    callers = await start_server()
    if transport == "rest":
        await callers.rest.post("/v1/answer", json=callers.body, headers={"traceparent": TRACEPARENT})
    else:
        await callers.rpc.Answer(callers.request(), timeout=10, metadata=[("traceparent", TRACEPARENT)])
    found = spans()
    root = found["mqan.Answer"]
    assert root.parent is not None
    assert f"{root.parent.trace_id:032x}" == TRACE
    around = {span.context.span_id: span for span in found.values() if span.context is not None}
    outermost = root  # the web framework has spans of its own around it
    while outermost.parent is not None and outermost.parent.span_id in around:
        outermost = around[outermost.parent.span_id]
    assert outermost.parent is not None
    assert f"{outermost.parent.span_id:016x}" == PARENT
    attributes = dict(root.attributes or {})
    assert attributes["transport"] == transport
    assert attributes["code"] == "ok"
    assert not any("kettle" in str(value) for value in attributes.values()), "no word of the texts"
    for span in (found[stage] for stage in STAGES):
        assert span.parent is not None
        assert root.context is not None
        assert span.parent.span_id == root.context.span_id
        assert root.start_time is not None
        assert root.end_time is not None
        assert span.start_time is not None
        assert span.end_time is not None
        assert root.start_time <= span.start_time <= span.end_time <= root.end_time


async def test_a_fault_of_ours_is_an_error_of_the_span(
    start_server: StartServer, spans: Callable[[], dict[str, ReadableSpan]]
) -> None:
    callers = await start_server()
    await callers.post(context="explode")
    assert spans()["mqan.Answer"].status.status_code is trace.StatusCode.ERROR


async def test_a_refusal_is_none(start_server: StartServer, spans: Callable[[], dict[str, ReadableSpan]]) -> None:
    callers = await start_server()
    await callers.rest.post("/v1/answer", json={"context": " "}, headers={"traceparent": "nonsense"})
    span = spans()["mqan.Answer"]
    assert span.status.status_code is trace.StatusCode.UNSET
    assert dict(span.attributes or {})["code"] != "ok"


async def test_a_callers_headers_are_not_logged(start_server: StartServer, caplog: pytest.LogCaptureFixture) -> None:
    callers = await start_server()
    headers = {"traceparent": TRACEPARENT, "tracestate": "forged words,and=more"}
    response = await callers.rest.post("/v1/answer", json=callers.body, headers=headers)
    assert response.status_code == 200
    assert "forged" not in caplog.text


async def test_an_answer_tells_where_its_time_went(start_server: StartServer) -> None:
    callers = await start_server()
    one = {"context": "The tower is 330 m tall.", "question": "How tall is the tower?"}
    many = {"context": one["context"], "questions": ["How tall?", "How tall step step step?"]}
    for path, body in (("/v1/answer", one), ("/v1/answers", many)):
        response = await callers.rest.post(path, json=body)
        parts = dict(re.findall(r"(\w+);dur=([0-9.]+)", response.headers["server-timing"]))
        assert list(parts) == [*STAGES, "total"]
        *stages, total = map(float, parts.values())
        assert 0 < sum(stages) <= total + 0.05
    for path, body in (("/v1/answer", {}), ("/v1/answers", {**many, "questions": [" "]})):
        assert "server-timing" not in (await callers.rest.post(path, json=body)).headers
    assert "server-timing" not in (await callers.rest.get("/v1/model")).headers
