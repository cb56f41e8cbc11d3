"""Many questions in one call of REST or gRPC: each has its own answer or error, in order."""

import asyncio
import time
from typing import Any

import grpc
import pytest

from mqan.v1 import answer_pb2 as pb2
from mqan_serving.contract.calls import MOST_EXPLAINED, MOST_QUESTIONS, MOST_TEXTS
from mqan_serving.observability.logs import set_up_logs
from tests.messages import document_of, without_nothing
from tests.serving.conftest import log_lines, refusal, until

CONTEXT = "The kettle is in the kitchen."
EXPLAINED = {"question": "Where?", "explain": True}


def question(text: str = "Where?", id: str | None = None, timeout_ms: int | None = None, **asked: Any) -> Any:
    request = pb2.AnswerRequest(question=text, **asked)
    return pb2.AskedQuestion(id=id, request=request, timeout_ms=timeout_ms)


def text(*questions: Any, context: str = CONTEXT, id: str | None = None) -> Any:
    return pb2.AskedText(id=id, context=context, questions=questions)


async def call(callers: Any, *texts: Any) -> Any:
    return await callers.rpc.AnswerMany(pb2.AnswerManyRequest(texts=texts), timeout=10)


async def ask(callers: Any, **body: Any) -> Any:
    response = await callers.rest.post("/v1/answers", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def test_questions_about_one_text_are_answered_in_order(start_server: Any) -> None:
    callers = await start_server()
    questions = ["Where is it?", {"id": "short", "question": "What is it?", "max_answer_tokens": 1}]
    found = await ask(callers, context=CONTEXT, questions=questions)
    [of_text] = found["texts"]
    assert of_text["id"] is None
    first, second = of_text["answers"]
    assert (first["id"], first["answer"]["answer"], first["error"]) == (None, "The kettle is", None)
    assert (second["id"], second["answer"]["answer"]) == ("short", "The")
    assert found["model"] == {"name": "stand-in", "version": "1"}
    alone = (await callers.post(question="Where is it?")).json()
    assert first["answer"] == alone


async def test_each_question_has_its_own_error(start_server: Any) -> None:
    callers = await start_server()
    questions = [
        {"id": "a", "question": " "},
        {"id": "b", "question": "Where?", "max_answer_tokens": 0},
        {"id": "c"},
        {"id": "d", "question": "Where?", "colour": "red"},
        {"id": "e", "question": 5},
        {"id": 6, "question": "Where?"},
        {"id": "g", "question": "Where?", "context": "another"},
        {"id": "s", "question": "Where?", "stream": True},
        7,
        {"id": "h", "question": "Where?"},
    ]
    [of_text] = (await ask(callers, context=CONTEXT, questions=questions))["texts"]
    codes = [answer["error"] and answer["error"]["code"] for answer in of_text["answers"]]
    assert codes == [
        "empty_question",
        "max_answer_tokens_out_of_range",
        "missing_field",
        "unknown_field",
        "wrong_type",
        "wrong_type",
        "unknown_field",
        "unknown_field",
        "wrong_type",
        None,
    ]
    assert of_text["answers"][-1]["answer"]["answer"] == "The kettle is"
    assert all(answer["error"]["hint"] for answer in of_text["answers"][:-1])


async def test_a_text_that_breaks_the_engine_costs_only_its_own_answers(start_server: Any) -> None:
    callers = await start_server(max_batch_size=1)
    texts = [
        {"id": "x", "context": "explode now", "questions": ["Why?"]},
        {"id": "y", "context": CONTEXT, "questions": ["Where?"]},
        {"id": "z", "context": "", "questions": ["Where?"]},
    ]
    x, y, z = (await ask(callers, texts=texts))["texts"]
    assert x["answers"][0]["error"]["code"] == "internal"
    assert "secret" not in x["answers"][0]["error"]["message"]
    assert (y["id"], y["answers"][0]["answer"]["answer"]) == ("y", "The kettle is")
    assert z["answers"][0]["error"]["code"] == "empty_context"


async def test_a_call_may_ask_more_than_the_server_has_places(start_server: Any) -> None:
    callers = await start_server(max_queued_requests=1, max_batch_size=1, num_threads=1)
    questions = [{"id": str(i), "question": f"Where {i}?"} for i in range(MOST_QUESTIONS)]
    [of_text] = (await ask(callers, context=CONTEXT, questions=questions))["texts"]
    assert [answer["id"] for answer in of_text["answers"]] == [str(i) for i in range(MOST_QUESTIONS)]
    assert all(answer["answer"]["answer"] == "The kettle is" for answer in of_text["answers"])


@pytest.mark.parametrize("of_call", [200, None])
async def test_a_question_that_finds_no_place_in_time_says_so(
    start_server: Any, engine: Any, of_call: int | None
) -> None:
    callers = await start_server(max_queued_requests=1, max_batch_size=1, num_threads=1)
    engine.may_answer.clear()
    held = [asyncio.create_task(callers.post()) for _ in range(2)]
    await until(lambda: callers.service.num_requests >= 2)
    questions = [{"question": "Where?", "timeout_ms": 20_000 if of_call else 200}]
    [of_text] = (await ask(callers, context=CONTEXT, questions=questions, timeout_ms=of_call))["texts"]
    assert of_text["answers"][0]["error"]["code"] == "overloaded"
    engine.may_answer.set()
    assert [(await one).status_code for one in held] == [200, 200]


@pytest.mark.parametrize(("of_call", "limits"), [(300, {}), (None, {"request_timeout_s": 0.3})])
async def test_the_time_of_a_call_begins_with_the_call(
    start_server: Any, engine: Any, of_call: int | None, limits: dict[str, float]
) -> None:
    callers = await start_server(max_batch_size=1, num_threads=1, **limits)
    engine.may_answer.clear()
    number = 40 * callers.service.num_side_by_side
    begun = time.monotonic()
    [of_text] = (await ask(callers, context=CONTEXT, questions=["Where?"] * number, timeout_ms=of_call))["texts"]
    took_s = time.monotonic() - begun
    engine.may_answer.set()
    told = {(answer["error"]["code"], answer["error"]["message"]) for answer in of_text["answers"]}
    assert told == {("deadline_exceeded", "No answer within 0.3 s.")}
    assert took_s < 6  # and not 300 ms for each of those that wait for others, which would be 12 s


async def test_the_time_of_a_question_is_not_given_twice(start_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it waited for a place is taken from what the engine may take."""
    callers = await start_server()
    admission, batcher = callers.service._admission, callers.service._batcher
    answer, waits, left_s = batcher.answer, list[int](), list[float]()

    async def wait(work: int) -> None:
        await asyncio.sleep(0.011)
        waits.append(work)

    async def answer_in_time(*given: Any, deadline: float, **named: Any) -> Any:
        left_s.append(deadline - time.monotonic())
        return await answer(*given, deadline=deadline, **named)

    monkeypatch.setattr(admission, "has_room", lambda work: len(waits) >= 4)
    monkeypatch.setattr(admission, "wait", wait)
    monkeypatch.setattr(batcher, "answer", answer_in_time)
    questions = [{"question": "Where?", "timeout_ms": 20_000}]
    [of_text] = (await ask(callers, context=CONTEXT, questions=questions))["texts"]
    assert of_text["answers"][0]["answer"]["answer"] == "The kettle is"
    assert len(waits) == 4
    [engine_s] = left_s
    assert 0 < engine_s <= 20 - 4 * 0.01  # each wait is at least so long


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("[", 400, "malformed_request"),
        ([], 400, "malformed_request"),
        ({}, 422, "missing_field"),
        ({"context": CONTEXT}, 422, "missing_field"),
        ({"context": CONTEXT, "questions": []}, 422, "wrong_type"),
        ({"context": CONTEXT, "questions": "Where?"}, 422, "wrong_type"),
        ({"context": 5, "questions": ["Where?"]}, 422, "wrong_type"),
        ({"context": CONTEXT, "questions": ["Where?"], "colour": 1}, 422, "unknown_field"),
        ({"texts": [], "context": CONTEXT}, 422, "unknown_field"),
        ({"context": CONTEXT, "questions": ["Where?"], "timeout_ms": 0}, 400, "invalid_timeout"),
        ({"texts": [{"context": CONTEXT, "questions": ["Where?"], "timeout_ms": 5}]}, 422, "unknown_field"),
        ({"texts": [5]}, 422, "wrong_type"),
        ({"texts": [{"context": "a", "questions": ["b"]}] * (MOST_TEXTS + 1)}, 422, "too_many_questions"),
        ({"context": CONTEXT, "questions": ["Where?"] * (MOST_QUESTIONS + 1)}, 422, "too_many_questions"),
        ({"texts": [{"context": "a", "questions": ["b"] * 256}] * 5}, 422, "too_many_questions"),
        ({"context": CONTEXT, "questions": [EXPLAINED] * (MOST_EXPLAINED + 1)}, 422, "too_many_questions"),
        ({"texts": [{"context": "a", "questions": [EXPLAINED]}] * (MOST_EXPLAINED + 1)}, 422, "too_many_questions"),
        ({"context": CONTEXT, "questions": [{"id": "a", "question": "b"}] * 2}, 422, "duplicate_id"),
        ({"texts": [{"id": "a", "context": "a", "questions": ["b"]}] * 2}, 422, "duplicate_id"),
    ],
)
async def test_a_call_that_makes_no_sense_is_refused_as_a_whole(
    start_server: Any, body: Any, status: int, code: str
) -> None:
    callers = await start_server()
    headers = {"content-type": "application/json"}
    given = {"content": body, "headers": headers} if isinstance(body, str) else {"json": body}
    response = await callers.rest.post("/v1/answers", **given)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert callers.service.num_requests == 0


async def test_as_many_questions_are_explained_as_are_accepted_beside_others(start_server: Any) -> None:
    callers = await start_server()
    found = await ask(callers, context=CONTEXT, questions=[EXPLAINED] * MOST_EXPLAINED + ["Where?"])
    assert [answer["error"] for answer in found["texts"][0]["answers"]] == [None] * (MOST_EXPLAINED + 1)


async def test_a_call_in_progress_is_answered_whole_while_the_server_drains(start_server: Any, engine: Any) -> None:
    callers = await start_server(max_batch_size=1, num_threads=1)
    engine.may_answer.clear()
    number = 3 * callers.service.num_side_by_side
    call = asyncio.create_task(ask(callers, context=CONTEXT, questions=["Where?"] * number))
    await until(lambda: callers.service.num_requests > 0)
    drain = asyncio.create_task(callers.server.models.drain(20))
    await asyncio.sleep(0)
    assert callers.server.models.health.state == "draining"
    engine.may_answer.set()
    [of_text] = (await call)["texts"]
    assert [answer["error"] for answer in of_text["answers"]] == [None] * number
    await drain


async def test_as_many_calls_are_taken_as_questions(start_server: Any, engine: Any) -> None:
    callers = await start_server(max_queued_requests=1, max_batch_size=1, num_threads=1)
    engine.may_answer.clear()
    most = callers.service.limits.max_concurrent_requests
    calls = [asyncio.create_task(ask(callers, context=CONTEXT, questions=["Where?"] * 9)) for _ in range(most)]
    await until(lambda: callers.service.num_requests >= most)
    refused = await callers.rest.post("/v1/answers", json={"context": CONTEXT, "questions": ["Where?"]})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    engine.may_answer.set()
    for call in calls:
        assert [answer["error"] for answer in (await call)["texts"][0]["answers"]] == [None] * 9


async def test_faults_and_refusals_within_a_call_are_logged_and_counted(
    start_server: Any, engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs("info")
    callers = await start_server()
    await ask(callers, context="explode", questions=["Where?", "What?"])
    engine.may_answer.clear()
    await ask(callers, context=CONTEXT, questions=["Where?"] * 3, timeout_ms=100)
    engine.may_answer.set()
    await ask(callers, context=CONTEXT, questions=["Where?", " "])
    lines = log_lines(capsys)
    told = [(line["event"], line.get("code"), line.get("unanswered")) for line in lines if line.get("transport")]
    assert told == [
        ("failed", None, None),
        ("failed", None, None),
        ("refused", "internal", 2),
        ("refused", "deadline_exceeded", 3),
        ("answered", None, 1),
    ]
    assert all("secret of the engine" in line["exception"] for line in lines if line["event"] == "failed")
    counted = (await callers.rest.get("/metrics")).text
    for code in ("internal", "deadline_exceeded", "ok"):
        assert f'mqan_requests_total{{code="{code}",method="AnswerMany",transport="rest"}} 1.0' in counted


SMALL = {
    "/v1/answers": {"context": CONTEXT, "questions": ["a"] * 3},
    "/v1/records": {"context": CONTEXT, "schema": {"properties": {name: {"type": "string"} for name in "abc"}}},
    "/v1/hf/zero-shot-classification": {"inputs": [CONTEXT] * 3, "parameters": {"candidate_labels": ["a", "b"]}},
    "/v2/models/stand-in/infer": {
        "inputs": [
            {"name": "context", "datatype": "BYTES", "shape": [1], "data": [CONTEXT]},
            {"name": "question", "datatype": "BYTES", "shape": [3], "data": ["a"] * 3},
        ]
    },
}


@pytest.mark.parametrize("path", [*SMALL, "AnswerMany"])
async def test_a_caller_who_goes_away_frees_all_places_and_a_draining_server_takes_no_call(
    start_server: Any, engine: Any, path: str
) -> None:
    callers = await start_server(max_batch_size=1)
    engine.may_answer.clear()

    def ask_all() -> Any:
        if path == "AnswerMany":
            return callers.rpc.AnswerMany(pb2.AnswerManyRequest(texts=[text(*[question()] * 3)]), timeout=10)
        return asyncio.ensure_future(callers.rest.post(path, json=SMALL[path]))

    call = ask_all()
    await until(lambda: callers.service.num_requests >= 2)
    call.cancel()
    await until(lambda: callers.service.num_requests == 0)
    callers.service.health.set_draining()
    if path == "AnswerMany":
        assert (await refusal(ask_all()))[0] is grpc.StatusCode.UNAVAILABLE
    else:
        refused = await ask_all()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


LABELS = [f"v{i}" for i in range(255)]
HEAVY = {
    "/v1/answers": {"texts": [{"context": CONTEXT, "questions": [{"question": "Which?", "choices": LABELS}]}] * 100},
    "/v1/hf/zero-shot-classification": {"inputs": [CONTEXT] * 100, "parameters": {"candidate_labels": LABELS}},
    "/v1/records": {"context": CONTEXT, "schema": {"properties": {f"f{i}": {"enum": LABELS} for i in range(100)}}},
    "/v1/systemone": {
        "model": "jev-latest",
        "state": CONTEXT,
        "questions": {f"q{i}": {"type": "choice", "criteria": dict.fromkeys(LABELS)} for i in range(100)},
    },
    "/v2/models/stand-in/infer": {
        "inputs": [
            {"name": "context", "datatype": "BYTES", "shape": [100], "data": [CONTEXT] * 100},
            {"name": "question", "datatype": "BYTES", "shape": [1], "data": ["Which?"]},
            {"name": "choices", "datatype": "BYTES", "shape": [255], "data": LABELS},
        ]
    },
}


@pytest.mark.parametrize("path", HEAVY)
async def test_what_cannot_be_read_in_its_time_is_refused_at_once(start_server: Any, engine: Any, path: str) -> None:
    callers = await start_server(max_batch_size=1)
    callers.service._pace.note(1000, 1)
    refused = await callers.rest.post(path, json=HEAVY[path])
    assert refused.status_code == 413
    assert "server answers in the 30 s of the call" in refused.text
    assert callers.service.num_requests == engine.num_started == 0


async def test_what_can_be_read_in_its_time_is_taken(start_server: Any) -> None:
    callers = await start_server(request_timeout_s=300)
    callers.service._pace.note(1000, 2)
    texts = [{"context": CONTEXT, "questions": [{"question": "Which?", "choices": LABELS}]}] * 60
    assert len((await ask(callers, texts=texts))["texts"]) == 60
    refused = await callers.rest.post("/v1/answers", json={"texts": texts, "timeout_ms": 2000})
    assert refused.status_code == 413


async def test_questions_side_by_side_are_as_many_as_can_be_read_soon(start_server: Any, engine: Any) -> None:
    callers = await start_server(max_batch_size=8)
    engine.may_answer.clear()
    most = {}
    for name, given, expected in (
        ("light", {}, callers.service.num_side_by_side),
        ("heavy", {"choices": LABELS}, 2),
    ):
        questions = [{"question": "Which?", **given}] * 20
        call = asyncio.create_task(ask(callers, context=CONTEXT, questions=questions))
        await until(lambda: callers.service.num_requests >= expected)  # noqa: B023  called at once
        await asyncio.sleep(0.1)  # in which more would come
        most[name] = callers.service.num_requests
        call.cancel()
        await until(lambda: callers.service.num_requests == 0)
    assert most == {"light": callers.service.num_side_by_side, "heavy": 2}


# --- In messages


async def test_both_transports_answer_alike(start_server: Any) -> None:
    callers = await start_server()
    asked = [question("Where is it?"), question("What is it?", "short", max_answer_tokens=1), question(" ", "blank")]
    response = await call(callers, text(*asked, id="mail"), text(question("Who?"), context="A lamp."))
    rows = ["Where is it?", {"id": "short", "question": "What is it?", "max_answer_tokens": 1}]
    rows.append({"id": "blank", "question": " "})
    texts = [{"id": "mail", "context": CONTEXT, "questions": rows}, {"context": "A lamp.", "questions": ["Who?"]}]
    rest = (await callers.rest.post("/v1/answers", json={"texts": texts})).json()
    assert document_of(response) == without_nothing(rest)
    assert [answer.WhichOneof("result") for answer in response.texts[0].answers] == ["answer", "answer", "error"]
    assert not response.texts[1].HasField("id")


async def test_each_question_has_its_own_error_in_messages(start_server: Any) -> None:
    callers = await start_server()
    asked = [
        question(" ", "a"),
        question("Where?", "b", max_answer_tokens=0),
        question("Where?", "c", timeout_ms=0),
        question("Where?", "d", sources=[9]),
        question("Where?", "e", context="another"),
        question("Where?", ""),
        question("Where?", "x" * 201),
        pb2.AskedQuestion(id="f"),
        question("Where?", "g"),
    ]
    [of_text] = (await call(callers, text(*asked))).texts
    assert [(answer.id, answer.error.code) for answer in of_text.answers] == [
        ("a", "empty_question"),
        ("b", "max_answer_tokens_out_of_range"),
        ("c", "invalid_timeout"),
        ("d", "wrong_type"),
        ("e", "unknown_field"),
        ("", "wrong_type"),
        ("", "wrong_type"),
        ("f", "empty_question"),
        ("g", ""),
    ]
    assert all(answer.error.hint for answer in of_text.answers[:-1])
    assert of_text.answers[-1].answer.answer == "The kettle is"


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ([], "wrong_type"),
        ([text(*[question()] * (MOST_QUESTIONS + 1))], "too_many_questions"),
        ([text(question(), id="a")] * 2, "duplicate_id"),
        ([text(question(), id="")], "wrong_type"),
    ],
)
async def test_messages_that_make_no_sense_are_refused_as_a_whole(start_server: Any, texts: Any, code: str) -> None:
    callers = await start_server()
    status, trailing = await refusal(call(callers, *texts))
    assert (status, trailing["mqan-code"]) == (grpc.StatusCode.INVALID_ARGUMENT, code)
    assert callers.service.num_requests == 0


async def test_a_question_has_its_own_time(start_server: Any, engine: Any, end_time: Any) -> None:
    callers = await start_server()
    engine.may_answer.clear()
    asked = asyncio.create_task(call(callers, text(question("Now?", timeout_ms=100), question("Later?"))))
    await until(lambda: callers.service.num_requests == 2)
    end_time(0)
    await until(lambda: callers.service.num_requests == 1)
    engine.may_answer.set()
    [of_text] = (await asked).texts
    assert [answer.error.code for answer in of_text.answers] == ["deadline_exceeded", ""]
