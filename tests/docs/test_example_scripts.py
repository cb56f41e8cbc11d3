"""The scripts of the folder examples, with the model in this repository."""

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqan_client import Answer, InvalidRequestError, ModelVersion

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"


@pytest.fixture(scope="module")
def run(default_server: Any) -> Callable[..., str]:
    def run(script: str, *arguments: Path) -> str:
        server = ["--server", f"grpc://{default_server.rpc}"]
        command = [sys.executable, str(EXAMPLES / script), *map(str, arguments), *server]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    return run


def test_tickets_are_routed(run: Callable[..., str]) -> None:
    records = [json.loads(line) for line in run("tickets.py", EXAMPLES / "tickets.csv").splitlines()]
    assert [record["team"] for record in records[:3]] == ["billing", "shipping", "technical support"]
    assert [record.get("customer") for record in records] == ["48213", "77120", None, "10077", "33018"]


def test_invoices_become_records_with_places(run: Callable[..., str]) -> None:
    invoice = EXAMPLES / "invoices" / "lamps.txt"
    record = json.loads(run("invoices.py", invoice))
    found = {field: value["value"] for field, value in record.items() if isinstance(value, dict)}
    account = "DE89 3704 0044 0532 0130 00"
    assert found == {
        "number": "2024-118",
        "seller": "Nordlicht Lamps Ltd",
        "total": 476.0,
        "due": "2024-06-02",
        "account": account,
    }
    text = invoice.read_text()
    assert [text[start:end] for start, end in record["total"]["places"]] == ["476.00 EUR"]
    bill = json.loads(run("invoices.py", EXAMPLES / "invoices" / "consulting.txt"))
    assert bill["account"] is None  # the text names none


def test_messages_are_sorted(run: Callable[..., str]) -> None:
    verdicts = [
        line.split(":")[0].split(" (")[0] for line in run("moderation.py", EXAMPLES / "messages.txt").splitlines()
    ]
    assert verdicts[0] == "publish"
    assert verdicts[1] == verdicts[4] == "hold back"
    assert verdicts[2] != "publish"


def test_files_may_begin_with_a_mark_and_have_lines_twice(run: Callable[..., str], tmp_path: Path) -> None:
    tickets, messages = tmp_path / "tickets.csv", tmp_path / "messages.txt"
    tickets.write_text('id,text\n7,"My parcel is late. Customer 77120."\n', encoding="utf-8-sig")
    assert json.loads(run("tickets.py", tickets))["id"] == "7"
    messages.write_text("Thanks a lot, that solved it for me!\n" * 2, encoding="utf-8-sig")
    assert run("moderation.py", messages).splitlines() == ["publish: Thanks a lot, that solved it for me!"] * 2


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (("friendly", 0.9), ("no", 0.9), "publish"),
        (("", 0.95), ("no", 0.9), "look (What is the tone of this message? no answer, 0.95)"),
        (("friendly", 0.9), ("no", 0.7), "look (Is this advertising or spam? no, 0.70)"),
        (("friendly", 0.7), ("yes", 0.9), "hold back (Is this advertising or spam? yes, 0.90)"),
        (("hostile", 0.9), None, "hold back (What is the tone of this message? hostile, 0.90)"),
        (("friendly", 0.9), None, "look (It is too long.)"),
    ],
)
def test_nothing_unsure_is_published(first: tuple[str, float], second: tuple[str, float] | None, verdict: str) -> None:
    answers = [
        InvalidRequestError("It is too long.", code="context_too_long")
        if given is None
        else Answer(given[0], given[1], (), (), False, ModelVersion("m", "1"), bool(given[0]), given[1])
        for given in (first, second)
    ]
    assert runpy.run_path(str(EXAMPLES / "moderation.py"))["decide"](answers) == verdict
