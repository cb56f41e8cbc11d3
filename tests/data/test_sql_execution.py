"""Queries run on their tables as the published evaluator runs them."""

from collections import Counter
from pathlib import Path

import pytest

from mqan_core.example import Example
from mqan_core.forms.grammars import read_header
from mqan_data.metrics import score
from mqan_data.queries import Query, Table, execute, gold_query, read_query
from mqan_data.tasks import task_named

SHIPS = Table(
    ["Ship", "Year built", "Guns"],
    ["text", "real", "real"],
    [["Ark Royal", 1587, "38"], ["Vasa", "1,628", 64], ["Mary Rose", 1511, None], ["VASA", 1628.0, 64]],
)


@pytest.mark.parametrize(
    ("query", "result"),
    [
        (Query("", "ship", (("guns", ">", "60"),)), {"vasa": 2}),
        (Query("count", "ship", (("ship", "=", "vasa"),)), {2: 1}),
        (Query("min", "year built", ()), {1511: 1}),
        (Query("avg", "guns", (("ship", "=", "vasa"), ("year built", "=", "1628"))), {64: 1}),
        (Query("", "ship", (("year built", "=", "in 1587 a.d."),)), {"ark royal": 1}),
        (Query("", "ship", (("year built", "<", "1500"),)), {}),
        (Query("max", "guns", (("ship", "=", "x'; DROP TABLE t; --"),)), {None: 1}),
    ],
)
def test_a_query_gives_its_result(query: Query, result: dict[object, int]) -> None:
    assert execute(query, SHIPS) == Counter(result)


@pytest.mark.parametrize("condition", [("year built", ">", "early"), ("guns", "op", "3")])
def test_what_cannot_be_run_has_no_result(condition: tuple[str, str, str]) -> None:
    assert execute(Query("", "ship", (condition,)), SHIPS) is None


def test_another_query_with_the_same_result_is_right_by_execution_alone() -> None:
    reference = {"sql": {"sel": 0, "agg": 0, "conds": [[2, 1, 60]]}, "header": SHIPS.header, "table": SHIPS}
    golds = [
        Example("wikisql", str(i), "c", "q?", ("SELECT Ship FROM table WHERE Guns > 60",), None, reference)
        for i in range(4)
    ]
    predictions = [
        "select ship from table where guns > 60",
        "select ship from table where ship = Vasa",
        "select ship from table where guns > 30",
        "select nothing",
    ]
    scores = score("lfem", predictions, golds)
    assert (scores["lfem"], scores["execution"]) == (25.0, 50.0)


def test_a_table_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="text or real, found 'blob'"):
        execute(Query("", "a", ()), Table(["A"], ["blob"], [["x"]]))


@pytest.mark.data
def test_round_trip_of_all_validation_queries(data_folder: Path) -> None:
    num_with_commas = 0
    for example in task_named("wikisql").read(data_folder / "wikisql", "validation"):
        assert example.reference is not None
        header = example.reference["header"]
        assert read_query(example.answers[0], header) == gold_query(example.reference["sql"], header)
        named = any(", " in name or not name.strip() for name in header)
        num_with_commas += named
        assert named or read_header(example.context) == [name.strip() for name in header]
    assert num_with_commas < 200
