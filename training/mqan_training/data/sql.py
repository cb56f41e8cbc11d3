"""WikiSQL's queries as text and back (Zhong et al. 2017), for the reader and for its metric.

A query selects one column of one table, perhaps aggregated, under conditions that all hold:
``SELECT <aggregation> <column> FROM table WHERE <column> <operator> <value> AND ...``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AGGREGATIONS = ("", "MAX", "MIN", "COUNT", "SUM", "AVG")
OPERATORS = ("=", ">", "<", "OP")

_QUERY = re.compile(r"select (.+?) from table(?: where (.+))?")
_OPERATOR = "|".join(re.escape(operator.lower()) for operator in OPERATORS)


@dataclass(frozen=True, slots=True)
class Query:
    """A query by the names of its columns, in lower case with single spaces.

    Attributes:
        aggregation: one of ``AGGREGATIONS``.
        column: the selected column.
        conditions: column, operator and value of each, in order.
    """

    aggregation: str
    column: str
    conditions: tuple[tuple[str, str, str], ...]


def fold(text: str) -> str:
    """Return the text in lower case, with single spaces and none at its ends."""
    return " ".join(text.lower().split())


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
    """Read a query written by ``write_query``, in any case; None where it is not one on a table with this header.

    Where a column's name is the beginning of another's, the longer one is meant; a selected column that is called
    like an aggregated other one is meant as a column.
    """
    match = _QUERY.fullmatch(fold(text))
    columns = sorted({fold(name) for name in header}, key=len, reverse=True)
    selected = _read_selection(match[1], columns) if match else None
    if not match or not selected:
        return None
    conditions = _read_conditions(match[2], columns) if match[2] else ()
    return None if conditions is None else Query(*selected, conditions)


def _read_selection(text: str, columns: list[str]) -> tuple[str, str] | None:
    if text in columns:
        return "", text
    aggregation, _, column = text.partition(" ")
    is_known = aggregation.upper() in AGGREGATIONS[1:] and column in columns
    return (aggregation, column) if is_known else None


def _read_conditions(text: str, columns: list[str]) -> tuple[tuple[str, str, str], ...] | None:
    names = "|".join(map(re.escape, columns))
    starts = list(re.finditer(rf"(?:^|(?<= )and )({names}) ({_OPERATOR})(?= |$)", text))
    if not starts or starts[0].start() != 0:
        return None
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return tuple((start[1], start[2], text[start.end() : end].strip()) for start, end in zip(starts, ends, strict=True))
