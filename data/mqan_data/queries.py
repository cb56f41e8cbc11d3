"""WikiSQL's queries written as text and read back, to train on and to judge; the grammar is ``mqan_core.forms.sql``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqan_core.errors import FormError
from mqan_core.forms.folding import fold
from mqan_core.forms.sql import AFTER_COLUMNS, AGGREGATIONS, BEFORE_COLUMNS, KEY_WORDS, OPERATORS, find_query


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
    """Write a query of the dataset (``sel``, ``agg``, ``conds``) as text, in the words of decaNLP.

    Raises:
        KeyError, IndexError, TypeError, ValueError: the query is not well-formed or names a column that is not there.
    """
    if min([sql["sel"], *(column for column, _, _ in sql["conds"])]) < 0:
        raise IndexError("columns are numbered from 0")
    words = ["SELECT", AGGREGATIONS[sql["agg"]], header[sql["sel"]], "FROM table"]
    conditions = [f"{header[column]} {OPERATORS[operator]} {value}" for column, operator, value in sql["conds"]]
    if conditions:
        words += ["WHERE", " AND ".join(conditions)]
    return " ".join(" ".join(words).split())


def gold_query(sql: Mapping[str, Any], header: Sequence[str]) -> Query:
    """Return a query of the dataset as ``read_query`` returns it."""
    return Query(
        AGGREGATIONS[sql["agg"]].lower(),
        fold(header[sql["sel"]]),
        tuple(
            (fold(header[column]), OPERATORS[operator].lower(), fold(str(value)))
            for column, operator, value in sql["conds"]
        ),
    )


def read_query(text: str, header: Sequence[str]) -> Query | None:
    """Read a query written by ``write_query``, in any case; None where it is not one on a table with this header."""
    try:
        found = find_query(text, header)
    except FormError:
        return None
    conditions = tuple((c.column, c.operator, c.value.folded) for c in found.conditions)
    return Query(found.aggregation, found.column, conditions)
