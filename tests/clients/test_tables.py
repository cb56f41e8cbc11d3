"""A column of pandas is answered row by row, by the default model."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pandas as pd
import pytest

from mqan_client import Client, InvalidRequestError, answer_column
from mqan_runtime.interface import open_engine
from mqan_serving.default_bundle import default_bundle

MAILS = pd.Series(
    ["I am Ada Byron. My parcel never came.", None, "The tower is 330 m tall.", " ", "I was charged twice."],
    index=["a", "b", "c", "d", "a"],
    name="mail",
)


@pytest.fixture(scope="module")
def client(serve_local: Callable[..., AbstractContextManager[tuple[int, int]]]) -> Iterator[Client]:
    engine = open_engine(default_bundle(), provider="cpu")
    with serve_local(engine) as (_, grpc_port), Client(f"grpc://127.0.0.1:{grpc_port}") as opened:
        yield opened


def test_a_column_is_answered_in_its_order(client: Client) -> None:
    done: list[int] = []
    table = answer_column(client, MAILS, "How tall is the tower?", progress=done.append)
    assert list(table.index) == list(MAILS.index)
    assert len(done) == 4
    tower = table.iloc[2]
    assert (tower["answer"], tower["answered"]) == ("330 m", True)
    assert MAILS.iloc[2][tower["start"] : tower["end"]] == "330 m"
    assert table.iloc[1].isna().all()  # not asked
    assert "white space" in table.iloc[3]["error"]
    assert table["error"].isna().tolist() == [True, True, True, False, True]
    refused = table[table["answered"].eq(False)]
    assert len(refused)
    assert refused["answer"].isna().all()


def test_what_else_is_asked_for_goes_with_each(client: Client) -> None:
    teams = ["billing", "shipping"]
    table = answer_column(client, MAILS.iloc[[0, 4]], "Which team should take this?", choices=teams)
    assert table["answer"].tolist() == ["shipping", "billing"]
    assert table["confidence"].between(0, 1).all()


def test_an_empty_column_is_answered_by_an_empty_table(client: Client) -> None:
    assert answer_column(client, MAILS.iloc[[1]], "Who?").isna().all(axis=None)
    assert len(answer_column(client, MAILS.iloc[:0], "Who?")) == 0


@pytest.mark.parametrize(("column", "said"), [(["a"], "not list"), (pd.Series(["a", 5], index=["x", "y"]), "Row 'y'")])
def test_what_is_no_column_of_texts_is_refused(client: Client, column: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said) as refused:
        answer_column(client, column, "Who?")
    assert refused.value.code == "wrong_type"
