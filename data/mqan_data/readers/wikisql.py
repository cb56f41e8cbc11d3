"""WikiSQL (Zhong et al. 2017): a question on a table, answered by a SQL query.

Files: ``{train,dev,test}.jsonl`` and ``{train,dev,test}.tables.jsonl``, plain or in ``data.tar.bz2``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqan_core.example import Example
from mqan_core.forms.sql import write_query, write_table
from mqan_data.readers.files import Member, check_split, find_source, malformed, read_json_lines, text_field
from mqan_data.readers.task import Download, Task
from mqan_data.sql_execution import Table

QUESTION = "What is the translation from English to SQL?"
_PART_OF_SPLIT = {"train": "train", "validation": "dev", "test": "test"}
_ARCHIVE = "data.tar.bz2"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the questions of a split; ``reference`` holds ``sql``, ``header`` and the ``table`` where it has rows."""
    check_split("wikisql", split, _PART_OF_SPLIT)
    part = _PART_OF_SPLIT[split]
    tables = dict(_tables(_find(folder, f"{part}.tables.jsonl")))
    source = _find(folder, f"{part}.jsonl")
    for number, row in read_json_lines(source):
        asked, name = text_field(source, number, row, "question"), text_field(source, number, row, "table_id")
        if name not in tables:
            raise malformed(source, number, f"there is no table {name!r}.")
        header = tables[name].header
        try:
            query = write_query(row["sql"], header)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise malformed(source, number, f"`sql` is missing or malformed ({error!r}).") from error
        reference = {"sql": row["sql"], "header": header}
        if tables[name].rows:
            reference["table"] = tables[name]
        context = write_table(header, asked)
        yield Example("wikisql", f"{split}/{number}", context, QUESTION, (query,), reference=reference)


def _find(folder: Path, name: str) -> Path | Member:
    return find_source("wikisql", folder, name, archive=_ARCHIVE, member=f"data/{name}")


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
