"""The decision formats of TypeSafe and OpenAI, over a small bundle whose network answers at random."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mqan_runtime.engine import Engine
from mqan_serving.formats.decisions import choice_confidence, score_confidence
from tests.serving.test_adapters import LABELS, write

STATE = {"note": "The old harbour was closed in 1923 because storms had torn its walls."}
QUESTIONS = {
    "closed": {"type": "noul", "instructions": "Was it closed?", "criteria": {"true": "no ship may enter"}},
    "who": {"type": "choice", "criteria": {"storms": "wind", "ada": None, "Füße": {"a": 1}}},
    "haste": {"type": "score", "instructions": ["How", "pressing?"], "criteria": ["can wait", {"day": "today"}]},
}
DECISIONS = [
    {"type": "predicate", "name": "closed", "instructions": "It was closed."},
    {"type": "choice", "instructions": "Who?", "choices": [{"value": True}, {"value": "true", "description": "so"}]},
    {
        "type": "score",
        "name": "haste",
        "instructions": [{"type": "input_text", "text": "How pressing?"}],
        "levels": [{"label": "0", "description": "can wait"}, {"label": "1", "description": "today"}],
    },
]


@pytest.fixture(scope="module")
def rest(small_server: tuple[str, str]) -> Iterator[httpx2.Client]:
    """A client of a server."""
    with httpx2.Client(base_url=small_server[0], trust_env=False, timeout=60) as client:
        yield client


def ask(rest: httpx2.Client, **changes: Any) -> httpx2.Response:
    body = {"model": "jev-latest", "state": STATE, "questions": QUESTIONS, "ignored": 1} | changes
    return rest.post("/v1/systemone", json=body)


def decide(rest: httpx2.Client, **changes: Any) -> httpx2.Response:
    body = {"model": "small", "input": "The old harbour was closed in 1923.", "questions": DECISIONS} | changes
    return rest.post("/v1/decisions", json=body)


def test_systemone_answers_every_kind_with_its_evidence(rest: httpx2.Client) -> None:
    response = ask(rest)
    assert response.status_code == 200, response.text
    assert response.headers["x-typesafe-request-id"] == response.headers["x-request-id"]
    found = response.json()
    assert list(found["answers"]) == list(QUESTIONS)
    noul, choice, score = found["answers"].values()
    assert 0 <= noul["noul"] <= 1
    assert list(choice["probabilities"]) == ["storms", "ada", "Füße"]
    assert choice["choice"] == max(choice["probabilities"], key=choice["probabilities"].get)
    assert math.fsum(choice["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    assert score["legend"] == {"0": "can wait", "1": {"day": "today"}}
    assert score["score"] == pytest.approx(score["probabilities"]["1"])
    text = '{"note": "' + STATE["note"] + '"}'
    sources = [span for answer in found["answers"].values() for span in answer["x_sources"]]
    assert sources
    assert all(text[span["start"] : span["end"]] == span["text"] for span in sources)
    for answer in found["answers"].values():
        assert 0 <= answer["x_none"] <= 1
        places = [{**place} for place in answer["x_evidence"]]
        assert all(0 <= place.pop("probability") <= 1 for place in places)
        assert places == answer["x_sources"]


def test_answers_are_those_of_the_service_and_do_not_depend_on_ids_or_order(rest: httpx2.Client) -> None:
    found = ask(rest).json()["answers"]
    turned = ask(rest, questions={f"x{name}": QUESTIONS[name] for name in reversed(QUESTIONS)}).json()["answers"]
    assert turned["xclosed"]["noul"] == pytest.approx(found["closed"]["noul"], abs=1e-5)
    for name in ("who", "haste"):
        assert turned[f"x{name}"]["probabilities"] == pytest.approx(found[name]["probabilities"], abs=1e-5)
    body = {"context": "Storms.", "question": "Who?", "choices": ["storms", "ada"]}
    own = rest.post("/v1/answer", json=body).json()["choices"]
    question = {"q": {"type": "choice", "instructions": "Who?", "criteria": {"storms": None, "ada": None}}}
    other = ask(rest, state="Storms.", questions=question).json()["answers"]["q"]["probabilities"]
    assert list(other.values()) == pytest.approx([choice["probability"] for choice in own])


def test_systemone_reads_what_options_stand_for_and_not_their_ids(rest: httpx2.Client) -> None:
    def shares(criteria: Any, kind: str = "choice") -> dict[str, float]:
        asked = {"type": kind, "instructions": "What closed it?", "criteria": criteria}
        if kind == "noul":
            return {"yes": ask(rest, questions={"q": asked}).json()["answers"]["q"]["noul"]}
        return ask(rest, questions={"q": asked}).json()["answers"]["q"]["probabilities"]  # type: ignore[no-any-return]

    named = shares({"wind": "storms from the sea", "war": "soldiers of the king"})
    coded = shares({"war": "soldiers of the king", "b": "storms from the sea"})
    assert is_close(coded, {"war": named["war"], "b": named["wind"]})
    cloned = shares({"a": "soldiers of the king", "b": "Soldiers of  the king", "c": "storms from the sea"})
    assert cloned["a"] == cloned["b"] == pytest.approx(named["war"] / 2)
    is_so = shares(None, "noul")["yes"]
    assert shares({"no": "No", "yes": "Yes"})["yes"] == pytest.approx(is_so, abs=1e-5)
    assert shares(["False", "True"], "score")["1"] == pytest.approx(is_so, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        *(({"state": None}, ["state"]), ({"questions": {}}, ["questions"]), ({"assets": [1]}, ["assets"])),
        ({"questions": {"a": {"type": "box"}}}, ["questions", "a", "type"]),
        ({"questions": {"a": {"type": "noul"}}}, ["questions", "a", "noul", "instructions"]),
        ({"questions": {"a": {"type": "choice", "criteria": {}}}}, ["questions", "a", "choice", "criteria"]),
        ({"questions": {"a": {"type": "score", "criteria": {"0": "x"}}}}, ["questions", "a", "score", "criteria"]),
        *(({"state": " "}, ["state"]), ({"state": "word " * 5_000}, ["state"])),
    ],
)
def test_systemone_says_where_a_request_is_wrong(rest: httpx2.Client, changes: Any, place: list[str]) -> None:
    response = ask(rest, **changes)
    assert response.status_code == 422
    [problem] = response.json()["detail"]
    assert problem["loc"] == ["body", *place]
    assert problem["msg"]


def test_an_unknown_model_is_refused_in_each_format(rest: httpx2.Client) -> None:
    response = ask(rest, model="another")
    assert (response.status_code, response.json()["detail"]["error_type"]) == (400, "api_usage_error")
    response = decide(rest, model="another")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_model")


def test_decisions_are_answered_in_order(rest: httpx2.Client) -> None:
    response = decide(rest)
    assert response.status_code == 200, response.text
    predicate, choice, score = response.json()["answers"]
    assert (predicate["name"], choice["name"], score["name"]) == ("closed", None, "haste")
    assert 0 <= predicate["probability"] <= 1
    assert [entry["value"] for entry in choice["probabilities"]] == [True, "true"]
    assert [(entry["value"], entry["label"]) for entry in score["probabilities"]] == [(0, "0"), (1, "1")]
    parts = [{"role": "user", "content": [{"type": "input_text", "text": "The old harbour was closed in 1923."}]}]
    again, *_ = decide(rest, input=parts).json()["answers"]
    assert again["probability"] == pytest.approx(predicate["probability"], abs=1e-5)
    assert again["x_sources"] == predicate["x_sources"]


def test_systemone_takes_empty_instructions_and_descriptions_as_none(rest: httpx2.Client) -> None:
    questions = {
        "noul": {"type": "noul", "instructions": "", "criteria": {"true": "the harbour is closed"}},
        "choice": {"type": "choice", "instructions": "", "criteria": {"storms": " ", "ada": ""}},
    }
    response = ask(rest, questions=questions)
    assert response.status_code == 200, response.text
    plain = ask(rest, questions={"choice": {"type": "choice", "criteria": {"storms": None, "ada": None}}}).json()
    assert response.json()["answers"]["choice"] == plain["answers"]["choice"]


def test_decisions_take_as_many_questions_as_the_format_has(rest: httpx2.Client) -> None:
    questions = [{"type": "predicate", "instructions": f"Is it {i}?"} for i in range(401)]
    assert len(decide(rest, questions=questions[:400]).json()["answers"]) == 400
    assert decide(rest, questions=questions).json()["error"]["param"] == "questions"


def test_true_and_yes_are_two_choices(rest: httpx2.Client) -> None:
    for values in ([True, "yes", "true", False, "no"], [True, "Yes", "TRUE", "yes 2", False]):
        question = {"type": "choice", "instructions": "Which?", "choices": [{"value": value} for value in values]}
        [answer] = decide(rest, questions=[question]).json()["answers"]
        assert [entry["value"] for entry in answer["probabilities"]] == values


def test_numbered_levels_may_mean_the_same(rest: httpx2.Client) -> None:
    levels = [{"label": str(i), "description": text} for i, text in enumerate(["fine", "bad", "bad"])]
    [answer] = decide(rest, questions=[{"type": "score", "instructions": "How?", "levels": levels}]).json()["answers"]
    assert [entry["label"] for entry in answer["probabilities"]] == ["0", "1", "2"]


@pytest.mark.parametrize("number", ["1e999", "NaN", "[Infinity]"])
def test_a_state_with_a_number_that_is_none_is_refused(rest: httpx2.Client, number: str) -> None:
    body = f'{{"model": "jev-latest", "questions": {json.dumps(QUESTIONS)}, "state": {{"a": {number}}}}}'
    response = rest.post("/v1/systemone", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert "Infinity" not in response.text


@pytest.mark.parametrize(
    "name", ["mqan", "jev-latest", "jev-preview", "jev-1.13.0", "typesafe/jev-1.13", "~typesafe/jev-latest"]
)
def test_names_that_users_pin_are_the_models(rest: httpx2.Client, name: str) -> None:
    assert ask(rest, model=name).json()["model"] == "small"


@pytest.mark.parametrize("name", ["jev", "gpt-6", "xjev-1", "typesafe/other"])
def test_other_names_are_refused(rest: httpx2.Client, name: str) -> None:
    refused = ask(rest, model=name)
    assert refused.status_code == 400
    assert "MQAN_MODEL_ALIASES" in refused.json()["detail"]["message"]


def is_close(one: Any, other: Any) -> bool:
    """Whether two documents are equal but for how the arithmetic of a batch is ordered."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(is_close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_close, one, other))
    return bool(one == (pytest.approx(other, abs=1e-5) if isinstance(other, float) else other))


@pytest.mark.parametrize("path", ["/api/alpha/decisions", "/v1/decisions"])
def test_openrouters_decisions_are_those_of_system_one(rest: httpx2.Client, path: str) -> None:
    body = {"model": "typesafe/jev-1.13", "state": STATE, "questions": QUESTIONS}
    told = rest.post(path, json=body)
    assert told.status_code == 200, told.text
    assert is_close(told.json(), ask(rest).json())
    refused = rest.post(path, json={**body, "state": " "})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "state")


def test_a_request_at_the_path_of_another_is_told_of_its_own(rest: httpx2.Client) -> None:
    body = {"model": "jev-latest", "input": "Boiler leaks", "questions": []}
    assert "send it to /v1/decisions" in rest.post("/v1/systemone", json=body).text
    for path in ("/decisions", "/openai/v1/decisions", "/v1/decisions/"):
        refused = rest.post(path, json=body)
        assert (refused.status_code, refused.json()["hint"][:27]) == (404, "Did you mean /v1/decisions?")
    assert "Did you mean" not in rest.post("/v1/chat/completions", json=body).text


def test_decisions_refuse_with_openais_error(rest: httpx2.Client) -> None:
    assert decide(rest, input=" ").json()["error"]["param"] == "input"
    response = decide(rest, questions=[{"type": "predicate"}])
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "questions.0.instructions")


def test_models_are_listed_for_both_kinds_of_clients(rest: httpx2.Client) -> None:
    found = rest.get("/v1/models").json()
    assert [model["name"] for model in found["models"]] == ["small", "jev-latest"]
    assert [model["id"] for model in found["data"]] == ["small"]


@pytest.mark.parametrize(
    ("path", "texts", "labels", "place"),
    [
        ("/v1/systemone", "state", "criteria", "questions.q.choice."),
        ("/v1/decisions", "input", "choices", "questions.0."),
        ("/v1/hf/zero-shot-classification", "inputs", "candidate_labels", "parameters."),
    ],
)
def test_an_adapter_stands_in_the_place_of_labels(
    path: str,
    texts: str,
    labels: str,
    place: str,
    small_bundle: Path,
    serve_local: Callable[..., AbstractContextManager[tuple[int, int]]],
    tmp_path: Path,
) -> None:
    engine = Engine.open(small_bundle)
    given = tmp_path, engine.bundle.sha256, engine.text_width
    with (
        serve_local(engine, adapters=tmp_path) as (port, _),
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as rest,
    ):

        def ask(kind: str = "choice", **named: Any) -> Any:
            question = {"type": kind, "instructions": "", **named}
            questions = {"q": question} if path == "/v1/systemone" else [question]
            more = {"parameters": named} if texts == "inputs" else {"model": "mqan", "questions": questions}
            return rest.post(path, json={texts: "Ada wrote notes.", **more}).json()

        def answer_of(told: Any) -> Any:
            answers = told.get("answers", [told])
            return answers["q"] if isinstance(answers, dict) else answers[0]

        def shares(answer: Any) -> dict[str, float]:
            if "labels" in answer:
                return dict(zip(answer["labels"], answer["scores"], strict=True))
            found = answer["probabilities"]
            return found if isinstance(found, dict) else {one["value"]: one["probability"] for one in found}

        write(*given, "notes")
        told = ask(adapter="desks")
        answer = answer_of(told)
        assert shares(answer) == pytest.approx(dict.fromkeys(LABELS, 0.0) | {"notes": 1.0}, abs=1e-3)
        [listed] = rest.get("/v1/model").json()["adapters"]
        assert answer["x_adapter"] == {name: listed[name] for name in ("name", "sha256")}
        if "usage" in told:
            assert told["usage"]["input_tokens"] == len(["Ada", "wrote", "notes", "."]) + len(LABELS)
        both: Any = {labels: {"a": None} if labels == "criteria" else [], "adapter": "desks"}
        for wrong, field, message in (
            ({"adapter": "teams"}, "adapter", "There is no adapter 'teams' here"),
            (both, labels, "the adapter has labels of its own"),
        ):
            refused = json.dumps(ask(**wrong)).replace('", "', ".")
            assert f"{place}{field}" in refused
            assert message in refused
        write(*given, "walls", multiple=True)
        if texts == "inputs":
            assert shares(ask(adapter="desks"))["walls"] > 0.99
        else:
            assert "not decide between labels of which one is right" in json.dumps(ask(adapter="desks"))
            assert "not decide between levels of a scale" in json.dumps(ask("score", adapter="desks"))
            write(*given, "walls", is_scale=True)
            score = answer_of(ask("score", adapter="desks"))
            assert score["score"] == pytest.approx(2, abs=1e-3)
            told_levels = score.get("legend") or {str(one["value"]): one["label"] for one in score["probabilities"]}
            assert told_levels == dict(zip("012", LABELS, strict=True))


def test_confidence_is_0_where_nothing_is_known_and_1_where_all_is() -> None:
    for confidence in (choice_confidence, score_confidence):
        assert confidence([1.0]) == confidence([0, 1, 0]) == 1
    assert choice_confidence([0.25] * 4) == 0
    assert choice_confidence([0.9, 0.1]) == pytest.approx(0.8)
    assert score_confidence([0.2, 0.8]) == pytest.approx(0.6)
