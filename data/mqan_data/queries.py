"""WikiSQL's queries written as text, read back and run, to train on and to judge.

The grammar is ``mqan_core.forms.grammars``. Queries run as in the published evaluator (Zhong et al. 2017): in sqlite,
in memory. Texts are compared in lower case; in a column of type ``real`` a condition's value is read as a number.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqan_core.errors import FormError
from mqan_core.forms.grammars import AFTER_COLUMNS, AGGREGATIONS, BEFORE_COLUMNS, KEY_WORDS, OPERATORS, find_query, fold

_NUMBER = re.compile(r"[-+]?\d*\.\d+|\d+")
_RUNNABLE = frozenset({"=", ">", "<"})  # "op" stands for an operator that the dataset never uses
_MOST_STEPS = 10_000_000  # of sqlite's machine, for a query that would not end


@dataclass(frozen=True, slots=True)
class Query:
    """A query by the names of its columns, folded."""

    aggregation: str  # one of ``AGGREGATIONS``, in lower case
    column: str
    conditions: tuple[tuple[str, str, str], ...]  # column, operator and value of each


def write_table(header: Sequence[str], asked: str) -> str:
    """Write the context of a question on a table, as decaNLP puts it."""
    return f"{BEFORE_COLUMNS}{', '.join(header)}{AFTER_COLUMNS}{KEY_WORDS}-- {asked}"


def write_query(sql: Mapping[str, Any], header: Sequence[str]) -> str:
    """Write a query of the dataset (``sel``, ``agg``, ``conds``) as text, in the words of decaNLP."""
    if min([sql["sel"], *(column for column, _, _ in sql["conds"])]) < 0:
        raise IndexError("columns are numbered from 0")
    words = ["SELECT", AGGREGATIONS[sql["agg"]], header[sql["sel"]], "FROM table"]
    conditions = [f"{header[column]} {OPERATORS[operator]} {value}" for column, operator, value in sql["conds"]]
    if conditions:
        words += ["WHERE", " AND ".join(conditions)]
    return " ".join(" ".join(words).split())


def gold_query(sql: Mapping[str, Any], header: Sequence[str]) -> Query:
    conditions = tuple((fold(header[c]), OPERATORS[o].lower(), fold(str(value))) for c, o, value in sql["conds"])
    return Query(AGGREGATIONS[sql["agg"]].lower(), fold(header[sql["sel"]]), conditions)


def read_query(text: str, header: Sequence[str]) -> Query | None:
    """Read a query written by ``write_query``, in any case; None where it is not one on a table with this header."""
    try:
        aggregation, column, found = find_query(text, header)
    except FormError:
        return None
    return Query(aggregation, column, tuple((name, operator, value.folded) for name, operator, value in found))


@dataclass(frozen=True, slots=True)
class Table:
    header: Sequence[str]
    types: Sequence[str]  # ``text`` or ``real``
    rows: Sequence[Sequence[Any]]


def execute(query: Query, table: Table) -> Counter[Hashable] | None:
    """Return how often each value is in the result of a query; None where it cannot be run."""
    header = [fold(name) for name in table.header]
    place_of = {name: header.index(name) for name in header}
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
    if unknown := set(table.types) - {"text", "real"}:
        raise ValueError(f"a column of WikiSQL is text or real, found {min(unknown)!r}")
    columns = ", ".join(f"c{place} {kind.upper()}" for place, kind in enumerate(table.types))
    connection.execute(f"CREATE TABLE t ({columns})")
    places = ", ".join("?" * len(table.header))
    rows = ([_cell(cell, kind) for cell, kind in zip(row, table.types, strict=True)] for row in table.rows)
    connection.executemany(f"INSERT INTO t VALUES ({places})", rows)  # noqa: S608
    connection.execute("PRAGMA query_only = ON")
    return connection


def _cell(cell: Any, kind: str) -> Any:
    if cell is None:
        return None
    number = _number(str(cell)) if kind == "real" else None
    return str(cell).lower() if number is None else number
