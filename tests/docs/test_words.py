"""What people read is written in plain words: the documents, help texts, the API's description and the dashboard."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mqan_cli.main import app
from mqan_serving.contract.errors import ERRORS

REPOSITORY = Path(__file__).resolve().parents[2]
# Words that readers stumbled over, and what to write instead.
_ODD = {
    r"\bbehind (?:a|one|the) (?:comma|colon|question mark|letter)\b": "after",
    r"\bdirectly behind\b|\bstands? behind\b|\b(?:word|number|block) behind\b": "after",
    r"\bstands? in (?!for\b)": "is in",
    r"\bwhat stands\b|\bstands beside\b": "what is",
    r"(?<!here )\bis no (?:sign|value|number|URL|date|service|list|token)\b": "is not a",
    r"\bknows of no\b": "does not assume",
    r"\bsiblings?\b": "baselines",
    r"\basked of (?:it|a|the|several)\b": "put to",
    r"\bcolumn is flat\b": "does not change",
    r"\bbegins anew\b": "starts over",
    r"\bsenseless\b|\bmakes no sense\b": "cannot be combined",
    r"\bbut for quotations\b": "except for",
    r"\bPlaces taken\b|\bTrust by source\b|\bQuestions together\b|\bInside the server\b": "see the dashboard",
    r"Questions that users report\b": "your own questions",
    r"\banswers, written as a server writes them\b": "reference answers",
    r"\bcandidate is that there is none\b|\bGive each\b.*\bits own of\b": "means no answer",
    r"\bwords of the text only\b": "quotation",
    r"\btexts they refuse\b": "they refuse longer texts",
    r"\bapart from what it asks\b": "after its own sentence, as a list",
    r"\btoo, it is compared\b": "with choices it is compared",
    r"\bRead answers as queries\b|\bas changes of a dialogue\b": "parse the answer as SQL",
}
# The only places of such words: names before this version.
_KEPT = ("`senseless_combination`", "(before version 0.18")


def _documents() -> list[Path]:
    found = [*(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "clients").glob("*/README.md")]
    return [*found, REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "examples" / "README.md"]


def _odd(text: str) -> list[str]:
    plain = " ".join(text.split())
    for kept in _KEPT:
        plain = plain.replace(kept, "")
    return [f"{found[0]!r} -> {better}" for odd, better in _ODD.items() for found in re.finditer(odd, plain)]


@pytest.mark.parametrize("path", _documents(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_documents_are_in_plain_words(path: Path) -> None:
    assert _odd(path.read_text(encoding="utf-8")) == []


def _helps(command: Any, name: str) -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    for param in command.params:
        yield f"{name} {param.name}", getattr(param, "help", None) or ""
    for verb, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, f"{name} {verb}")


def test_help_texts_are_in_plain_words() -> None:
    told = dict(_helps(typer.main.get_command(app), "mqan"))
    assert len(told) > 50
    assert {name: odd for name, text in told.items() if (odd := _odd(text))} == {}
    assert [name for name, text in told.items() if "paper's network" in text] == []  # of which paper, in a terminal?


@pytest.mark.parametrize(
    "name", ["protos/openapi.json", "deploy/grafana/dashboards/mqan.json", "clients/page/src/page.html"]
)
def test_what_servers_say_of_themselves_is_in_plain_words(name: str) -> None:
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', text) if name.endswith(".json") else [text]
    assert [odd for string in strings for odd in _odd(string)] == []
    assert json.dumps({code: kind.hint for code, kind in ERRORS.items()}).count("makes no sense") == 0


def test_the_readme_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
