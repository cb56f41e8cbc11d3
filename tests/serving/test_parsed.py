"""Answers read as structures over REST and gRPC alike, of an engine that says what the context ends with."""

import json
from typing import Any

import grpc
import pytest

from mqan.v1 import answer_pb2
from mqan_core.text.tokens import Token, read_tokens
from mqan_data.queries import write_table
from tests.messages import document_of
from tests.serving.conftest import StandInEngine, refusal

SHIPS = write_table(["Ship", "Year built"], "select COUNT Ship from table where Year built > 1950")
STATE = "I want Thai food-- food: Thai, area: north; phone"
SPAN = {"source": "context", "start": SHIPS.index("1950"), "end": len(SHIPS), "text": "1950"}
QUERY = {
    "select": "Ship",
    "aggregation": "COUNT",
    "conditions": [{"column": "Year built", "operator": ">", "value": "1950", "spans": [SPAN]}],
    "sql": 'SELECT COUNT("Ship") FROM "table" WHERE "Year built" > 1950',
}
CHANGE = {
    "slots": {
        "food": {"value": "Thai", "spans": [{"source": "context", "start": 25, "end": 29, "text": "Thai"}]},
        "area": {"value": "north", "spans": [{"source": "context", "start": 37, "end": 42, "text": "north"}]},
    },
    "requests": [{"slot": "phone", "spans": [{"source": "context", "start": 44, "end": 49, "text": "phone"}]}],
}
KINDS = {"sql": answer_pb2.PARSE_KIND_SQL, "dialogue_state": answer_pb2.PARSE_KIND_DIALOGUE_STATE}
SENSELESS: list[dict[str, Any]] = [
    *({"choices": ["a", "b"]}, {"yes_no": True}, {"scale": ["a", "b"]}),
    *({"contiguous": True}, {"all": True}, {"alternatives": 1}),
]


class Reciting(StandInEngine):
    """Answers with what follows two hyphens in the context."""

    def words(self, context: str) -> list[Token]:
        start = context.index("-- ") + 3
        return [token for token in read_tokens(context) if token.start >= start]


@pytest.fixture
def engine() -> StandInEngine:
    """In place of the one that answers with three words."""
    return Reciting()


def told(response: answer_pb2.AnswerResponse) -> tuple[Any, str | None]:
    """Return what a response of gRPC says of the structure, as REST has it."""
    message = document_of(response)
    parsed = message.get("query") or message.get("state")
    if "state" in message:
        parsed["slots"] = {slot.pop("slot"): slot for slot in parsed["slots"]}
    return parsed, response.parse_error if response.HasField("parse_error") else None


@pytest.mark.parametrize(
    ("kind", "context", "parsed"), [("sql", SHIPS, QUERY), ("dialogue_state", STATE, CHANGE)], ids=["sql", "state"]
)
async def test_all_calls_tell_the_same_structure(start_server: Any, kind: str, context: str, parsed: Any) -> None:
    callers = await start_server()
    alone = (await callers.post(context=context, parse=kind)).json()
    assert (alone["parsed"], alone["parse_error"]) == (parsed, None)
    questions = [{"question": "What?", "parse": kind}, "What?"]
    many = (await callers.rest.post("/v1/answers", json={"context": context, "questions": questions})).json()
    first, plain = (item["answer"] for item in many["texts"][0]["answers"])
    assert (first["parsed"], plain["parsed"], plain["parse_error"]) == (parsed, None, None)
    streamed = await callers.post(context=context, parse=kind, stream=True)
    *_, last, _ = streamed.text.split("\n\n")
    assert json.loads(last.partition("data: ")[2]) == alone

    request = callers.request(context=context, parse=KINDS[kind])
    response = await callers.rpc.Answer(request, timeout=10)
    assert told(response) == (parsed, None)
    *_, part = [part async for part in callers.rpc.AnswerStream(request, timeout=10)]
    assert part.answer == response
    asked = answer_pb2.AskedQuestion(request=answer_pb2.AnswerRequest(question="What?", parse=KINDS[kind]))
    text = answer_pb2.AskedText(context=context, questions=[asked])
    found = await callers.rpc.AnswerMany(answer_pb2.AnswerManyRequest(texts=[text]), timeout=10)
    assert told(found.texts[0].answers[0].answer) == (parsed, None)


@pytest.mark.parametrize(("kind", "why"), [("sql", "does not name the columns"), ("dialogue_state", "slot: value")])
async def test_an_answer_of_another_form_says_why(start_server: Any, kind: str, why: str) -> None:
    callers = await start_server()
    context = "Not a table-- the kettle"
    found = (await callers.post(context=context, parse=kind)).json()
    assert (found["answer"], found["parsed"]) == ("the kettle", None)
    assert why in found["parse_error"]
    assert told(await callers.call(context=context, parse=KINDS[kind])) == (None, found["parse_error"])


@pytest.mark.parametrize("asked", SENSELESS, ids=lambda asked: next(iter(asked)))
async def test_what_has_no_structure_is_refused(start_server: Any, asked: dict[str, Any]) -> None:
    callers = await start_server()
    response = await callers.post(parse="sql", **asked)
    assert (response.status_code, response.json()["code"]) == (422, "incompatible_options")
    assert "parse cannot be combined" in response.json()["message"]
    given = {**asked, "choices": [answer_pb2.Choice(label=label) for label in asked.get("choices", ())]}
    assert (await refusal(callers.call(parse=KINDS["sql"], **given)))[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_unknown_kinds_are_refused(start_server: Any) -> None:
    callers = await start_server()
    response = await callers.post(parse="xml")
    assert (response.status_code, response.json()["code"]) == (422, "wrong_type")
    assert "'sql' or 'dialogue_state'" in response.json()["message"]
    assert (await refusal(callers.call(parse=7)))[0] is grpc.StatusCode.INVALID_ARGUMENT
