"""Questions about each text of a column of pandas, which is needed for nothing else here."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from mqan_client import documents as asking
from mqan_client.async_client import DEFAULT_CONCURRENCY, AsyncClient, Progress
from mqan_client.client import Client
from mqan_client.documents import Asked, AskedQuestion, AskedRecord, Schema
from mqan_client.errors import ClientError, InvalidRequestError
from mqan_client.results import Answer, AnswerSpan, RecordField, Source

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
_TYPES: Final = {"start": "Int64", "end": "Int64", "answered": "boolean"}


def answer_column(
    client: Client,
    column: "pd.Series[Any]",
    question: str | Mapping[str, str | AskedQuestion],
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    progress: Progress | None = None,
    timeout_s: float | None = None,
    **asked: Unpack[Asked],
) -> "pd.DataFrame":
    """Ask one question, or several by name, about each text of a column.

    >>> table.join(answer_column(client, table["mail"], "Which team?", choices=["billing", "shipping"]))
    >>> answer_column(client, table["mail"], {"thing": "What is broken?", "sad": {"question": "Sad?", "yes_no": True}})

    Where a text is missing, nothing is asked; several questions take one call for each text. All else is as of
    ``Client.answer_many``.

    Returns:
        A table with the column's index: ``answer``, the text, missing where there is none; ``answered``;
        ``confidence``; ``start`` and ``end`` of the first quotation from the text, in code points; ``error``, the
        message where a question failed. Of several questions the answer has the name of its question, which the names
        of the other columns begin with: ``sad``, ``sad_answered``.

    Raises:
        InvalidRequestError: it is no column of pandas, a row of it is no text, or a question cannot be asked.
        ValueError: the concurrency is below 1.
    """
    named = {"": question} if isinstance(question, str) else dict(question)
    for_all: dict[str, Any] = {**asking.in_tuples(asked)}
    given: Any = [for_all | ({"question": one} if isinstance(one, str) else {**one}) for one in named.values()]
    asking.question_documents(given)  # what cannot be asked is told before any text is

    async def ask(asking: AsyncClient, text: str) -> list[Answer | ClientError]:
        return await asking.answer_questions(text, given, timeout_s=timeout_s)

    rows: list[Row] = []
    for of_text in client.do_many(ask, _texts(column), concurrency=concurrency, progress=progress):
        answers = [of_text] * len(named) if isinstance(of_text, ClientError) else of_text
        rows.append({})
        for name, answer in zip(named, answers, strict=True):
            rows[-1] |= {_column(name, "answer", part): value for part, value in _of_answer(answer).items()}
    return _table(column, rows, [_column(name, "answer", part) for name in named for part in _of_answer(None)])


def record_column(
    client: Client,
    column: "pd.Series[Any]",
    schema: Schema,
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    progress: Progress | None = None,
    timeout_s: float | None = None,
    **asked: Unpack[AskedRecord],
) -> "pd.DataFrame":
    """Fill a record from each text of a column.

    >>> table.join(record_column(client, table["mail"], Ticket))

    The schema is as of ``Client.fill_record``, all else as of ``answer_column``.

    Returns:
        A table with the column's index. Each field has the columns ``NAME``, its value; ``NAME_probability``;
        ``NAME_start`` and ``NAME_end`` of the first quotation; ``NAME_reason``, why there is no value. ``error`` has
        the message where a text failed. Two columns of one name are refused.
    """
    whole = asking.record_document("", schema, **asked)["schema"]
    names = whole.get("properties", {})
    columns = [_column(name, "value", part) for name in names for part in _of_field(None)] + ["error"]
    if twice := [name for name in columns if columns.count(name) > 1]:
        message = f"Two columns of the table would be {twice[0]}: rename a field of the schema."
        raise InvalidRequestError(message, code="invalid_input")
    rows: list[Row] = []
    texts = _texts(column)
    for found in client.fill_records(texts, whole, concurrency=concurrency, progress=progress, timeout_s=timeout_s):
        rows.append({"error": str(found) if isinstance(found, ClientError) else None})
        for name, field in () if isinstance(found, ClientError) else found.fields.items():
            rows[-1] |= {_column(name, "value", part): value for part, value in _of_field(field).items()}
    return _table(column, rows, columns)


def _column(name: str, first: str, part: str) -> str:
    """Return the name of a column: of the first part of something named its name, which the others begin with."""
    return part if not name else name if part == first else f"{name}_{part}"


def _texts(column: "pd.Series[Any]") -> list[str]:
    import pandas as pd

    if not isinstance(column, pd.Series):
        what = f"A column of pandas is needed, not {type(column).__name__}: table['mail']."
        raise InvalidRequestError(what, code="wrong_type")
    texts = column.dropna()
    for row, text in texts.items():
        if not isinstance(text, str):
            what = f"Row {row!r} of the column is {type(text).__name__}, not a text; column.astype(str) makes texts."
            raise InvalidRequestError(what, code="wrong_type")
    return list(texts)


def _table(column: "pd.Series[Any]", rows: list[Row], columns: list[str]) -> "pd.DataFrame":
    import pandas as pd

    told = pd.DataFrame(rows, columns=columns, dtype=object).infer_objects()
    places = column.notna().cumsum().where(column.notna()) - 1  # of each row among those that were asked
    table = told.reindex(places.to_numpy()).set_axis(column.index)
    types = {name: _TYPES.get(name.rpartition("_")[2]) for name in columns}
    return table.astype({name: kind for name, kind in types.items() if kind is not None})


def _of_answer(found: Answer | ClientError | None) -> Row:
    row: Row = dict.fromkeys(("answer", "answered", "confidence", "start", "end", "error"))
    if isinstance(found, ClientError):
        row["error"] = str(found)
    elif found is not None:
        row |= {"answer": found.text if found.answered else None, "answered": found.answered}
        row |= {"confidence": found.confidence, **_place([s for s in found.spans if s.source is Source.CONTEXT])}
    return row


def _of_field(found: RecordField | None) -> Row:
    row: Row = dict.fromkeys(("value", "probability", "start", "end", "reason"))
    if found is not None:
        row |= {"value": found.value, "probability": found.probability, "reason": found.reason, **_place(found.spans)}
    return row


def _place(spans: Sequence[AnswerSpan]) -> Row:
    return {"start": spans[0].start, "end": spans[0].end} if spans else {}
