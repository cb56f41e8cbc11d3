"""The journal of ``mqan batch``, and what is written from it."""

import csv
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mqan_cli.batch.answering import _in_order
from mqan_cli.batch.inputs import Row
from mqan_cli.batch.outputs import write_page, write_table
from mqan_cli.batch.plan import Plan
from mqan_cli.batch.running import Journal, line_of
from mqan_cli.errors import CommandError

ROWS = [Row({"id": str(number)}, f"text {number}") for number in range(5)]
ASKED = {"questions": {"team": {"question": "Which?"}}}
PLAN = Plan({"team": {"question": "Which?", "multiple": True}, "mood": {"question": "How?"}}, None, ("team", "mood"))


def go_on(path: Path, asked: dict[str, Any], rows: list[Row]) -> int:
    with closing(Journal(path, asked)) as journal:
        return journal.go_on(iter(rows))


def line(row: Row) -> str:
    return line_of(row, {"team": {"value": row.text, "probability": 0.5, "spans": [(0, 4)]}}, None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of three rows."""
    path = tmp_path / "out.csv.partial"
    with closing(Journal(path, ASKED)) as journal:
        assert journal.go_on(iter(ROWS)) == 0
        journal.append([line(row) for row in ROWS[:3]])
    return path


@pytest.mark.parametrize("num_bytes", [1, 2, 30, 10_000])
def test_a_run_goes_on_behind_the_last_whole_row_wherever_it_was_killed(path: Path, num_bytes: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: -min(num_bytes, len(whole))])
    left = iter(ROWS)
    with closing(Journal(path, ASKED)) as journal:
        number = journal.go_on(left)
        assert number == (2 if num_bytes < 10_000 else 0)
        rest = list(left)
        assert rest == ROWS[number:], "each row once"
        journal.append([line(row) for row in rest])
        assert [entry["row"] for entry in journal] == [row.values for row in ROWS]
    assert path.read_bytes() == (json.dumps(ASKED) + "\n" + "".join(map(line, ROWS))).encode()


def test_what_a_machine_without_power_leaves_is_dropped(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0" * 100 + b"\n")
    assert go_on(path, ASKED, ROWS) == 3
    assert b"\0" not in path.read_bytes()


def test_answers_to_another_question_or_about_other_rows_are_never_gone_on_with(path: Path) -> None:
    whole = path.read_bytes()
    for asked, rows, message in (
        ({"questions": {}}, ROWS, "has answers to another question"),
        (ASKED, [ROWS[0], Row({"id": "1"}, "another text"), *ROWS[2:]], "has another row 2 than the input"),
        (ASKED, [ROWS[0], Row({"id": "9"}, "text 1"), *ROWS[2:]], "has another row 2 than the input"),
        (ASKED, ROWS[:2], "has another row 3 than the input"),
    ):
        with pytest.raises(CommandError, match=message):
            go_on(path, asked, rows)
        assert path.read_bytes() == whole


def test_a_journal_without_rows_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "out.csv.partial"
    go_on(path, {"another": "question"}, ROWS)
    assert go_on(path, ASKED, ROWS) == 0
    assert path.read_text() == json.dumps(ASKED) + "\n"


def test_two_runs_never_write_one_journal(path: Path) -> None:
    with closing(Journal(path, ASKED)), pytest.raises(CommandError, match="another run writes"):
        Journal(path, ASKED)
    with pytest.raises(CommandError, match="cannot write"):
        Journal(path / "below", ASKED)


def test_rows_stay_in_order_and_few_are_on_their_way() -> None:
    def answer(rows: list[Row]) -> list[str]:
        time.sleep(0.05 if rows == ROWS[:1] else 0)  # the later one is done first
        return [row.text for row in rows]

    read = iter(ROWS)
    with ThreadPoolExecutor(2) as pool:
        parts = _in_order(read, lambda rows: pool.submit(answer, rows), 1, 2)
        assert next(parts) == ["text 0"]
        assert next(read) == ROWS[2], "no row is read before there is room for it"
        assert list(parts) == [["text 1"], ["text 3"], ["text 4"]]


ENTRIES: list[dict[str, Any]] = [
    {
        "row": {"id": 1, "tags": ["a"], "day": "<May>"},
        "text": "Lamp & <b>wire</b> are broken.",
        "cells": {
            "team": {"value": ["IT", "x; y"], "probability": 0.25, "spans": [[0, 4], [10, 14]]},
            "mood": {"value": "angry", "probability": 0.75, "spans": []},
        },
        "error": None,
    },
    {
        "row": {"id": 2.5, "more": {"deep": True}},
        "text": "",
        "cells": {"team": {"value": [], "probability": 0.5, "spans": []}},
        "error": "there is no \udce9",
    },
]


def read_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_parquet(path: Path) -> list[dict[str, Any]]:
    from pyarrow.parquet import read_table

    rows: list[dict[str, Any]] = read_table(path).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("ending", "read", "first", "second"),
    [
        (".csv", read_csv, ("1", "a", "IT; x; y", "0.25", "0", "4", ""), ("2.5", '{"deep": true}', "", "")),
        (".tsv", read_csv, ("1", "a", "IT; x; y", "0.25", "0", "4", ""), ("2.5", '{"deep": true}', "", "")),
        (".jsonl", read_jsonl, (1, ["a"], ["IT", "x; y"], 0.25, 0, 4, None), (2.5, {"deep": True}, [], None)),
        (".parquet", read_parquet, (1.0, ["a"], ["IT", "x; y"], 0.25, 0, 4, None), (2.5, '{"deep": true}', [], None)),
    ],
)
def test_a_table_has_the_columns_of_the_input_and_of_the_answers(
    ending: str,
    read: Callable[[Path], list[dict[str, Any]]],
    first: tuple[Any, ...],
    second: tuple[Any, ...],
    tmp_path: Path,
) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"out{ending}"
    write_table(path, ENTRIES, PLAN)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    rows = read(path)
    names = ("id", "tags", "team", "team_probability", "team_start", "team_end", "error")
    assert tuple(rows[0][name] for name in names) == first
    assert tuple(rows[1][name] for name in ("id", "more", "team", "mood")) == second
    assert rows[1]["error"] == {".parquet": "there is no ?", ".jsonl": "there is no \udce9"}.get(
        ending, r"there is no \udce9"
    )
    if ending != ".jsonl":
        assert list(rows[0]) == ["id", "tags", "day", "more", *PLAN.columns]


def test_the_page_lights_quotations_and_needs_nothing_else(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", ENTRIES, PLAN, "small 7")
    page = (tmp_path / "page.html").read_text()
    assert '<mark class=c0 title="team">Lamp</mark> &amp; &lt;b&gt;<mark' in page
    assert page.count("<article") == 2
    assert "<article data-least=0.25>" in page
    assert 'data-name="mood" data-value="angry"' in page
    assert r"there is no \udce9" in page
    assert '["team", "mood"]' in page
    assert "<dt class=c0>team<dd>Which?<dt class=c1>mood<dd>How?</dl>" in page
    assert "<small>small 7</small>" in page
    assert "http" not in page
    assert not [word for word in ("TITLE", "COLOURS", "NAMES", "ROWS") if word in page]


class _Marks(HTMLParser):
    """The text of the rows of a page, and the ranges of it that are marked, by the titles of the marks."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.open = "", list[str]()
        self.marked: dict[str, set[int]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "mark":
            self.open.append(dict(attrs)["title"] or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "mark":
            self.open.pop()

    def handle_data(self, data: str) -> None:
        for name in self.open:
            self.marked.setdefault(name, set()).update(range(len(self.text), len(self.text) + len(data)))
        self.text += data


@pytest.mark.parametrize(
    ("team", "mood"),
    [
        ([[0, 10]], [[4, 6]]),  # nested
        ([[4, 6]], [[0, 10]]),
        ([[0, 6]], [[4, 10]]),  # overlapping
        ([[4, 10]], [[0, 6]]),
        ([[4, 8]], [[4, 8]]),  # equal
        ([[4, 8]], [[4, 6]]),  # begin or end together
        ([[4, 8]], [[6, 8]]),
        ([[0, 6], [2, 8], [0, 6]], [[8, 10]]),  # of one question
    ],
)
def test_quotations_that_overlap_are_all_marked(team: list[list[int]], mood: list[list[int]], tmp_path: Path) -> None:
    text = "0<2>4&6789ab"
    spans = {"team": team, "mood": mood}
    cells = {name: {"value": "x", "probability": 0.5, "spans": places} for name, places in spans.items()}
    write_page(tmp_path / "page.html", [{"row": {}, "text": text, "cells": cells, "error": None}], PLAN, "small 7")
    found = _Marks()
    found.feed((tmp_path / "page.html").read_text())
    assert found.open == []
    at = found.text.index(text)
    for name, places in spans.items():
        assert found.marked[name] == {at + place for start, end in places for place in range(start, end)}
