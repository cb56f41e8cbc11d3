"""``mqan evaluate ROWS``: what is right by the rows, and the numbers made of the answers; the guide runs the whole."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mqan_cli.batch.inputs import Row, Rows
from mqan_cli.labelled.report import show_scores
from mqan_cli.labelled.rows import Judged, Task, read_own_rows, read_task
from mqan_cli.labelled.scores import interval, scores_of
from mqan_cli.main import app
from mqan_core.example import Choice
from mqan_export.bundle import validation_mixture
from mqan_export.bundle_weights import start_from_bundle
from mqan_serving.default_bundle import default_bundle
from mqan_training.checkpoint import load_checkpoint

TABLE = """mail,team,topics,angry,order,only
Pay me back.,billing,money;delay,no,55012,a
It is broken.,IT,,yes,,a
,IT,delay,yes,1,a
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mails.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def task(table: Path, **given: Any) -> tuple[Task, list[tuple[str, ...] | None]]:
    """Return a task, and what is right of each row."""
    rows = list(Rows([str(table)], "mail", ()))
    options = dict.fromkeys(("label", "answer", "yes_no", "question", "labels"))
    found = read_task(rows, **{**options, "none": False, **given})
    return found, [found.gold(row) for row in rows]


def test_labels_are_those_of_the_column_and_those_that_are_described(table: Path) -> None:
    found, golds = task(table, label="team", labels="billing=invoices; praise")
    assert found.asked == {
        "question": "Which team?",
        "choices": [{"label": "billing", "description": "invoices"}, "praise", "IT"],
    }
    assert golds == [("billing",), ("IT",), ("IT",)]


def test_a_cell_with_several_labels_asks_for_several(table: Path) -> None:
    found, golds = task(table, label="topics")
    assert found.is_multiple
    assert found.labels == ("delay", "money")
    assert golds == [("money", "delay"), None, ("delay",)]
    assert task(table, label="topics", none=True)[1][1] == ()
    assert "none" in task(table, label="team", none=True)[0].asked


def test_an_adapter_is_asked_by_its_name(table: Path) -> None:
    by = {"choices": {"adapter": "desks"}, "multiple": True}
    found, golds = task(table, label="team", adapter="desks")
    assert found == Task("team", {"question": "Which team?", **by}, ("IT", "billing"), False)
    assert golds == [("billing",), ("IT",), ("IT",)]
    assert task(table, label="topics", adapter="desks")[0].is_multiple
    assert task(table, label="team", scale="IT, billing", adapter="desks")[0].asked == {"question": "Which team?", **by}


def test_rows_are_measured_and_taught_with_what_a_server_installs(tmp_path: Path) -> None:
    others = (
        "yaml",
        "torch",
        "sklearn",
        "scipy",
        "onnx",
        "pyarrow",
        "ray",
        "mcp",
        "matplotlib",
        "faker",
        "rouge_score",
    )
    lacking = f"import sys; sys.modules |= dict.fromkeys({others}); from mqan_cli.main import app; app()"
    rows = [str(Path("examples/desks.csv").resolve()), "--text", "mail", "--label", "desk"]
    for verb in (["adapt", *rows, "--name", "desks"], ["evaluate", *rows, "--adapter", "desks"]):
        command, environment = [sys.executable, "-c", lacking, *verb], {**os.environ, "MQAN_ADAPTERS": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "answered rightly" in done.stdout


def test_verdicts_and_free_answers_are_read(table: Path) -> None:
    assert task(table, yes_no="angry", question="Is it angry?")[1] == [("no",), ("yes",), ("yes",)]
    assert task(table, answer="order", question="Which order?")[1] == [("55012",), None, ("1",)]
    assert Task("tags", {}, ("a", "b"), False).gold(Row({"tags": ["a", "b"]})) == ("a", "b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of --label, --answer and --yes-no"),
        (["--label", "team", "--yes-no", "angry"], "one of --label, --answer and --yes-no"),
        (["--answer", "order"], "say what is asked about each row"),
        (["--answer", "order", "--adapter", "desks"], "name their column with --label"),
        (["--label", "teams"], "there is no column teams; there are mail, team,"),
        (["--yes-no", "team", "-q", "Is it?"], "'billing' in row 1 is neither yes nor no"),
        (["--label", "team", "--scale", "billing, low"], "'IT' in row 2 is none of them"),
        (["--label", "team", "--limit", "3"], "it does not go with ROWS"),
        (["--label", "only"], "its column has 1 labels; 2 to 255 can be asked for"),
    ],
)
def test_what_cannot_be_asked_is_refused(table: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["evaluate", str(table), "--text", "mail", *arguments])
    assert result.exit_code != 0
    assert message in " ".join(result.output.replace("│", " ").split())


def test_a_column_of_numbers_teaches_no_labels(tmp_path: Path) -> None:
    (tmp_path / "mails.csv").write_text("text,id\n" + "".join(f"Mail {number}.,{number}\n" for number in range(8)))
    result = CliRunner().invoke(app, ["adapt", str(tmp_path / "mails.csv"), "--label", "id", "--name", "ids"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "mqan: the 8 labels of the column id have one row each: name another --label\n"


@pytest.mark.parametrize(
    ("asked", "answers", "choices", "multiple"),
    [
        ({"label": "team"}, [("billing",), ("IT",), ("IT",)], ("IT", "billing"), False),
        ({"label": "team", "scale": "IT, billing"}, [("billing",), ("IT",), ("IT",)], ("IT", "billing"), False),
        ({"label": "topics"}, [("money", "delay"), ("delay",)], ("delay", "money"), True),
        ({"yes_no": "angry", "question": "?"}, [("no",), ("yes",), ("yes",)], ("yes", "no"), False),
        ({"answer": "order", "question": "?"}, [("55012",), ("1",)], (), False),
    ],
)
def test_rows_become_questions_to_train_on(
    tmp_path: Path, asked: dict[str, str], answers: list[tuple[str, ...]], choices: tuple[str, ...], multiple: bool
) -> None:
    path = tmp_path / "mails.csv"
    path.write_text(TABLE.replace("\n,IT", "\nLate.,IT"), encoding="utf-8")
    options = dict.fromkeys(("label", "answer", "yes_no", "question", "labels", "scale")) | asked
    rows = read_own_rows([str(path)], "mail", options, none=False)
    drawn = [rows.draw(i, np.random.default_rng(3)) for i in range(len(rows))]  # as they will be asked
    assert [example.answers for example in drawn] == answers
    assert {(e.choices, e.multiple) for e in drawn} == {(tuple(map(Choice, choices)), multiple)}
    others = [rows.draw(0, np.random.default_rng(seed)) for seed in range(40)]
    assert all(example.context == "Pay me back." for example in others)
    assert choices == () or len({example.question for example in others}) > 1


def test_a_model_is_trained_on_rows_beside_everyday_texts(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = ("steps=2", "cooldown_steps=1", "pool_size=24", "batch_size=900", "validate_examples=1")
    changed = [part for setting in few for part in ("--set", setting)]
    command = ["train", "--from", "default", "--rows", str(table), "--text", "mail", "--label", "team", *changed]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    found = load_checkpoint(Path(result.stdout.splitlines()[-1]))
    start = start_from_bundle(default_bundle())
    assert found.step == 2
    assert found.training["began_from"] == start.origin
    moved = [name for name, tensor in found.weights.items() if not tensor.equal(start.weights[name])]
    assert len(moved) > 50
    assert [example.task for example in validation_mixture(found.recipe, tmp_path, 2)] == ["everyday", "everyday"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "team"], "give --rows, too"),
        ([], "name a recipe, or a table with --rows"),
        (
            ["--rows", "mails.csv", "--text", "mail", "--label", "team", "--from", "nowhere"],
            "there is no folder nowhere",
        ),
        (["recipe.yaml", "--rows", "mails.csv", "--text", "mail", "--label", "team"], "--rows with a source rows"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(
    table: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(table.parent)
    Path("recipe.yaml").write_text("{name: x, steps: 1, sources: {everyday: 1}}", encoding="utf-8")
    result = CliRunner().invoke(app, ["train", *arguments])
    assert result.exit_code != 0
    assert message in " ".join(result.output.replace("│", " ").split())


def test_options_of_rows_need_rows() -> None:
    result = CliRunner().invoke(app, ["evaluate", "--label", "team"])
    assert result.exit_code != 0
    assert "give ROWS, too" in result.output


def judged(gold: str, said: str, probability: float) -> Judged:
    right = float(gold == said)
    return Judged(1, "text", (gold,) if gold else (), (said,) if said else (), probability, ((0, 4),), right, right)


def test_the_numbers_are_those_of_the_answers() -> None:
    rows = [judged("a", "a", 0.9), judged("a", "a", 0.8), judged("b", "a", 0.7), judged("b", "b", 0.6)]
    rows += [judged("b", "", 0.95), judged("", "", 0.55)]
    scores = scores_of(rows, {"there is no text": 2}, Task("x", {"question": "Which?"}, ("a", "b", "c"), True), 0.75)
    assert (scores["rows"], scores["accuracy"], scores["left_out"]) == (6, 4 / 6, {"there is no text": 2})
    a, b, c, none = scores["labels"]
    assert (a["rows"], a["answers"], a["precision"], a["recall"]) == (2, 3, 2 / 3, 1)
    assert (b["precision"], b["recall"], b["f1"]) == (1, 1 / 3, 0.5)
    assert (c["precision"], c["recall"], c["f1"]) == (None, None, None)
    assert (none["label"], none["precision"], none["recall"]) == ("(none)", 0.5, 1)
    assert scores["confusion"] == {"(none)": {"(none)": 1}, "a": {"a": 2}, "b": {"(none)": 1, "a": 1, "b": 1}}
    at = {point["threshold"]: (point["answered"], point["accuracy"]) for point in scores["curve"]}
    assert at[0.0] == at[0.5] == (4 / 6, 0.75)  # a refusal is no answer
    assert at[0.7] == (3 / 6, 2 / 3)
    assert at[0.95] == (0, None)
    assert scores["threshold"] == {"threshold": 0.0, "rows": 4, "answered": 4 / 6, "accuracy": 0.75}
    assert [(one["gold"], one["probability"]) for one in scores["wrong"]] == [(("b",), 0.95), (("b",), 0.7)]
    assert [(found["rows"], found["accuracy"]) for found in scores["calibration"]] == [
        (1, 1),
        (1, 1),
        (1, 0),
        (1, 1),
        (2, 0.5),
    ]


def test_the_report_says_that_refusals_count_and_where_the_rest_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [judged("a", "b", 0.9)] * 7 + [judged("", "", 0.5)]
    scores = scores_of(rows, {}, Task("x", {"question": "Which?"}, ("a", "b"), True), 0.95)
    show_scores(scores, tmp_path / "page.html", None)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("12.5 % of 8 rows are right (refusals count; 2.2 % to 47.1 % with 95 % confidence)")
    assert f"Wrong: 7, the surest 5 ({tmp_path}/page.html has all)" in lines
    assert (tmp_path / "page.html").read_text().count("<article") == 7
    show_scores(scores_of(rows[:7], {}, Task("x", {"question": "Which?"}, ("a", "b"), True), 0.95), None, None)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("0.0 % of 7 rows are answered rightly (")
    assert "Wrong: 7, the surest 5 (--html FILE has all)" in lines


def test_the_least_probability_that_is_enough() -> None:
    rows = [judged("a", "a", 0.9), judged("a", "a", 0.8), judged("b", "a", 0.7)]
    kind = Task("x", {"question": "Which?"}, ("a", "b"), False)
    assert scores_of(rows, {}, kind, 0.95)["threshold"]["threshold"] == 0.8
    assert scores_of([judged("b", "a", 0.7)], {}, kind, 0.5)["threshold"] is None


def test_the_interval_holds_the_share() -> None:
    assert interval(9, 10) == pytest.approx((0.596, 0.982), abs=1e-3)
    assert interval(10, 10) == pytest.approx((0.722, 1.0), abs=1e-3)
    assert interval(0, 10)[0] == pytest.approx(0)
