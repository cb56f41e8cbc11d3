"""``AnswerMany`` over gRPC: what ``POST /v1/answers`` does, in the messages of the contract."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from mqan.v1 import answer_pb2 as pb2
from mqan_serving.contract.calls import MOST_QUESTIONS, MOST_TEXTS

CONTEXT = "The kettle is in the kitchen."


def question(text: str = "Where?", id: str | None = None, timeout_ms: int | None = None, **asked: Any) -> Any:
    request = pb2.AnswerRequest(question=text, **asked)
    return pb2.AskedQuestion(id=id, request=request, timeout_ms=timeout_ms)


def text(*questions: Any, context: str = CONTEXT, id: str | None = None) -> Any:
    return pb2.AskedText(id=id, context=context, questions=questions)


async def ask(callers: Any, *texts: Any) -> Any:
    return await callers.rpc.AnswerMany(pb2.AnswerManyRequest(texts=texts), timeout=10)


async def test_both_transports_answer_alike(start_server: Any) -> None:
    callers = await start_server()
    asked = [question("Where is it?"), question("What is it?", "short", max_answer_tokens=1), question(" ", "blank")]
    response = await ask(callers, text(*asked, id="mail"), text(question("Who?"), context="A lamp."))
    told = MessageToDict(response, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    for answer in (answer for of_text in told["texts"] for answer in of_text["answers"]):
        for token in answer.get("answer", {}).get("tokens", ()):
            token["source"] = token["source"].removeprefix("SOURCE_").lower()
        for span in answer.get("answer", {}).get("spans", ()):
            span["source"] = span["source"].removeprefix("SOURCE_").lower()
    rows = ["Where is it?", {"id": "short", "question": "What is it?", "max_answer_tokens": 1}]
    rows.append({"id": "blank", "question": " "})
    texts = [{"id": "mail", "context": CONTEXT, "questions": rows}, {"context": "A lamp.", "questions": ["Who?"]}]
    rest = (await callers.rest.post("/v1/answers", json={"texts": texts})).json()
    assert told == without_nothing(rest)
    assert [answer.WhichOneof("result") for answer in response.texts[0].answers] == ["answer", "answer", "error"]
    assert not response.texts[1].HasField("id")


def without_nothing(value: Any) -> Any:
    """Leave out what a message does not have where a document says null."""
    if isinstance(value, dict):
        return {name: without_nothing(inner) for name, inner in value.items() if inner is not None}
    return [without_nothing(inner) for inner in value] if isinstance(value, list) else value


async def test_each_question_has_its_own_error(start_server: Any) -> None:
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
    [of_text] = (await ask(callers, text(*asked))).texts
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
        ([text()], "wrong_type"),
        ([text(question())] * (MOST_TEXTS + 1), "too_many_questions"),
        ([text(*[question()] * (MOST_QUESTIONS + 1))], "too_many_questions"),
        ([text(*[question()] * 256)] * 5, "too_many_questions"),
        ([text(question(id="a"), question(id="a"))], "duplicate_id"),
        ([text(question(), id="a")] * 2, "duplicate_id"),
        ([text(question(), id="")], "wrong_type"),
    ],
)
async def test_a_call_that_makes_no_sense_is_refused_as_a_whole(start_server: Any, texts: Any, code: str) -> None:
    callers = await start_server()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(callers, *texts)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert dict(caught.value.trailing_metadata() or ())["mqan-code"] == code
    assert callers.service.num_requests == 0


async def test_a_question_has_its_own_time(start_server: Any, engine: Any) -> None:
    callers = await start_server()
    engine.may_answer.clear()
    call = asyncio.create_task(ask(callers, text(question("Now?", timeout_ms=100), question("Later?"))))
    async with asyncio.timeout(5):
        while callers.service.num_requests != 1:  # first none, then both, then the one that has time
            await asyncio.sleep(0.005)
    engine.may_answer.set()
    [of_text] = (await call).texts
    assert [answer.error.code for answer in of_text.answers] == ["deadline_exceeded", ""]


async def test_a_caller_who_goes_away_frees_all_places(start_server: Any, engine: Any) -> None:
    callers = await start_server(max_batch_size=1)
    engine.may_answer.clear()
    call = callers.rpc.AnswerMany(pb2.AnswerManyRequest(texts=[text(*[question()] * 3)]), timeout=10)
    async with asyncio.timeout(5):
        while callers.service.num_requests < 2:
            await asyncio.sleep(0.001)
        call.cancel()
        while callers.service.num_requests:
            await asyncio.sleep(0.001)
