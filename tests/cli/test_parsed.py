"""``mqan ask --parse``: the structure of an answer, from a server or in this process."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_data.queries import write_table
from mqan_serving.default_bundle import default_bundle

WISH = "I am looking for a cheap restaurant in the north. What are the address and the phone number?"
STATE = ["What is the change in state?", "--text", WISH, "--parse", "dialogue_state"]
ASKED = "What is the average attendance when the opponent is Ajax?"
TABLE = write_table(["Date", "Opponent", "Score", "Attendance"], ASKED)
QUERY = ["What is the translation from English to SQL?", "--text", TABLE, "--parse", "sql"]

runner = CliRunner()


@pytest.fixture(scope="module")
def answerers(default_server: Any) -> list[list[str]]:
    """The options that name each who answers."""
    servers = [["--server", url] for url in (default_server.rest, f"grpc://{default_server.rpc}")]
    return [*servers, ["--bundle", str(default_bundle()), "--provider", "cpu"]]


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        (QUERY, '  parsed: SELECT AVG("Attendance") FROM "table" WHERE "Opponent" = \'Ajax\''),
        (STATE, '  parsed: {"slots": {"price range": "cheap", "area": "north"}, "requests": ["phone", "address"]}'),
        (["Who?", *STATE[1:]], "  not parsed: "),
    ],
    ids=["sql", "state", "none"],
)
def test_all_answerers_tell_the_same_structure(answerers: list[list[str]], asked: list[str], note: str) -> None:
    documents = []
    for given in answerers:
        result = runner.invoke(app, ["ask", *asked, *given])
        assert result.exit_code == 0, result.output
        assert note in result.stderr
        documents.append(json.loads(runner.invoke(app, ["ask", *asked, *given, "--json"]).stdout))
    assert [list(document) for document in documents] == [list(documents[0])] * len(answerers)
    assert documents[0]["windows"] == 1
    found = [(document["answer"], document["parsed"], document["parse_error"]) for document in documents]
    assert found == [found[0]] * len(answerers)
    assert (found[0][1] is None) == (found[0][2] is not None)


def test_labels_have_no_structure(answerers: list[list[str]]) -> None:
    for given in answerers:
        result = runner.invoke(app, ["ask", *STATE, *given, "--choices", "a, b"])
        assert result.exit_code == 1
        assert "parse cannot be combined with choices" in result.stderr
