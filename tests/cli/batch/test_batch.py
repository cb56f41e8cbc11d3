"""``mqan batch`` with the packaged model: in processes, through a server, on Ray, killed and gone on."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_core.bundle import open_bundle
from tests.processes import descendants, wait_for_end
from tests.serving.test_adapters import write
from tests.timing import wait_until

NUM_ROWS = 150
ASKED = [
    "-q",
    "broken=What is broken?",
    "-q",
    "kind=What is it?",
    "-c",
    "complaint, praise",
    "--text",
    "{subject}. {body}",
]


def command(*given: str) -> list[str]:
    return [sys.executable, "-m", "mqan_cli.main", "batch", *given]


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MQAN_")} | more


def batch(folder: Path, *given: str, status: int = 0, **settings: str) -> str:
    """Run it, and return what it says."""
    ended = subprocess.run(
        command(*given), cwd=folder, env=environment(**settings), capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of mails, and its answers by an unbroken run."""
    folder = tmp_path_factory.mktemp("batch")
    things = ("lamp", "chair", "printer")
    with (folder / "mails.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "subject", "body"])
        for number in range(NUM_ROWS):
            thing = things[number % len(things)]
            writer.writerow(
                [number, f"Order {number}", f"My {thing} is broken. It arrived on Monday,\nand I want another."]
            )
        writer.writerow(["short"])
    said = batch(folder, "mails.csv", "-o", "unbroken.csv", *ASKED, "--workers", "2", "--html", "page.html")
    assert f"{NUM_ROWS + 1} rows" in said
    return folder


def kill_after(folder: Path, output: str, num_rows: int, *given: str) -> list[int]:
    """Kill a run once so many rows are answered, or more; return the processes that it has started."""
    journal = folder / f"{output}.partial"
    asked = command("mails.csv", "-o", output, *ASKED, *given)

    def has_answered() -> bool:
        return journal.exists() and journal.read_bytes().count(b"\n") > num_rows

    with subprocess.Popen(asked, cwd=folder, env=environment(), stderr=subprocess.DEVNULL) as running:
        try:
            wait_until(lambda: has_answered() or running.poll() is not None, 240)
            assert running.poll() is None
            below = descendants(running.pid, "")
        finally:
            running.kill()
    return below


@pytest.fixture(scope="module")
def killed() -> Iterator[list[int]]:
    """Processes that runs have started which were killed; at last none is left: Ray's agents notice after a minute."""
    processes: list[int] = []
    yield processes
    wait_for_end(processes, 240)


@pytest.mark.slow
def test_ray_answers_the_same_and_goes_on(folder: Path, killed: list[int]) -> None:
    pytest.importorskip("pyarrow")
    killed += kill_after(folder, "ray.csv", 10, "--ray", "--workers", "1")
    assert "going on after row" in batch(folder, "mails.csv", "-o", "ray.csv", *ASKED, "--ray", "--workers", "1")
    assert (folder / "ray.csv").read_bytes() == (folder / "unbroken.csv").read_bytes()
    said = batch(folder, "-", "-o", "stream.csv", *ASKED, "--ray", status=2)
    assert "standard input" in said


def test_every_row_has_its_answers_in_order(folder: Path) -> None:
    rows = read(folder / "unbroken.csv")
    assert [row["id"] for row in rows] == [*map(str, range(NUM_ROWS)), "short"]
    for row in rows[:-1]:
        text = f"{row['subject']}. {row['body']}"
        assert row["broken"].endswith(("lamp", "chair", "printer"))
        assert text[int(row["broken_start"]) : int(row["broken_end"])] == row["broken"]
        assert (row["kind"], row["error"]) == ("complaint", "")
        assert 0 < float(row["kind_probability"]) <= 1
    assert (rows[-1]["broken"], rows[-1]["error"]) == ("", "there is no text")
    assert (folder / "page.html").read_text().count("<article") == NUM_ROWS + 1
    assert not (folder / "unbroken.csv.partial").exists()


def test_an_output_that_is_there_is_never_overwritten(folder: Path) -> None:
    before = (folder / "unbroken.csv").read_bytes()
    assert "is there already" in batch(folder, "mails.csv", "-o", "unbroken.csv", *ASKED, status=2)
    assert "the output has broken, broken_probability, " in batch(
        folder, "unbroken.csv", "-o", "again.csv", *ASKED, status=1
    )
    assert (folder / "unbroken.csv").read_bytes() == before


def test_what_is_not_installed_is_told_before_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = CliRunner().invoke(app, ["batch", str(folder / "mails.csv"), "-o", str(folder / "out.parquet"), *ASKED])
    assert result.exit_code == 1
    assert "-m pip install 'pyarrow>=20' 'pyyaml>=6'" in result.stderr
    assert not (folder / "out.parquet.partial").exists()


def test_a_run_that_is_killed_twice_ends_as_one_that_was_not(folder: Path) -> None:
    for num_rows in (1, 65):
        wait_for_end(kill_after(folder, "killed.csv", num_rows))
    said = batch(folder, "mails.csv", "-o", "killed.csv", "-q", "broken=What?", "--text", "body", status=1)
    assert "another question" in said
    assert "going on after row" in batch(folder, "mails.csv", "-o", "killed.csv", *ASKED)
    assert (folder / "killed.csv").read_bytes() == (folder / "unbroken.csv").read_bytes()


def test_a_server_answers_the_same(folder: Path, default_server: Any) -> None:
    for url in (default_server.rest, f"grpc://{default_server.rpc}"):
        batch(folder, "mails.csv", "-o", "served.csv", *ASKED, "--server", url)
        assert (folder / "served.csv").read_bytes() == (folder / "unbroken.csv").read_bytes()
        (folder / "served.csv").unlink()


def test_where_no_server_answers_no_row_has_the_blame(folder: Path) -> None:
    said = batch(folder, "mails.csv", "-o", "none.csv", *ASKED, "--server", "http://127.0.0.1:9", status=1)
    assert "no answer from http://127.0.0.1:9" in said
    assert not (folder / "none.csv").exists()


def test_a_record_of_every_text_is_the_same_in_process_and_through_a_server(
    tmp_path: Path, default_server: Any
) -> None:
    fields = {
        "lamp": {"type": "boolean", "ask": "Is a lamp broken?"},
        "day": {"type": "string", "ask": "On which day?"},
    }
    (tmp_path / "schema.json").write_text(json.dumps({"properties": fields}))
    (tmp_path / "mails").mkdir()
    (tmp_path / "mails" / "1.txt").write_text("The lamp arrived on Monday, but it is broken!")
    (tmp_path / "mails" / "2.txt").write_bytes(b"\xff")
    given = ["mails", "--schema", "schema.json"]
    batch(tmp_path, *given, "-o", "here.jsonl", "--workers", "1")
    first, second = (json.loads(line) for line in (tmp_path / "here.jsonl").read_text().splitlines())
    assert (first["file"], first["lamp"], first["day"], first["error"]) == ("mails/1.txt", True, "Monday", None)
    assert (first["lamp_reason"], second["day_reason"]) == (None, None)
    assert (second["lamp"], second["error"]) == (None, "the text is not UTF-8 at character 0")
    batch(tmp_path, *given, "-o", "there.jsonl", "--server", default_server.rest)
    assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()


def test_a_run_does_not_go_on_with_another_adapter(small_bundle: Path, start_server: Any, tmp_path: Path) -> None:
    bundle = open_bundle(small_bundle)
    given = tmp_path, bundle.sha256, bundle.manifest.text_width
    (tmp_path / "mails.csv").write_text("mail\nAda wrote notes.\nThe walls fell.\n")
    asked = ["mails.csv", "-o", "out.csv", "--text", "mail", "--adapter", "desks"]
    here = {"MQAN_ADAPTERS": str(tmp_path)}
    assert "There is no adapter 'desks'" in batch(tmp_path, *asked, "--bundle", str(small_bundle), status=1, **here)
    write(*given, "notes")
    batch(tmp_path, *asked, "--bundle", str(small_bundle), "--html", "none/page.html", status=1, **here)
    server = start_server("local", bundle=small_bundle, adapters=tmp_path)
    write(*given, "walls")
    for who in (["--bundle", str(small_bundle)], ["--server", server.rest]):
        said = batch(tmp_path, *asked, "-q", "desk=Who?", *who, status=2, COLUMNS="200", **here)
        assert "ask 'Which desk?', or leave the question out" in said
        assert "of another model or adapter: remove it" in " ".join(
            batch(tmp_path, *asked, *who, status=1, **here).split()
        )
    write(*given, "notes")
    assert "going on after row 2" in batch(tmp_path, *asked, "--server", f"grpc://{server.rpc}")
    assert [row["answer"] for row in read(tmp_path / "out.csv")] == ["notes", "notes"]
