"""Queries as text and back."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqan_core.forms.grammars import AGGREGATIONS, OPERATORS, read_header
from mqan_data.queries import Query, gold_query, read_query, write_query
from mqan_data.tasks import task_named

HEADER = ["Ship", "Year", "Year built", "Max speed", "Speed"]


def sql(sel: int, agg: int, *conds: tuple[int, int, object]) -> dict[str, Any]:
    """Make a query as the dataset writes it."""
    return {"sel": sel, "agg": agg, "conds": [list(condition) for condition in conds]}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (sql(0, 0), "SELECT Ship FROM table"),
        (sql(4, 1), "SELECT MAX Speed FROM table"),
        (sql(3, 0), "SELECT Max speed FROM table"),  # as a column, not as an aggregation
        (sql(0, 0, (2, 0, "1 and 2"), (1, 2, 3.5)), "SELECT Ship FROM table WHERE Year built = 1 and 2 AND Year < 3.5"),
        (sql(0, 3, (0, 3, "")), "SELECT COUNT Ship FROM table WHERE Ship OP"),
    ],
)
def test_queries_are_written_and_read(query: dict[str, Any], text: str) -> None:
    assert write_query(query, HEADER) == text
    for written in (text, text.lower(), f" {text} "):
        read = read_query(written, HEADER)
        assert read == (Query("", "max speed", ()) if query == sql(4, 1) else gold_query(query, HEADER))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "select ship",
        "select captain from table",
        "select median ship from table",
        "select ship from table where",
        "select ship from table where captain = x",
        "select ship from table where old and ship = x",
        "SELECT ship FROM table WHERE ship",
        "delete ship from table",
    ],
)
def test_what_is_no_query_is_none(text: str) -> None:
    assert read_query(text, HEADER) is None


def test_order_of_conditions_matters() -> None:
    one, other = sql(0, 0, (0, 0, "a"), (1, 0, "b")), sql(0, 0, (1, 0, "b"), (0, 0, "a"))
    assert read_query(write_query(one, HEADER), HEADER) != gold_query(other, HEADER)


def test_columns_outside_the_header_are_refused() -> None:
    with pytest.raises(IndexError):
        write_query(sql(9, 0), HEADER)


@given(
    sel=st.integers(0, 1),
    agg=st.integers(0, len(AGGREGATIONS) - 1),
    conds=st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, len(OPERATORS) - 1), st.text("abc 12.-", min_size=1).filter(str.strip)
        ),
        max_size=4,
    ),
)
def test_round_trip(sel: int, agg: int, conds: list[tuple[int, int, str]]) -> None:
    query = sql(sel, agg, *conds)
    assert read_query(write_query(query, HEADER), HEADER) == gold_query(query, HEADER)


@pytest.mark.data
def test_all_validation_queries_are_read_as_they_were_written(data_folder: Path) -> None:
    num_with_commas = 0
    for example in task_named("wikisql").read(data_folder / "wikisql", "validation"):
        assert example.reference is not None
        header = example.reference["header"]
        assert read_query(example.answers[0], header) == gold_query(example.reference["sql"], header)
        named = any(", " in name or not name.strip() for name in header)
        num_with_commas += named
        assert named or read_header(example.context) == [name.strip() for name in header]
    assert num_with_commas < 200
