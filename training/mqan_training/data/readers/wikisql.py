"""WikiSQL (Zhong et al. 2017): a question on a table, answered by a SQL query.

Files: ``{train,dev,test}.jsonl`` and ``{train,dev,test}.tables.jsonl``, plain or in ``data.tar.bz2``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mqan_core.example import Example
from mqan_core.sql import write_query, write_table
from mqan_training.data.readers.files import (
    Member,
    check_split,
    find_source,
    malformed,
    read_json_lines,
    text_field,
)
from mqan_training.data.readers.task import Download, Task
from mqan_training.data.sql_execution import Table

QUESTION = "What is the translation from English to SQL?"
_PART_OF_SPLIT = {"train": "train", "validation": "dev", "test": "test"}
_ARCHIVE = "data.tar.bz2"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the questions of a split; ``reference`` holds ``sql``, ``header`` and the ``table`` where it has rows."""
    for number, asked, table, sql in read_questions(folder, split):
        reference = {"table": table} if table.rows else {}
        yield as_example("wikisql", f"{split}/{number}", asked, table.header, sql, reference)


def read_questions(folder: Path, split: str, task: str = "wikisql") -> Iterator[tuple[int, str, Table, Any]]:
    """Yield the number, the question, the table and the query of each example of a split."""
    check_split("wikisql", split, _PART_OF_SPLIT)
    part = _PART_OF_SPLIT[split]
    tables = dict(_tables(_find(task, folder, f"{part}.tables.jsonl")))
    source = _find(task, folder, f"{part}.jsonl")
    for number, row in read_json_lines(source):
        asked, name = text_field(source, number, row, "question"), text_field(source, number, row, "table_id")
        if name not in tables:
            raise malformed(source, number, f"there is no table {name!r}.")
        try:
            write_query(row["sql"], tables[name].header)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise malformed(source, number, f"`sql` is missing or malformed ({error!r}).") from error
        yield number, asked, tables[name], row["sql"]


def as_example(
    task: str, id_: str, asked: str, header: Sequence[str], sql: Mapping[str, Any], reference: Mapping[str, Any]
) -> Example:
    """Return the example of a question on a table, as decaNLP puts it."""
    context, answers = write_table(header, asked), (write_query(sql, header),)
    return Example(task, id_, context, QUESTION, answers, reference={"sql": sql, "header": header, **reference})


def _find(task: str, folder: Path, name: str) -> Path | Member:
    return find_source(task, folder, name, archive=_ARCHIVE, member=f"data/{name}")


def _tables(source: Path | Member) -> Iterator[tuple[str, Table]]:
    """Yield the name of each table and the table."""
    for number, row in read_json_lines(source):
        header: Any = row.get("header")
        if not isinstance(header, list) or not all(isinstance(name, str) for name in header):
            raise malformed(source, number, "`header` must be a list of strings.")
        types, rows = row.get("types", []), row.get("rows", [])
        if rows and (not {*types} <= {"text", "real"} or {len(types), *map(len, rows)} != {len(header)}):
            raise malformed(source, number, "`types` (text or real) and each of `rows` must be as long as `header`.")
        yield text_field(source, number, row, "id"), Table(header, types, rows)


TASK = Task(
    name="wikisql",
    folder="wikisql",
    splits=tuple(_PART_OF_SPLIT),
    metric="lfem",
    read=read,
    sources=(
        Download(
            "https://github.com/salesforce/WikiSQL/raw/master/data.tar.bz2",
            _ARCHIVE,
            sha256="755c728ab188e364575705c8641f3fafd86fb089cb8b08e8c03f01832aae0881",
        ),
    ),
)
