"""Run WikiSQL's queries on their tables, as the published evaluator does (Zhong et al. 2017): in sqlite, in memory.

Texts are compared in lower case; in a column of type ``real`` a condition's value is read as a number.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from mqan_core.forms.folding import fold
from mqan_data.queries import Query

_NUMBER = re.compile(r"[-+]?\d*\.\d+|\d+")
_RUNNABLE = frozenset({"=", ">", "<"})  # "op" stands for an operator that the dataset never uses
_MOST_STEPS = 10_000_000  # of sqlite's machine, for a query that would not end


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the dataset."""

    header: Sequence[str]
    types: Sequence[str]  # ``text`` or ``real``
    rows: Sequence[Sequence[Any]]


def execute(query: Query, table: Table) -> Counter[Hashable] | None:
    """Return how often each value is in the result of a query; None where it cannot be run.

    A query cannot be run when it compares by an unknown operator, or a text with numbers.
    """
    place_of: dict[str, int] = {}
    for place, name in enumerate(table.header):
        place_of.setdefault(fold(name), place)
    column = f"c{place_of[query.column]}"
    selected = f"{query.aggregation}({column})" if query.aggregation else column
    terms, values = [], []
    for name, operator, value in query.conditions:
        place = place_of[name]
        number = _number(value) if table.types[place] == "real" else None
        if operator not in _RUNNABLE or (table.types[place] == "real" and number is None):
            return None
        terms.append(f"c{place} {operator} ?")
        values.append(value if number is None else number)
    where = " WHERE " + " AND ".join(terms) if terms else ""
    connection = _load(table)
    try:
        connection.set_progress_handler(lambda: 1, _MOST_STEPS)
        rows = connection.execute(f"SELECT {selected} FROM t{where}", values)  # noqa: S608  names are c0, c1, ...
        return Counter(row[0] for row in rows)
    except sqlite3.Error:
        return None
    finally:
        connection.close()


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        found = _NUMBER.findall(text)
        return float(found[0]) if found else None


def _load(table: Table) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    columns = ", ".join(f"c{place} {kind}" for place, kind in enumerate(map(_kind, table.types)))
    connection.execute(f"CREATE TABLE t ({columns})")
    places = ", ".join("?" * len(table.header))
    rows = ([_cell(cell, kind) for cell, kind in zip(row, table.types, strict=True)] for row in table.rows)
    connection.executemany(f"INSERT INTO t VALUES ({places})", rows)  # noqa: S608
    connection.execute("PRAGMA query_only = ON")
    return connection


def _kind(kind: str) -> str:
    if kind not in ("text", "real"):
        raise ValueError(f"a column of WikiSQL is text or real, found {kind!r}")
    return kind.upper()


def _cell(cell: Any, kind: str) -> Any:
    if cell is None:
        return None
    number = _number(str(cell)) if kind == "real" else None
    return str(cell).lower() if number is None else number
