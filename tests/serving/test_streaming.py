"""Answers word by word, over REST and gRPC: what comes when, and what becomes of errors, callers and the server."""

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from mqan.v1 import answer_pb2
from tests.serving.conftest import StartServer, log_lines, refusal, until

Events = AsyncIterator[tuple[str, Any]]

STEPS = "What is first? step step step"  # three words, one a step, and the end


async def rest_events(callers: Any, **changes: Any) -> Events:
    async with callers.rest.stream("POST", "/v1/answer", json=callers.body | {"stream": True} | changes) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"
        event = ""
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield event, json.loads(line.removeprefix("data: "))


async def rpc_events(callers: Any, **changes: Any) -> Events:
    call = callers.rpc.AnswerStream(callers.request(**changes), timeout=10)
    try:
        async for part in call:
            word = {"text": part.word.token.text, "delta": part.word.delta}
            yield ("word", word) if part.HasField("word") else ("answer", part.answer)
    finally:
        call.cancel()


@pytest.fixture(params=[rest_events, rpc_events], ids=["rest", "grpc"])
def events(request: pytest.FixtureRequest) -> Callable[..., Events]:
    """Asks over a transport; yields the name of each event and what it holds."""
    found: Callable[..., Events] = request.param
    return found


def requests_of(callers: Any, method: str) -> dict[str, float]:
    """Return how many requests ended how."""
    found: dict[str, float] = defaultdict(float)
    for line in callers.metrics.render().decode().splitlines():
        if line.startswith("mqan_requests_total{") and f'method="{method}"' in line:
            found[line.partition('code="')[2].partition('"')[0]] += float(line.rpartition(" ")[2])
    return {code: number for code, number in found.items() if number}


async def test_each_word_is_sent_before_the_next_is_decided(
    start_server: StartServer, engine: Any, events: Callable[..., Events]
) -> None:
    callers = await start_server()
    engine.may_step = threading.Semaphore(0)
    streamed = events(callers, question=STEPS)
    for text in ("The", "kettle", "is"):
        engine.may_step.release()
        name, word = await anext(streamed)
        assert (name, word["text"]) == ("word", text)
        assert callers.service.num_requests == 1, "it still decodes"
    engine.may_step.release()
    name, answer = await anext(streamed)
    assert name == "answer"
    engine.may_step = threading.Semaphore(10)
    if isinstance(answer, answer_pb2.AnswerResponse):
        assert answer == await callers.call(question=STEPS)
    else:
        assert answer == (await callers.post(question=STEPS)).json()
    with pytest.raises(StopAsyncIteration):
        await anext(streamed)
    assert requests_of(callers, "AnswerStream") == {"ok": 1}


async def test_words_that_no_step_told_come_before_the_answer(
    start_server: StartServer, events: Callable[..., Events]
) -> None:
    callers = await start_server()
    context = 'He said:\n"yes ".'
    found = [event async for event in events(callers, context=context)]
    assert [name for name, _ in found] == ["word"] * 3 + ["answer"]
    assert "".join(word["delta"] for _, word in found[:3]) == "He said:"


async def test_streams_decode_in_the_batches_of_others(start_server: StartServer, engine: Any) -> None:
    callers = await start_server()
    engine.may_answer.clear()
    first = asyncio.ensure_future(callers.post(context="first"))
    await until(lambda: engine.num_started == 1)

    async def collect(events: Events) -> list[tuple[str, Any]]:
        return [event async for event in events]

    together = [
        asyncio.ensure_future(collect(rest_events(callers, context="one two three", question=STEPS))),
        asyncio.ensure_future(callers.post(context="four five six", question=STEPS)),
        asyncio.ensure_future(collect(rpc_events(callers, context="seven eight nine", question=STEPS))),
    ]
    await until(lambda: callers.service._batcher.num_waiting == 3)
    engine.may_answer.set()
    await first
    streamed, plain, by_rpc = await asyncio.gather(*together)
    assert sorted(engine.batches[1]) == ["four five six", "one two three", "seven eight nine"]
    assert [event["text"] for name, event in streamed if name == "word"] == ["one", "two", "three"]
    assert [event["delta"] for name, event in by_rpc if name == "word"] == ["seven", " eight", " nine"]
    assert plain.json()["answer"] == "four five six"


def _failing_once(step: Callable[..., Any]) -> Callable[..., Any]:
    failures = [RuntimeError("secret of the step")]

    def run(decoding: Any) -> Any:
        if failures:
            raise failures.pop()
        return step(decoding)

    return run


async def test_who_is_tried_again_is_told_no_word_twice(start_server: StartServer, engine: Any) -> None:
    callers = await start_server()
    engine.may_answer.clear()
    first = asyncio.ensure_future(callers.post(context="first"))
    await until(lambda: engine.num_started == 1)
    engine.may_step = threading.Semaphore(2)  # the first answer, and one step of the next batch

    async def collect() -> list[str]:
        found = [event async for event in rest_events(callers, context="one two three", question=STEPS)]
        return [event.get("text", name) for name, event in found]

    streamed = asyncio.ensure_future(collect())
    other = asyncio.ensure_future(callers.post(context="four five six", question=STEPS))
    await until(lambda: callers.service.num_requests == 3)
    engine.may_answer.set()
    await first
    await until(lambda: len(engine.steps) == 2)
    engine.step = _failing_once(engine.step)
    engine.may_step.release(100)
    assert await streamed == ["one", "two", "three", "answer"]
    assert (await other).json()["answer"] == "four five six"
    assert len(engine.batches) == 4, "both were tried again, each alone"


REFUSED = [
    ({"context": " "}, 422, "empty_context"),
    ({"context": "explode"}, 500, "internal"),
    ({"min_probability": 2.0}, 422, "option_out_of_range"),
]


@pytest.mark.parametrize(("changes", "status", "code"), REFUSED, ids=[code for *_, code in REFUSED])
async def test_an_error_before_the_first_word_is_that_of_the_plain_call(
    start_server: StartServer, changes: dict[str, Any], status: int, code: str
) -> None:
    callers = await start_server()
    response = await callers.post(stream=True, **changes)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert set(response.json()) == set((await callers.post(**changes)).json())
    assert (await refusal(anext(rpc_events(callers, **changes))))[1]["mqan-code"] == code
    assert requests_of(callers, "AnswerStream") == {code: 2}


async def test_an_error_after_the_first_word_is_the_last_event(
    start_server: StartServer, engine: Any, end_time: Callable[[int], None]
) -> None:
    callers = await start_server()
    engine.may_step = threading.Semaphore(2)
    events = rest_events(callers, question=STEPS, context="one two three")
    assert [(await anext(events))[0] for _ in range(2)] == ["word", "word"]
    end_time(0)
    [(name, error)] = [event async for event in events]
    assert (name, error["code"]) == ("error", "deadline_exceeded")
    assert set(error) == {"code", "message", "hint", "request_id"}
    assert callers.service.num_requests == 0
    engine.may_step.release(2)
    parts = rpc_events(callers, question=STEPS, context="four five six")
    assert (await anext(parts))[1]["text"] == "four"
    end_time(1)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        async for _ in parts:
            pass
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert dict(raised.value.trailing_metadata())["mqan-code"] == "deadline_exceeded"
    assert requests_of(callers, "AnswerStream") == {"deadline_exceeded": 2}


async def test_what_cannot_be_told_fails_alone(start_server: StartServer, events: Callable[..., Events]) -> None:
    callers = await start_server()
    changes = {"context": "undecidable", "question": STEPS}
    with pytest.raises((AssertionError, grpc.aio.AioRpcError)):  # the status is not 200
        await anext(events(callers, **changes))
    assert (await callers.post(**changes)).status_code == 200, "nobody looks at its words in a plain call"


async def test_a_caller_that_goes_away_ends_the_decoding(
    start_server: StartServer, engine: Any, events: Callable[..., Events], capsys: pytest.CaptureFixture[str]
) -> None:
    callers = await start_server()
    engine.may_step = threading.Semaphore(1)
    streamed = events(callers, question=STEPS)
    await anext(streamed)
    assert callers.service.num_requests == 1
    await streamed.aclose()  # type: ignore[attr-defined]
    await until(lambda: callers.service.num_requests == 0)
    engine.may_step.release(5)
    await until(lambda: engine.num_running == 0)
    assert len(engine.steps) <= 2, "it left at the next step"
    await until(lambda: requests_of(callers, "AnswerStream") == {"cancelled": 1})
    lines = log_lines(capsys)
    assert [line["event"] for line in lines if "request_id" in line] == ["cancelled"]


async def test_a_server_that_stops_finishes_its_streams(
    start_server: StartServer, engine: Any, events: Callable[..., Events]
) -> None:
    callers = await start_server()
    engine.may_step = threading.Semaphore(1)
    streamed = events(callers, question=STEPS)
    await anext(streamed)
    stopping = asyncio.ensure_future(callers.server.stop())
    await until(lambda: not callers.server.models.health.is_ready)
    refused = await callers.post(stream=True)
    assert refused.status_code == 503
    engine.may_step.release(10)
    assert [name async for name, _ in streamed] == ["word", "word", "answer"]
    await stopping


async def test_one_line_of_the_log_and_one_key_for_a_stream(
    start_server: StartServer, events: Callable[..., Events], capsys: pytest.CaptureFixture[str]
) -> None:
    callers = await start_server()
    assert [name async for name, _ in events(callers)][-1] == "answer"
    lines = log_lines(capsys)
    (line,) = [line for line in lines if "request_id" in line]
    assert (line["event"], line["answer_tokens"]) == ("answered", 3)


async def test_streams_need_a_key_where_answers_do(start_server: StartServer, tmp_path: Any) -> None:
    keys = tmp_path / "keys"
    keys.write_text("someone " + "0" * 64 + "\n")
    callers = await start_server(api_key_file=keys)
    assert (await callers.post(stream=True)).status_code == 401
    assert (await refusal(anext(rpc_events(callers))))[0] is grpc.StatusCode.UNAUTHENTICATED
