"""One question about each text of a column of pandas, which is needed for nothing else here."""

from typing import TYPE_CHECKING, Any, Final, Unpack

from mqan_client.client import Client
from mqan_client.errors import ClientError, InvalidRequestError
from mqan_client.many import DEFAULT_CONCURRENCY, Progress
from mqan_client.results import Answer, Source
from mqan_client.transport import Asked

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS: Final = ("answer", "answered", "confidence", "start", "end", "error")


def answer_column(
    client: Client,
    column: "pd.Series[Any]",
    question: str,
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    progress: Progress | None = None,
    timeout_s: float | None = None,
    **asked: Unpack[Asked],
) -> "pd.DataFrame":
    """Ask one question about each text of a column.

    >>> table.join(answer_column(client, table["mail"], "Which team?", choices=["billing", "shipping"]))

    Args:
        client: of the server.
        column: texts; where one is missing, nothing is asked.
        question: the question, in natural language.
        concurrency: most questions on their way at a time.
        progress: called with 1 for each one that is done, as ``tqdm(total=column.count()).update`` is.
        timeout_s: longest duration of each question; the client's when None.
        asked: what else is asked for with each, as of ``Client.answer``.

    Returns:
        A table with the column's index: ``answer``, the text, missing where there is none; ``answered``;
        ``confidence``; ``start`` and ``end`` of the first quotation from the text, in code points; ``error``, the
        message where a question failed.

    Raises:
        InvalidRequestError: it is no column of pandas, or a row of it is no text.
        ValueError: the concurrency is below 1.
    """
    import pandas as pd

    if not isinstance(column, pd.Series):
        what = f"answer_column takes a column of pandas, not {type(column).__name__}: table['mail']."
        raise InvalidRequestError(what, code="wrong_type")
    texts = column.dropna()
    for row, text in texts.items():
        if not isinstance(text, str):
            what = f"Row {row!r} of the column is {type(text).__name__}, not a text; column.astype(str) makes texts."
            raise InvalidRequestError(what, code="wrong_type")
    pairs = [(text, question) for text in texts]
    found = client.answer_many(pairs, concurrency=concurrency, progress=progress, timeout_s=timeout_s, **asked)
    told = pd.DataFrame([_row(one) for one in found], columns=list(_COLUMNS))
    places = column.notna().cumsum().where(column.notna()) - 1  # of each row among those that were asked
    table = told.reindex(places.to_numpy()).set_axis(column.index)
    return table.astype({"start": "Int64", "end": "Int64", "answered": "boolean"})


def _row(found: Answer | ClientError) -> tuple[Any, ...]:
    if isinstance(found, ClientError):
        return None, None, None, None, None, str(found)
    span = next((span for span in found.spans if span.source is Source.CONTEXT), None)
    place = (None, None) if span is None else (span.start, span.end)
    return (found.text if found.answered else None), found.answered, found.confidence, *place, None
