"""WikiSQL with columns shuffled and added, and with conditions as they are asked for."""

import json
from pathlib import Path

import pytest

from mqan_core.example import Example
from mqan_training.data.metrics import score
from mqan_training.data.readers.registry import task_named
from mqan_training.data.readers.wikisql_shuffled import in_order_of
from mqan_training.data.sql import fold, gold_query, read_query

HEADER = ["Ship", "Year built", "Port"]
OTHERS = [f"Other {i}" for i in range(20)] + ["port", "SHIP"]
SQL = {"sel": 1, "agg": 0, "conds": [[2, 0, "Old Kiel"], [0, 0, "Vasa"]]}
QUESTION = "When was Vasa of Old Kiel built?"
TASK = task_named("wikisql_shuffled")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tables = [{"id": "t", "header": HEADER}, {"id": "wide", "header": OTHERS}]
    rows = [{"table_id": "t", "question": QUESTION, "sql": SQL}] * 30
    rows.append({"table_id": "wide", "question": "Which?", "sql": {"sel": 3, "agg": 3, "conds": []}})
    (tmp_path / "train.tables.jsonl").write_text("".join(json.dumps(table) + "\n" for table in tables))
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def examples(folder: Path) -> list[Example]:
    return list(TASK.read(folder, "train"))


def header_of(example: Example) -> list[str]:
    assert example.reference is not None
    header: list[str] = example.reference["header"]
    return header


def test_columns_are_shuffled_and_others_stand_between_them(examples: list[Example]) -> None:
    headers = [header_of(example) for example in examples[:-1]]
    assert {len(header) for header in headers} == {5, 6, 7, 8}
    assert {header.index("Year built") for header in headers} >= {0, 1, 2, 3, 4}
    for example, header in zip(examples, headers, strict=False):
        assert set(HEADER) < set(header) < {*HEADER, *OTHERS}
        assert len({fold(column) for column in header}) == len(header), "none twice, in any case"
        assert example.context.startswith(f"The table has columns {', '.join(header)} and key words MAX, ")
        assert example.context.endswith(f"-- {QUESTION}")


def test_a_wide_table_gets_no_more_columns(examples: list[Example]) -> None:
    assert sorted(header_of(examples[-1])) == sorted(OTHERS)
    assert header_of(examples[-1]) != OTHERS


def test_the_query_is_the_same_with_its_conditions_as_asked(examples: list[Example]) -> None:
    assert {example.answers for example in examples[:-1]} == {
        ("SELECT Year built FROM table WHERE Ship = Vasa AND Port = Old Kiel",)
    }
    assert examples[-1].answers == ("SELECT COUNT Other 3 FROM table",)
    for example in examples:
        assert example.reference is not None
        header = header_of(example)
        assert read_query(example.answers[0], header) == gold_query(example.reference["sql"], header)
    assert score("lfem", [example.answers[0] for example in examples], examples)["lfem"] == 100


def test_an_example_is_always_the_same(folder: Path, examples: list[Example]) -> None:
    assert list(TASK.read(folder, "train")) == examples
    assert len({example.id for example in examples}) == len(examples)
    assert {example.task for example in examples} == {"wikisql_shuffled"}


def test_there_is_but_a_training_split(folder: Path) -> None:
    assert TASK.splits == ("train",)
    with pytest.raises(ValueError, match="wikisql_shuffled has no split 'validation'"):
        list(TASK.read(folder, "validation"))


@pytest.mark.parametrize(
    ("asked", "values", "expected"),
    [
        ("Who won in 1999 at Rome?", ["Rome", 1999], [1999, "Rome"]),
        ("How many of 12 in round 2?", ["2", "12"], ["12", "2"]),  # not the 2 of 12
        ("Which  ROME one was 5.1%?", ["5.1%", "rome one"], ["rome one", "5.1%"]),
        ("Who was in Rome?", ["Rome", "nowhere", "never"], ["nowhere", "never", "Rome"]),
    ],
)
def test_conditions_stand_as_their_values_are_named(asked: str, values: list[object], expected: list[object]) -> None:
    conditions = [[i, 0, value] for i, value in enumerate(values)]
    assert [value for _, _, value in in_order_of(asked, conditions)] == expected


@pytest.mark.data
def test_most_real_queries_have_their_conditions_as_asked(data_folder: Path) -> None:
    """In the official validation split four of five; that is what is restored in training."""
    as_asked = several = 0
    for example in task_named("wikisql").read(data_folder / "wikisql", "validation"):
        assert example.reference is not None
        conditions = example.reference["sql"]["conds"]
        several += len(conditions) > 1
        as_asked += (
            len(conditions) > 1 and in_order_of(example.context.split("CONDOPS-- ")[1], conditions) == conditions
        )
    assert several > 2000
    assert as_asked / several > 0.75
