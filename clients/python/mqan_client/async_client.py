"""The client for asyncio. ``Client`` has the same methods."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from mqan_client import documents as asking
from mqan_client.documents import Asked, AskedQuestion, AskedRecord, Schema, read, read_answers, read_model
from mqan_client.errors import ClientError
from mqan_client.results import Answer, Model, Record, StreamedWord
from mqan_client.transport import Retries, Transport, authorization, split_url

T = TypeVar("T")
ItemT = TypeVar("ItemT")

DEFAULT_URL = "grpc://127.0.0.1:9000"
DEFAULT_TIMEOUT_S = 30.0
DEFAULT_CONCURRENCY = 16

Progress = Callable[[int], object]


class AsyncClient:
    """The client for asyncio. Belongs to the event loop it is first used in. Arguments are those of ``Client``."""

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: Retries | None = None,
        api_key: str | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        url = (os.environ.get("MQAN_SERVER") or DEFAULT_URL) if url is None else url
        key = os.environ.get("MQAN_API_KEY") or None if api_key is None else api_key
        self._transport = _open(url, retries or Retries(), authorization(key))

    async def answer(
        self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> Answer:
        """Answer a question about a context, within ``timeout_s`` or the client's own time.

        Raises:
            ClientError: there is no answer; the class says whose fault it is.
        """
        request = {"context": context, **asking.question_document(question, asked)}
        return read(Answer, await self._transport.call("Answer", request, self._time(timeout_s)))

    def answer_stream(
        self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> AsyncGenerator[StreamedWord | Answer, None]:
        """Answer a question about a context word by word.

        Yields each word as soon as it is decided, then the whole answer, whose tokens these words are; no word is taken
        back. Whoever closes the iterator cancels the call. Answers that are decided whole come with all their words
        at once: choices, ``contiguous``, ``all``, a least probability.

        >>> async for part in client.answer_stream("The tower is 330 m tall.", "How tall is it?"):
        ...     print(part.delta if isinstance(part, StreamedWord) else f" ({part.probability:.2f})", end="")

        Its time lasts until the last word is taken. All else is as of ``answer``, but that after the first word nothing
        is asked again.
        """
        request = {"context": context, **asking.question_document(question, asked)}
        return self._transport.answer_stream(request, self._time(timeout_s))

    async def answer_questions(
        self, context: str, questions: Iterable[str | AskedQuestion], *, timeout_s: float | None = None
    ) -> list[Answer | ClientError]:
        """Answer several questions about one context in one call.

        The server answers them side by side. A question that cannot be answered does not stop the others: its error is
        the result. Each of up to 256 is a string, or a mapping with ``question`` and what else ``answer`` takes.

        >>> await client.answer_questions(invoice, ["What is the total?", {"question": "Is it paid?", "yes_no": True}])

        Raises:
            InvalidRequestError: there are no questions or too many, or one cannot be sent.
            ClientError: there is no response; the class says whose fault it is.
        """
        request = {"context": context, "questions": asking.question_documents(questions)}
        return read_answers(await self._transport.call("AnswerMany", request, self._time(timeout_s)))

    def answer_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
        timeout_s: float | None = None,
        **asked: Unpack[Asked],
    ) -> Coroutine[Any, Any, list[Answer | ClientError]]:
        """Answer many questions, each about its own context, a pair of context and question each.

        Up to ``concurrency`` are on their way at a time. One that fails does not end the call: its error is the result.
        ``progress`` is called with 1 for each that is done, as ``tqdm(total=len(pairs)).update`` is; all else is as of
        ``answer``, for each question.

        Raises:
            ValueError: the concurrency is below 1.
            InvalidRequestError: what is asked for is an empty list, or a string where a list belongs.
        """
        given = asking.in_tuples(asked)

        async def ask(client: Self, pair: tuple[str, str]) -> Answer:
            return await client.answer(*pair, timeout_s=timeout_s, **given)

        return self.do_many(ask, pairs, concurrency=concurrency, progress=progress)

    async def fill_record(
        self, context: str, schema: Schema, *, timeout_s: float | None = None, **asked: Unpack[AskedRecord]
    ) -> Record:
        """Fill a record of named fields from a text, each value with its place in the text.

        Args:
            schema: a JSON Schema of an object, or a class that has ``model_json_schema()``, such as a model of
                pydantic. ``ask`` in a field is its question; without it the question is made from ``description``, or
                from the name and the type.
            asked: what else is asked for, as ``AskedRecord`` says.

        Raises:
            InvalidRequestError: the schema is not supported; the message names the field.
            ClientError: there is no record; the class says whose fault it is.
        """
        request = asking.record_document(context, schema, **asked)
        return read(Record, await self._transport.call("FillRecord", request, self._time(timeout_s)))

    def fill_records(
        self,
        texts: Iterable[str],
        schema: Schema,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
        timeout_s: float | None = None,
        **asked: Unpack[AskedRecord],
    ) -> Coroutine[Any, Any, list[Record | ClientError]]:
        """Fill a record from each of many texts, several at a time; an error takes the place of a record.

        >>> client.fill_records(mails, Ticket, progress=tqdm(total=len(mails)).update)

        All else is as of ``fill_record`` and ``answer_many``.
        """
        checked = asking.record_document("", schema, **asked)["schema"]

        async def fill(client: Self, text: str) -> Record:
            return await client.fill_record(text, checked, timeout_s=timeout_s)

        return self.do_many(fill, texts, concurrency=concurrency, progress=progress)

    def do_many(
        self,
        do: Callable[[Self, ItemT], Awaitable[T]],
        items: Iterable[ItemT],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
    ) -> Coroutine[Any, Any, list[T | ClientError]]:
        """Do what this client can for many items, several at a time; an error takes the place of a result.

        >>> await client.do_many(lambda one, text: one.answer_questions(text, questions), texts)
        """
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}; it must be at least 1")
        given = list(items)  # before any is asked: a fault of the caller's own iterable asks nothing
        return _do_all(partial(do, self), given, concurrency, progress)

    async def get_model(self, *, timeout_s: float | None = None) -> Model:
        """Describe the served model and its limits."""
        return read_model(await self._transport.call("GetModel", {}, self._time(timeout_s)))

    def _time(self, timeout_s: float | None) -> float:
        return self._timeout_s if timeout_s is None else timeout_s

    async def close(self) -> None:
        """Close the connection; ``with`` does so at its end."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


async def _do_all(
    do: Callable[[ItemT], Awaitable[T]], items: Sequence[ItemT], concurrency: int, progress: Progress | None
) -> list[T | ClientError]:
    waiting = iter(enumerate(items))
    results: list[Any] = [None] * len(items)

    async def work() -> None:
        for i, item in waiting:
            try:
                results[i] = await do(item)
            except ClientError as error:
                results[i] = error
            if progress is not None:
                progress(1)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(items))):
                group.create_task(work())
    except BaseExceptionGroup as group_error:
        raise group_error.exceptions[0] from None
    return results


def _open(url: str, retries: Retries, headers: dict[str, str]) -> Transport:
    scheme, target = split_url(url)
    if scheme in ("http", "https"):
        from mqan_client.rest import RestTransport  # each transport loads its own library

        return RestTransport(url, retries, headers)
    from mqan_client.rpc import RpcTransport

    return RpcTransport(target, retries, headers, tls=scheme == "grpcs")
