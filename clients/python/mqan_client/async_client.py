"""The client for asyncio. Its methods take, return and raise what those of ``Client`` do."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from mqan_client.documents import read, read_answers, read_model
from mqan_client.errors import ClientError
from mqan_client.questions import (
    Asked,
    AskedQuestion,
    AskedRecord,
    Schema,
    in_tuples,
    question_document,
    question_documents,
    record_document,
)
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
        """Answer a question about a context, as ``Client.answer`` does."""
        request = {"context": context, **question_document(question, asked)}
        return read(Answer, await self._transport.call("Answer", request, self._time(timeout_s)))

    def answer_stream(
        self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> AsyncGenerator[StreamedWord | Answer, None]:
        """Answer a question about a context word by word, as ``Client.answer_stream`` does."""
        request = {"context": context, **question_document(question, asked)}
        return self._transport.answer_stream(request, self._time(timeout_s))

    async def answer_questions(
        self, context: str, questions: Iterable[str | AskedQuestion], *, timeout_s: float | None = None
    ) -> list[Answer | ClientError]:
        """Answer several questions about one context in one call, as ``Client.answer_questions`` does."""
        request = {"context": context, "questions": question_documents(questions)}
        return read_answers(await self._transport.call("AnswerMany", request, self._time(timeout_s)))

    async def answer_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
        timeout_s: float | None = None,
        **asked: Unpack[Asked],
    ) -> list[Answer | ClientError]:
        """Answer many questions, each about its own context, as ``Client.answer_many`` does."""
        given = in_tuples(asked)
        return await do_many(
            lambda pair: self.answer(*pair, timeout_s=timeout_s, **given), pairs, concurrency, progress
        )

    async def fill_record(
        self, context: str, schema: Schema, *, timeout_s: float | None = None, **asked: Unpack[AskedRecord]
    ) -> Record:
        """Fill a record of named fields from a text, as ``Client.fill_record`` does."""
        request = record_document(context, schema, **asked)
        return read(Record, await self._transport.call("FillRecord", request, self._time(timeout_s)))

    async def fill_records(
        self,
        texts: Iterable[str],
        schema: Schema,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
        timeout_s: float | None = None,
        **asked: Unpack[AskedRecord],
    ) -> list[Record | ClientError]:
        """Fill a record from each of many texts, as ``Client.fill_records`` does."""
        checked = record_document("", schema, **asked)["schema"]
        return await do_many(
            lambda text: self.fill_record(text, checked, timeout_s=timeout_s), texts, concurrency, progress
        )

    async def get_model(self, *, timeout_s: float | None = None) -> Model:
        """Describe the served model and its limits, as ``Client.get_model`` does."""
        return read_model(await self._transport.call("GetModel", {}, self._time(timeout_s)))

    def _time(self, timeout_s: float | None) -> float:
        return self._timeout_s if timeout_s is None else timeout_s

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


async def do_many(
    do: Callable[[ItemT], Awaitable[T]], items: Iterable[ItemT], concurrency: int, progress: Progress | None
) -> list[T | ClientError]:
    """Do something for all items, several at a time, in their order; an error takes the place of a result."""
    if concurrency < 1:
        raise ValueError(f"concurrency is {concurrency}; it must be at least 1")
    given = list(items)  # before any is asked: a fault of the caller's own iterable asks nothing
    waiting = iter(enumerate(given))
    results: list[Any] = [None] * len(given)

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
            for _ in range(min(concurrency, len(given))):
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
