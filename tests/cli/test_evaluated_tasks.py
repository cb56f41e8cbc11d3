"""``mqan evaluate``: every example is accounted for, and every task that is left out."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqan_cli import evaluation
from mqan_cli.main import app
from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_data.tasks import tasks
from mqan_evaluation.answerers import EngineAnswerer

ROWS = [(1, "A film of rare charm."), (0, "Dull and far too long!"), (1, "   ")]
SCHEMA = "The [cat/dog] ran.\nWhat [ran/fled]?\nthe cat/the dog\n"
FRAMES = '{"context": "Rain.", "question": "What fell?", "answer": %s}\n'

runner = CliRunner()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with SST, of which test is not there, MWSC with a schema too many, and JSON lines."""
    folder = tmp_path / "data"
    for name in ("sst", "mwsc", "mine"):
        (folder / name).mkdir(parents=True)
    for split in ("train", "dev"):
        with (folder / "sst" / f"{split}_binary_sent.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("label", "sentence"), *ROWS[: 2 if split == "train" else 3]])
    (folder / "mwsc" / "schema.txt").write_text(f"{SCHEMA}\n" * 131 + SCHEMA)
    (folder / "mine" / "val.jsonl").write_text(FRAMES % '"rain"' + FRAMES % '["...", "rain"]')
    return folder


def lines(output: str) -> dict[str, list[str]]:
    """Return the cells of the table's rows by their first one."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in output.splitlines() if "│" in line]
    return {row[0]: row[1:] for row in rows}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Put a model in the place of every bundle that says "positive"; return which bundles were opened."""
    opened: list[Path] = []

    class Positive:
        title, where, sources = "stub", "in a test", ("sst", "imdb", "jsonl:./my-labels")
        has_one_thread = False

        def answer(self, asked: Sequence[Example]) -> list[Answer | None]:
            answer = Answer("positive", 1.0, (), (), False)
            return [answer if example.context.strip() else None for example in asked]

    def open_bundle(folder: Path, *, precision: str) -> Positive:
        opened.append(folder)
        return Positive()

    monkeypatch.setattr(EngineAnswerer, "open", open_bundle)
    monkeypatch.setattr(evaluation, "_is_papers", lambda model, **_: True)
    return opened


def evaluate(data: Path, *arguments: str) -> Any:
    return runner.invoke(app, ["evaluate", "--data", str(data), *arguments])


def test_evaluate_takes_the_bundle_that_is_served(
    model: list[Path], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setenv("MQAN_BUNDLE", str(tmp_path))
    result = evaluate(data)
    assert (result.exit_code, model) == (0, [tmp_path])
    assert lines(result.stdout)["sst"][:3] == ["3", "em", "33.33"]
    assert "imdb: skipped: has no validation split" in result.stdout
    assert "jsonl:./my-labels: skipped: found no val.jsonl in" in result.stdout, "its maker's own, and not published"
    assert "sst: 1 examples have no text to ask about: ['validation/2']" in result.stdout


def test_evaluate_says_when_there_is_no_bundle(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mqan_serving import settings

    monkeypatch.delenv("MQAN_BUNDLE", raising=False)
    monkeypatch.setattr(settings, "_DEFAULT_BUNDLE", tmp_path / "default")
    result = evaluate(data)
    assert (result.exit_code, result.stdout) == (1, "")
    said = "".join(result.stderr.split())
    assert f"notset,andthedefaultone,{tmp_path}/defaulthasnomanifest.json" in said


def test_evaluate_all_names_the_tasks_it_skips(model: list[Path], data: Path, tmp_path: Path) -> None:
    result = evaluate(data, "--bundle", str(tmp_path), "--tasks", "all", "--limit", "2")
    assert result.exit_code == 0
    scored = {name: row[0] for name, row in lines(result.stdout).items()}
    assert {name: count for name, count in scored.items() if name in tasks()} == {"sst": "2", "mwsc": "2"}
    skipped = {line.split(":")[0] for line in result.stdout.splitlines() if ": skipped: " in line}
    assert skipped == tasks().keys() - {"sst", "mwsc"}
    assert "mwsc: schema without a blank line after it (1)" in result.stdout
    assert "squad: skipped: found no dev-v1.1.json in" in result.stdout


@pytest.mark.parametrize("arguments", [["--tasks", "sst,jsonl:mine,sst"], ["--tasks", "sst", "--tasks", "jsonl:mine"]])
def test_evaluate_takes_several_tasks(model: list[Path], data: Path, tmp_path: Path, arguments: list[str]) -> None:
    result = evaluate(data, "--bundle", str(tmp_path), *arguments)
    assert [(name, row[-1]) for name, row in lines(result.stdout).items()] == [("sst", "yes"), ("jsonl:mine", "no")]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("sst,squad", "squad: found no dev-v1.1.json"),
        ("imdb", "no task to score: imdb: has no validation split"),
        ("sst,sstt", "Did you mean sst"),
    ],
)
def test_evaluate_looks_for_named_tasks_before_it_begins(
    model: list[Path], data: Path, tmp_path: Path, tasks: str, message: str
) -> None:
    result = evaluate(data, "--bundle", str(tmp_path), "--tasks", tasks)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_evaluate_names_a_task_without_examples_before_it_begins(
    model: list[Path], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "mine" / "val.jsonl").write_text("")
    monkeypatch.setattr(evaluation, "paper_section", must_not_be_called)
    result = evaluate(data, "--bundle", str(tmp_path), "--tasks", "sst,jsonl:mine")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "jsonl:mine, validation: its files give no examples" in result.stderr


def must_not_be_called(*_: object, **__: object) -> None:
    raise AssertionError("nothing is answered")


@pytest.mark.parametrize(("below", "status"), [("file", 2), ("file/out", 1)])
def test_evaluate_refuses_a_file_as_its_folder_before_it_begins(
    model: list[Path], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str, status: int
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(evaluation, "paper_section", must_not_be_called)
    result = evaluate(data, "--bundle", str(tmp_path), "--tasks", "sst", "--output", str(tmp_path / below))
    assert (result.exit_code, result.stdout) == (status, "")
    assert "--output" in result.stderr


def test_nothing_is_recorded_of_the_papers_network(model: list[Path], data: Path, tmp_path: Path) -> None:
    result = evaluate(data, "--bundle", str(tmp_path), "--record")
    assert (result.exit_code, result.stdout, model) == (1, "", [])
    assert "--record is for a model with a pretrained reader" in result.stderr
    without = evaluate(data, "--record")
    assert (without.exit_code, without.stdout, model) == (1, "", [])
    assert "name it with --bundle" in without.stderr
