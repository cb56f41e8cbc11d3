"""``mqan ask`` with the packaged model in this process: several questions, every kind of them, and refusals."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqan_cli.asked import read_choices
from mqan_cli.main import app

MAIL = "Hello, I was charged twice for my order 4711. Please send one of the payments back."
NOBODY = "What is the customer's phone number?"

runner = CliRunner()


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MQAN_SERVER", "MQAN_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


def ask(*given: str) -> Any:
    result = runner.invoke(app, ["ask", "--text", MAIL, "--json", *given])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_without_a_server_the_packaged_model_answers_every_question() -> None:
    result = runner.invoke(app, ["ask", "--text", MAIL, "What is the order number?", NOBODY])
    assert (result.exit_code, result.stdout) == (0, "4711\n\n"), result.output
    assert "not in the text" in result.stderr
    several = ask("What is the order number?", NOBODY)
    assert [document["answer"] for document in several] == ["4711", ""]
    assert ask(NOBODY) == several[1]


@pytest.mark.parametrize(
    "given",
    [
        ["-c", "from mqan_cli.main import app; app()", "ask", "--text", MAIL, "What is the order number?"],
        ["-c", "import mqan_export.int8"],
    ],
)
def test_onnxruntime_keeps_no_files_of_its_users(given: list[str], tmp_path: Path) -> None:
    """It does where its telemetry is on, which also looks for the host of its maker."""
    folders = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), str(tmp_path))
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, *given], env=environment | folders, check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_is_status_3_where_that_is_asked_for() -> None:
    given = ["ask", "--text", MAIL, "What is the order number?"]
    assert runner.invoke(app, [*given, "--fail"]).exit_code == 0
    refused = runner.invoke(app, [*given, NOBODY, "--fail"])
    assert (refused.exit_code, refused.stdout) == (3, "4711\n\n")


@pytest.mark.parametrize(("form", "status"), [({"type": "string"}, 3), ({"type": ["string", "null"]}, 0)])
def test_of_a_record_a_field_that_is_left_out_is_a_refusal(tmp_path: Path, form: Any, status: int) -> None:
    if isinstance(form["type"], list):
        form = {"anyOf": [{"type": kind} for kind in form["type"]]}
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"properties": {"phone": {**form, "ask": NOBODY}}}))
    given = ["ask", "--text", MAIL, "--schema", str(schema), "--fail"]
    assert runner.invoke(app, given).exit_code == status


def test_labels_may_say_what_they_cover() -> None:
    told = "billing=invoices, payments; shipping=parcels, delays"
    plain, described = (ask("Which team?", "--choices", labels) for labels in ("billing, shipping", told))
    for document in (plain, described):
        assert [choice["label"] for choice in document["choices"]] == ["billing", "shipping"]
        assert document["answer"] == "billing"
    assert plain["choices"] != described["choices"]
    result = runner.invoke(app, ["ask", "--text", MAIL, "--choices", told, "--none", "Which team?"])
    assert (result.exit_code, result.stdout) == (0, "billing\n")
    notes = [
        r"  0\.\d{3} billing",
        r"  0\.\d{3} shipping",
        r"  0\.\d{3} \(none of them\)",
        r"  context \d+-\d+: .*",
        ".*",
    ]
    assert re.fullmatch("\n".join(notes), result.stderr.rstrip("\n"), re.DOTALL)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a b, c,", ["a b", "c"]),
        ("a=b, c", [{"label": "a", "description": "b"}, "c"]),
        ("a = b, c; d, e;", [{"label": "a", "description": "b, c"}, "d, e"]),
        ("a=", ["a"]),
        (" , ", []),
    ],
)
def test_labels_are_read(text: str, labels: list[Any]) -> None:
    assert read_choices(text) == labels


def test_every_kind_of_question_can_be_asked() -> None:
    yes_no = ask("Does the customer want money back?", "--yes-no")
    assert (yes_no["answer"], [choice["label"] for choice in yes_no["choices"]]) == ("yes", ["yes", "no"])
    scale = ask("How urgent is it?", "--scale", "low, middle, high")
    assert 1 <= scale["expected"] <= 3
    several = ask("What is it about?", "--choices", "payment, weather, order", "--multiple")
    assert "payment" in several["chosen"]
    assert "weather" not in several["chosen"]
    copied = ask("What happened?", "--sources", "context")
    assert {token["source"] for token in copied["tokens"]} == {"context"}
    assert not ask("What happened?", "--min-probability", "1")["answered"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--sources", "context,web"], "web is no source; context, question, vocabulary are"),
        (["--scale", ","], "name at least one level"),
        (["--html", "page.html", "Why?"], "a page shows one question"),
        (["--adapter", "desks"], "it has a question of its own"),
        (["--max-answer-tokens", "1000"], "answers with at most"),
    ],
)
def test_what_cannot_be_asked_is_wrong_usage(given: list[str], message: str) -> None:
    result = runner.invoke(app, ["ask", "--text", MAIL, *given, "Who?"], env={"COLUMNS": "200"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_page_is_written_and_where_it_cannot_be_that_is_told(tmp_path: Path) -> None:
    given = ["ask", "--text", MAIL, "What is the order number?", "--html"]
    assert runner.invoke(app, [*given, str(tmp_path / "page.html")]).stdout == "4711\n"
    assert "<mark class=context>4711</mark>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    refused = runner.invoke(app, [*given, str(tmp_path / "no folder" / "page.html")])
    assert (refused.exit_code, "cannot write" in refused.stderr) == (1, True)


def test_what_makes_no_sense_together_is_told_in_the_words_of_the_service() -> None:
    result = runner.invoke(app, ["ask", "--text", MAIL, "Who?", "--yes-no", "--choices", "a, b"])
    assert result.exit_code == 1
    assert "choices and yes_no ask for different answers" in result.stderr


def test_where_there_is_no_bundle_the_setting_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQAN_BUNDLE", str(tmp_path))
    result = runner.invoke(app, ["ask", "--text", MAIL, "Who?"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "MQAN_BUNDLE" in result.stderr
