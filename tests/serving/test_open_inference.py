"""The Open Inference Protocol: what it answers, and what it refuses and how."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mqan_serving.contract.calls import MOST_IN_ALL
from mqan_serving.keys import add_key
from tests.serving.conftest import StartServer

CONTEXT = "The kettle is in the kitchen."
MODEL = "/v2/models/stand-in"


def tensor(name: str, *texts: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "shape": [len(texts)], "datatype": "BYTES", "data": list(texts)} | changes


ASKED = [tensor("context", CONTEXT), tensor("question", "Where?", "What is it?")]


async def infer(callers: Any, inputs: Any = ASKED, path: str = f"{MODEL}/infer", **changes: Any) -> httpx2.Response:
    response: httpx2.Response = await callers.rest.post(path, json={"inputs": inputs, **changes})
    return response


async def test_a_batch_is_answered_in_its_order(start_server: StartServer) -> None:
    callers = await start_server()
    told = (await infer(callers, id="7")).json()
    assert (told["model_name"], told["model_version"], told["id"]) == ("stand-in", "1", "7")
    answer, attributions = told["outputs"]
    assert answer == tensor("answer", "The kettle is", "The kettle is")
    alone = (await callers.post(question="Where?")).json()
    assert [json.loads(document) for document in attributions["data"]] == [alone, alone]
    one_each = [tensor("context", "A red lamp.", CONTEXT), tensor("question", "Where?")]
    told = (await infer(callers, one_each, parameters={"max_answer_tokens": 2}, outputs=[{"name": "answer"}])).json()
    assert told["outputs"] == [tensor("answer", "A red", "The kettle")]
    assert "id" not in told


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        *(({"inputs": []}, "invalid_input"), ({"inputs": [5]}, "wrong_type"), ({"inputs": ASKED[:1]}, "missing_field")),
        ({"inputs": [*ASKED, tensor("colour", "red")]}, "unknown_field"),
        ({"inputs": [ASKED[0], ASKED[1], ASKED[1]]}, "unknown_field"),
        ({"inputs": [ASKED[0], tensor("question", "a", shape=[1, 1])]}, "invalid_input"),
        ({"inputs": [ASKED[0], tensor("question", "a", shape=[-1])]}, "invalid_input"),
        ({"inputs": [ASKED[0], tensor("question", "a", datatype="FP32")]}, "wrong_type"),
        ({"inputs": [ASKED[0], tensor("question", "a", data=[1])]}, "wrong_type"),
        ({"inputs": [tensor("context", "a", "b", "c"), ASKED[1]]}, "invalid_input"),
        ({"inputs": [ASKED[0], tensor("question", "a", shape=[True])]}, "wrong_type"),
        ({"inputs": [ASKED[0], tensor("question", "a", shape=[1.0])]}, "wrong_type"),
        ({"inputs": [ASKED[0], tensor("question")]}, "invalid_input"),
        ({"inputs": [ASKED[0], tensor("question", *["a"] * (MOST_IN_ALL + 1))]}, "invalid_input"),
        ({"inputs": [*ASKED, tensor("choices")]}, "wrong_number_of_choices"),
        ({"inputs": [*ASKED, tensor("choices", "yes", "yes")]}, "duplicate_choice"),
        ({"inputs": [ASKED[0], tensor("question", "Where?", " ")]}, "empty_question"),
        *(({"outputs": [{"name": "colour"}]}, "unknown_field"), ({"outputs": [{}]}, "missing_field")),
        *(({"parameters": {"colour": 1}}, "unknown_field"), ({"parameters": {"choices": ["a"]}}, "unknown_field")),
        *(({"parameters": {"citations": True}}, "unknown_field"), ({"parameters": {"stream": True}}, "unknown_field")),
        ({"parameters": {"multiple": ["a"]}}, "wrong_type"),
        ({"parameters": {"max_answer_tokens": 0}}, "max_answer_tokens_out_of_range"),
        *(({"parameters": {"binary_data_output": True}}, "unknown_field"), ({"id": 5}, "wrong_type")),
        ({"outputs": [{"name": "answer", "parameters": {"binary_data": True}}]}, "unknown_field"),
        (
            {"inputs": [ASKED[0], tensor("question", *["a"] * 33)], "parameters": {"explain": True}},
            "too_many_questions",
        ),
        (
            {"inputs": [ASKED[0], {"name": "question", "shape": [1], "datatype": "BYTES"}]},
            "missing_field",
        ),
    ],
)
async def test_what_makes_no_sense_is_refused(start_server: StartServer, changes: dict[str, Any], code: str) -> None:
    callers = await start_server()
    response = await infer(callers, **changes)
    told = response.json()
    assert (response.status_code, told["x_code"]) == (422, code)
    assert "question 1" in told["error"].lower() or code != "empty_question"
    assert set(told) == {"error", "x_code"}


async def test_tensors_in_binary_are_refused(start_server: StartServer) -> None:
    callers = await start_server()
    headers = {"inference-header-content-length": "2", "content-type": ""}
    response = await callers.rest.post(f"{MODEL}/infer", content=b"{}\1\0\0\0a", headers=headers)
    assert (response.status_code, response.json()["x_code"]) == (400, "malformed_request")
    assert "binary_data=False" in response.json()["error"]


async def test_other_models_and_versions_are_not_found(start_server: StartServer) -> None:
    callers = await start_server()
    for path in ("/v2/models/x", "/v2/models/x/ready", f"{MODEL}/versions/9", f"{MODEL}/versions/9/ready"):
        response = await callers.rest.get(path)
        assert (response.status_code, response.json()["x_code"]) == (404, "unknown_model"), path
    for path in ("/v2/models/x/infer", f"{MODEL}/versions/9/infer"):
        assert (await infer(callers, path=path)).status_code == 404
    for path in ("", "/ready", "/versions/1", "/versions/1/ready"):
        assert (await callers.rest.get(f"{MODEL}{path}")).json()["name"] == "stand-in"
    assert (await infer(callers, path=f"{MODEL}/versions/1/infer")).status_code == 200


async def test_probes_need_no_key_and_all_else_does(start_server: StartServer, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "alice")
    callers = await start_server(api_key_file=tmp_path / "keys")
    for path in ("/v2/health/live", "/v2/health/ready", f"{MODEL}/ready"):
        assert (await callers.rest.get(path)).status_code == 200, path
    for path in ("/v2", MODEL):
        response = await callers.rest.get(path)
        assert (response.status_code, response.json()["x_code"]) == (401, "unauthenticated"), path
        assert (await callers.rest.get(path, headers={"authorization": f"Bearer {key}"})).status_code == 200
    assert (await infer(callers)).status_code == 401


async def test_a_draining_server_is_not_ready_and_says_so(start_server: StartServer) -> None:
    callers = await start_server()
    callers.service.health.set_draining()
    assert (await callers.rest.get("/v2/health/live")).status_code == 200
    for path in ("/v2/health/ready", f"{MODEL}/ready"):
        assert (await callers.rest.get(path)).status_code == 503


async def test_requests_are_counted_as_what_they_are(start_server: StartServer) -> None:
    callers = await start_server()
    await infer(callers)
    await callers.rest.get("/v2")
    await callers.rest.get(f"{MODEL}/ready")
    counted = (await callers.rest.get("/metrics")).text
    for method in ("AnswerMany", "GetModel", "Check"):
        labels = f'code="ok",method="{method}",transport="rest"'
        assert f"mqan_requests_total{{{labels}}} 1.0" in counted, labels


@pytest.mark.parametrize(
    "inputs",
    [
        [tensor("context", CONTEXT), tensor("question", *["Which?"] * 200), tensor("choices", "a", "b" * 6_000)],
        [tensor("context", *[CONTEXT] * 200), tensor("question", "W" * 6_000)],
    ],
)
async def test_what_many_rows_share_is_not_read_without_bound(start_server: StartServer, inputs: Any) -> None:
    """A body has it once; read for each row it would be a thousand times as large."""
    response = await infer(await start_server(max_request_bytes=1_000_000), inputs)
    assert response.status_code == 413
    assert "The question and choices of all rows together have 120" in response.text
