"""WikiSQL's queries written as text, to train on, and read back by ``mqan_core.forms.grammars``, to judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqan_core.errors import FormError
from mqan_core.forms.grammars import AFTER_COLUMNS, AGGREGATIONS, BEFORE_COLUMNS, KEY_WORDS, OPERATORS, find_query, fold


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
