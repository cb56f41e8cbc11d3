"""A column of pandas is answered row by row, by the default model."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pydantic
import pytest

from mqan_client import Client, InvalidRequestError, Record, answer_column, record_column

MAILS = pd.Series(
    ["I am Ada Byron. My parcel never came.", None, "The tower is 330 m tall.", " ", "I was charged twice."],
    index=["a", "b", "c", "d", "a"],
    name="mail",
)


@pytest.fixture(scope="module")
def client(default_server: Any) -> Iterator[Client]:
    with Client(f"grpc://{default_server.rpc}") as opened:
        yield opened


def test_a_column_is_answered_in_its_order(client: Client) -> None:
    done: list[int] = []
    table = answer_column(client, MAILS, "How tall is the tower?", progress=done.append)
    assert list(table.index) == list(MAILS.index)
    assert len(done) == 4
    tower = table.iloc[2]
    assert (tower["answer"], tower["answered"]) == ("330 m tall", True)
    assert MAILS.iloc[2][tower["start"] : tower["end"]] == "330 m tall"
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


def test_several_questions_have_columns_of_their_own(client: Client) -> None:
    asked: dict[str, Any] = {"height": "How tall is it?", "paid": {"question": "Was a payment made?", "yes_no": True}}
    table = answer_column(client, MAILS.iloc[2:4], asked)
    parts = ("answered", "confidence", "start", "end", "error")
    assert list(table) == [name for one in asked for name in (one, *(f"{one}_{part}" for part in parts))]
    assert table.iloc[0][["height", "height_start", "height_end"]].tolist() == ["330 m", 13, 18]
    assert "white space" in table.iloc[1]["height_error"]
    assert "white space" in table.iloc[1]["paid_error"]


class Ticket(pydantic.BaseModel):
    """A mail's sender and whether it has to do with money."""

    name: str
    about_money: bool = pydantic.Field(description="Is it about money?")


def test_a_record_of_each_text_is_a_row(client: Client) -> None:
    done: list[int] = []
    table = record_column(client, MAILS, Ticket, progress=done.append)
    parts = ("probability", "start", "end", "reason")
    columns = [name for one in ("name", "about_money") for name in (one, *(f"{one}_{part}" for part in parts))]
    assert list(table) == [*columns, "error"]
    assert len(done) == 4
    assert list(table.index) == list(MAILS.index)
    first = table.iloc[0]
    assert MAILS.iloc[0][first["name_start"] : first["name_end"]] == first["name"]
    assert table.iloc[1].isna().all()
    assert "white space" in table.iloc[3]["error"]
    records = client.fill_records(MAILS.iloc[[0, 3]], Ticket, concurrency=2)
    assert isinstance(records[0], Record)
    assert records[0].values["name"] == first["name"]
    assert isinstance(records[1], InvalidRequestError)
    unsure = client.fill_record(MAILS.iloc[0], Ticket, min_probability=1.0)
    assert unsure.values == {}
    assert unsure.fields["name"].reason == "Unsure: its probability is below 1."
    with pytest.raises(InvalidRequestError, match="columns of the table would be error"):
        record_column(client, MAILS, {"properties": {"error": {"type": "string"}}})


def test_an_empty_column_is_answered_by_an_empty_table(client: Client) -> None:
    assert answer_column(client, MAILS.iloc[[1]], "Who?").isna().all(axis=None)
    assert len(answer_column(client, MAILS.iloc[:0], "Who?")) == 0


@pytest.mark.parametrize(("column", "said"), [(["a"], "not list"), (pd.Series(["a", 5], index=["x", "y"]), "Row 'y'")])
def test_what_is_no_column_of_texts_is_refused(client: Client, column: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said) as refused:
        answer_column(client, column, "Who?")
    assert refused.value.code == "wrong_type"
