"""``mqan evaluate ROWS``: what is right by the rows, and the numbers made of the answers; the guide runs the whole."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqan_cli.batch.inputs import Row, Rows
from mqan_cli.labelled.rows import Judged, Task, read_task
from mqan_cli.labelled.scores import interval, scores_of
from mqan_cli.main import app

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
        (["--label", "teams"], "there is no column teams; there are mail, team,"),
        (["--yes-no", "team", "-q", "Is it?"], "'IT' in its column is neither yes nor no"),
        (["--label", "team", "--limit", "3"], "it does not go with ROWS"),
        (["--label", "only"], "its column has 1 labels; 2 to 255 can be asked for"),
    ],
)
def test_what_cannot_be_asked_is_refused(table: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["evaluate", str(table), "--text", "mail", *arguments])
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


def test_the_least_probability_that_is_enough() -> None:
    rows = [judged("a", "a", 0.9), judged("a", "a", 0.8), judged("b", "a", 0.7)]
    kind = Task("x", {"question": "Which?"}, ("a", "b"), False)
    assert scores_of(rows, {}, kind, 0.95)["threshold"]["threshold"] == 0.8
    assert scores_of([judged("b", "a", 0.7)], {}, kind, 0.5)["threshold"] is None


def test_the_interval_holds_the_share() -> None:
    assert interval(9, 10) == pytest.approx((0.596, 0.982), abs=1e-3)
    assert interval(10, 10) == pytest.approx((0.722, 1.0), abs=1e-3)
    assert interval(0, 10)[0] == pytest.approx(0)
