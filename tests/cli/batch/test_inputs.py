"""The rows of ``mqan batch``: every format, what is asked about, and rows that cannot be read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from mqan_cli.batch.inputs import Row, Rows
from mqan_cli.errors import CommandError


def rows_of(path: Path | str, template: str | None = None, content: str | bytes | None = None) -> list[Row]:
    """Return the rows of a file, which is written first where it has a content."""
    if content is not None:
        Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    rows = Rows([str(path)], template, ["answer", "end", "error"])
    found = list(rows)
    assert rows.count() == len(found)
    assert list(rows) == found, "each iteration reads anew"
    return found


@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_tables(between: str, tmp_path: Path) -> None:
    content = f'\ufeffid{between}text\r\n1{between}"a ""b""\nc"\r\n\r\n2\r\n3{between}x{between}y\r\n'
    assert rows_of(tmp_path / "rows.csv", content=content) == [
        Row({"id": "1", "text": 'a "b"\nc'}, 'a "b"\nc'),
        Row({"id": "2", "text": ""}, "", "there is no text"),
        Row({"id": "3", "text": "x"}, "", "the row has 1 more cells than the header"),
    ]


def test_lines_of_json(tmp_path: Path) -> None:
    content = '{"text": "a\u2028b", "n": 1}\n\n[1]\n{"n": 2}\n{"text": ["x"]}\n{"text": null, "answer": 1}\n{"te'
    rows = rows_of(tmp_path / "rows.jsonl", content=content)
    assert [(row.text, row.error) for row in rows] == [
        ("a\u2028b", None),
        ("", "line 3 is no object of JSON"),
        ("", "there is no column text; there are n: give --text"),
        ('["x"]', None),
        ("", "the output has answer, too: rename these columns, or the questions (NAME=QUESTION) or fields"),
        ("", "line 7 is no object of JSON"),
    ]
    assert rows[0].values == {"text": "a\u2028b", "n": 1}


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from datetime import date

    from pyarrow.parquet import write_table

    write_table(pa.table({"text": ["a"] * 300, "day": [date(2024, 5, 3)] * 300}), tmp_path / "rows.parquet")
    assert rows_of(tmp_path / "rows.parquet") == [Row({"text": "a", "day": "2024-05-03"}, "a")] * 300


def test_texts_of_a_folder_and_of_a_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("mails")
    (folder / "old").mkdir(parents=True)
    for name, content in {
        "b.txt": b"B",
        "a.txt": b"\xff",
        "old/c.txt": b" ",
        ".hidden": b"x",
        "out.csv.partial": b"x",
    }.items():
        (folder / name).write_bytes(content)
    found = [
        Row({"file": "mails/a.txt"}, "", "the text is not UTF-8 at character 0"),
        Row({"file": "mails/b.txt"}, "B"),
        Row({"file": "mails/old/c.txt"}, "", "there is no text"),
    ]
    assert [(row.values, row.error) for row in rows_of("mails")] == [(row.values, row.error) for row in found]
    assert rows_of("mails/*.txt") == found[:2]
    with pytest.raises(typer.BadParameter, match=r"there is no file mails/\*\.csv"):
        Rows(["mails/*.csv"], None, [])


def test_a_template_has_several_columns(tmp_path: Path) -> None:
    content = "subject,the body\nLamp,It is broken.\n"
    [row] = rows_of(tmp_path / "rows.csv", "{subject}: {the body}", content)
    assert row.text == "Lamp: It is broken."
    assert rows_of(tmp_path / "rows.csv", "the body")[0].text == "It is broken."


def test_a_row_that_is_not_utf8_keeps_its_bytes_and_stops_nothing(tmp_path: Path) -> None:
    first, second = rows_of(tmp_path / "rows.csv", content=b"id,text\ncaf\xe9,a\n1,b\xff\n")
    assert first == Row({"id": "caf\udce9", "text": "a"}, "a")
    assert second.error == "the text is not UTF-8 at character 1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("mail\na\n", "rows.csv: there is no column text; there are mail: give --text"),
        ("text,answer,end\na,b,c\n", "the output has answer, end, too"),
        ("text,text\na,b\n", "two columns have the name 'text'"),
    ],
)
def test_wrong_columns_end_a_run_before_it_begins(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=message):
        rows_of(tmp_path / "rows.csv", content=content)


def test_an_empty_table_has_no_rows(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "rows.csv", content="") == []
    assert rows_of(tmp_path / "rows.csv", content="text\n") == []


@pytest.mark.parametrize(
    ("template", "content", "values"),
    [
        ("mail", "mail,id\na,1\n", [{"mail": "a", "id": "1"}]),
        (None, '{"text": "a"}\n', [{"text": "a"}]),
        (None, "first line\n\nsecond, line\n", [{"text": "first line"}, {"text": "second, line"}]),
    ],
    ids=["table", "json", "lines"],
)
def test_standard_input(template: str | None, content: str, values: list[dict[str, str]]) -> None:
    program = (
        "import json, sys\nfrom mqan_cli.batch.inputs import Rows\n"
        "rows = Rows(['-'], json.loads(sys.argv[1]), [])\nassert rows.count() is None\n"
        "print(json.dumps([row.values for row in rows]))"
    )
    command = [sys.executable, "-c", program, json.dumps(template)]
    assert (
        json.loads(subprocess.run(command, input=content, text=True, capture_output=True, check=True).stdout) == values
    )
