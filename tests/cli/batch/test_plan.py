"""What ``mqan batch`` asks: options in their order, files of questions, schemas, and the columns of each."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from mqan_cli.batch.plan import read_plan

TEAM = ("question", "team=Which team?")


def test_options_belong_to_the_question_in_front_of_them() -> None:
    given = [
        ("min_probability", 0.5),
        TEAM,
        ("choices", "billing=invoices, IT"),
        ("question", "Angry?"),
        ("yes_no", True),
    ]
    plan = read_plan(given, None, None)
    choices = [{"label": "billing", "description": "invoices"}, "IT"]
    assert plan.questions == {
        "team": {"question": "Which team?", "min_probability": 0.5, "choices": choices},
        "answer_2": {"question": "Angry?", "min_probability": 0.5, "yes_no": True},
    }
    assert plan.columns == [
        *("team", "team_probability", "team_start", "team_end"),
        *("answer_2", "answer_2_probability", "answer_2_start", "answer_2_end"),
        "error",
    ]


def test_the_only_question_has_plain_columns() -> None:
    assert read_plan([("question", "a = b, is it?")], None, None).questions == {"answer": {"question": "a = b, is it?"}}
    plan = read_plan([("question", "How urgent?"), ("scale", "low, high")], None, None)
    assert plan.columns == ["answer", "probability", "start", "end", "expected", "error"]


def test_an_adapter_needs_no_question(tmp_path: Path) -> None:
    file = tmp_path / "ask.yaml"
    file.write_text("mood: {choices: {adapter: moods}}\n")
    plan = read_plan([("min_probability", 0.5), ("adapter", "desks"), ("adapter", "rooms")], None, file)
    assert plan.adapters == {"answer": "desks", "answer_2": "rooms", "mood": "moods"}
    assert plan.questions["answer_2"] == {"question": "", "min_probability": 0.5, "choices": {"adapter": "rooms"}}
    given = [("adapter", "desks"), ("question", "a=Which?"), ("question", "b=Which?")]
    assert read_plan(given, None, None).adapters == {"a": "desks", "b": "desks"}


def test_a_file_mixes_questions_and_fields(tmp_path: Path) -> None:
    file = tmp_path / "ask.yaml"
    file.write_text(
        "who: Who wrote this?\n"
        "team: {question: 'Which team?', choices: {billing: invoices, IT: }}\n"
        "due: {type: string, format: date, ask: 'When is it due?'}\n"
    )
    plan = read_plan([TEAM[:1] + ("mood=How is it?",)], None, file)
    assert plan.names == ("mood", "who", "team", "due")
    assert plan.questions["team"]["choices"] == [{"label": "billing", "description": "invoices"}, "IT"]
    assert plan.schema == {"properties": {"due": {"type": "string", "format": "date", "ask": "When is it due?"}}}


def test_a_schema_is_a_file_or_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tickets_of_test.py").write_text(
        "from pydantic import BaseModel\n\nclass Ticket(BaseModel):\n    customer: str\n    paid: bool | None = None\n"
    )
    monkeypatch.chdir(tmp_path)
    plan = read_plan([], "tickets_of_test:Ticket", None)
    assert plan.names == ("customer", "paid")
    (tmp_path / "schema.json").write_text(json.dumps(plan.schema))
    assert read_plan([], "schema.json", None) == plan


@pytest.mark.parametrize(
    ("given", "schema", "file", "message"),
    [
        ([], None, None, "at least one question"),
        ([("yes_no", True)], None, None, "no question"),
        ([TEAM, TEAM], None, None, "two questions have the name team"),
        ([TEAM, ("question", "team_start=When?")], None, None, "the columns team_start"),
        ([TEAM, ("choices", "a, a")], None, None, "'a' twice"),
        ([TEAM, ("choices", "a, b"), ("yes_no", True)], None, None, "ask for different answers"),
        ([], "nowhere.json", None, "cannot read nowhere.json"),
        ([], "nowhere:Ticket", None, "neither a file nor a class"),
        ([], '{"properties": {"lines": {"type": "object"}}}', None, "The field lines is an object"),
        ([], "[]", None, "schema"),
        ([], None, "- team", "no mapping"),
        ([], None, "team: 3", "no mapping"),
        ([], None, "{", "cannot read"),
        ([], None, "team: {question: Which, colour: red}", "colour"),
        ([], '{"properties": {"a": {"type": "string"}}}', "b: {type: string}", "leave out one"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_any_row(
    given: list[tuple[str, Any]], schema: str | None, file: str | None, message: str, tmp_path: Path
) -> None:
    ask = None
    if file is not None:
        ask = tmp_path / "ask.yaml"
        ask.write_text(file)
    if schema is not None and schema[0] in "[{":
        (tmp_path / "schema.json").write_text(schema)
        schema = str(tmp_path / "schema.json")
    with pytest.raises(typer.BadParameter, match=message):
        read_plan(given, schema, ask)
