"""``mqan ask --schema``: a record as JSON, from a server or in this process."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_serving.default_bundle import default_bundle
from mqan_serving.records.documents import RecordDocument

TEXT = "Invoice 2024-118 of 03/05/2024. Total 476.00 EUR, due on 2 June 2024."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "total": {"type": "number", "format": "money"},
        "due": {"type": "string", "format": "date", "ask": "When is it due?"},
        "order": {"anyOf": [{"type": "string"}, {"type": "null"}], "ask": "What is the order number?"},
        "issued": {"type": "string", "format": "date", "description": "Date of the invoice"},
    },
}
RECORD = {"total": 476.0, "due": "2024-06-02", "order": None}

runner = CliRunner()


@pytest.fixture
def schema_file(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def check_notes(notes: str) -> None:
    assert notes.splitlines() == [
        "  order: The text does not say.",
        "  issued: The quotation is 2024-03-05 or 2024-05-03: its order of day and month is not known. '03/05/2024'",
    ]


@pytest.mark.parametrize("transport", ["rest", "grpc"])
def test_a_server_fills_a_record(default_server: Any, schema_file: str, transport: str) -> None:
    url = default_server.rest if transport == "rest" else f"grpc://{default_server.rpc}"
    given = ["ask", "--schema", schema_file, "--text", TEXT, "--server", url]
    result = runner.invoke(app, given)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == RECORD
    check_notes(result.stderr)
    document = json.loads(runner.invoke(app, [*given, "--json"]).stdout)
    assert RecordDocument.model_validate(document, strict=True).missing == ["order", "issued"]
    assert document["record"] == RECORD
    [span] = document["fields"]["due"]["spans"]
    assert TEXT[span["start"] : span["end"]] == span["text"] == "2 June 2024"


def test_a_bundle_fills_a_record_in_this_process(schema_file: str) -> None:
    given = ["ask", "--record", schema_file, "--bundle", str(default_bundle()), "--provider", "cpu"]
    result = runner.invoke(app, given, input=TEXT)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == RECORD
    check_notes(result.stderr)


def test_what_is_not_supported_names_the_field(default_server: Any, tmp_path: Path) -> None:
    path = tmp_path / "nested.json"
    path.write_text('{"properties": {"lines": {"type": "object"}}}')
    for where in (["--server", default_server.rest], ["--bundle", str(default_bundle()), "--provider", "cpu"]):
        result = runner.invoke(app, ["ask", "--schema", str(path), "--text", TEXT, *where])
        assert result.exit_code == 1
        assert "The field lines is an object" in result.stderr
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "message"), [(b"{", "is not JSON"), (b"\xff", "is not JSON"), (None, "cannot read"), (b"[" * 10**6, "")]
)
def test_a_schema_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "schema.json"
    if content is not None:
        path.write_bytes(content)
    result = runner.invoke(app, ["ask", "--schema", str(path), "--text", TEXT])
    assert result.exit_code == 2
    assert "--schema" in result.stderr
    assert message in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("more", [["Where?"], ["--choices", "a,b"], ["--max-answer-tokens", "3"]])
def test_the_schema_says_all_that_is_asked(schema_file: str, more: list[str]) -> None:
    result = runner.invoke(app, ["ask", "--schema", schema_file, "--text", TEXT, *more])
    assert result.exit_code == 2
    assert "--schema" in result.stderr
