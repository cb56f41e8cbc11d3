"""The client that waits for answers, over the transport that the URL names.

| URL | transport |
|---|---|
| ``grpc://127.0.0.1:9000`` | gRPC |
| ``grpcs://answers.example`` | gRPC over TLS |
| ``http://127.0.0.1:8000`` | REST |
| ``https://answers.example`` | REST over TLS |

It is the client of asyncio, whose event loop runs on a thread that all clients of a process share.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterable
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from mqan_client.async_client import DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT_S, AsyncClient, Progress, do_many
from mqan_client.errors import ClientError
from mqan_client.questions import Asked, AskedQuestion, AskedRecord, Schema, in_tuples, record_document
from mqan_client.results import Answer, Model, Record, StreamedWord
from mqan_client.transport import Retries

T = TypeVar("T")
ItemT = TypeVar("ItemT")


class Client:
    """Asks a server and waits for the answer. May be shared between threads.

    Args:
        url: the server; see the table above. Without one that of MQAN_SERVER, else ``grpc://127.0.0.1:9000``.
        timeout_s: longest duration of a call, retries included.
        retries: when to ask again while the server is full or cannot be reached.
        api_key: names the caller, where the server asks for that; without one that of MQAN_API_KEY. Without TLS whoever
            is between can read it.

    Raises:
        ValueError: the URL names no transport or no host, or the key has characters that no key has.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: Retries | None = None,
        api_key: str | None = None,
    ) -> None:
        self._asking = AsyncClient(url, timeout_s=timeout_s, retries=retries, api_key=api_key)

    def answer(self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]) -> Answer:
        """Answer a question about a context.

        Args:
            timeout_s: longest duration of this call; the client's when None.
            asked: what else is asked for, as ``Asked`` says.

        Raises:
            ClientError: there is no answer; the class says whose fault it is.
        """
        return _wait_for(self._asking.answer(context, question, timeout_s=timeout_s, **asked))

    def answer_stream(
        self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> Generator[StreamedWord | Answer, None, None]:
        """Answer a question about a context word by word.

        Yields each word as soon as it is decided, then the whole answer, whose tokens these words are; no word is taken
        back. Whoever closes the iterator cancels the call. Answers that are decided whole come with all their words
        at once: choices, ``contiguous``, ``all``, a least probability.

        >>> for part in client.answer_stream("The tower is 330 m tall.", "How tall is it?"):
        ...     print(part.delta if isinstance(part, StreamedWord) else f" ({part.probability:.2f})", end="")

        Its time lasts until the last word is taken. All else is as of ``answer``, but that after the first word nothing
        is asked again.
        """
        return _wait_for_each(self._asking.answer_stream(context, question, timeout_s=timeout_s, **asked))

    def answer_questions(
        self, context: str, questions: Iterable[str | AskedQuestion], *, timeout_s: float | None = None
    ) -> list[Answer | ClientError]:
        """Answer several questions about one context in one call.

        The server answers them side by side. A question that cannot be answered does not stop the others: its error is
        the result. Each of up to 256 is a string, or a mapping with ``question`` and what else ``answer`` takes.

        >>> client.answer_questions(invoice, ["What is the total?", {"question": "Is it paid?", "yes_no": True}])

        Raises:
            InvalidRequestError: there are no questions or too many, or one cannot be sent.
            ClientError: there is no response; the class says whose fault it is.
        """
        return _wait_for(self._asking.answer_questions(context, questions, timeout_s=timeout_s))

    def answer_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
        timeout_s: float | None = None,
        **asked: Unpack[Asked],
    ) -> list[Answer | ClientError]:
        """Answer many questions, each about its own context, a pair of context and question each.

        Up to ``concurrency`` are on their way at a time. One that fails does not end the call: its error is the result.
        ``progress`` is called with 1 for each that is done, as ``tqdm(total=len(pairs)).update`` is; all else is as of
        ``answer``, for each question.

        Raises:
            ValueError: the concurrency is below 1.
            InvalidRequestError: what is asked for is an empty list, or a string where a list belongs.
        """
        given = in_tuples(asked)

        async def ask(asking: AsyncClient, pair: tuple[str, str]) -> Answer:
            return await asking.answer(*pair, timeout_s=timeout_s, **given)

        return self.do_many(ask, pairs, concurrency=concurrency, progress=progress)

    def fill_record(
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
        return _wait_for(self._asking.fill_record(context, schema, timeout_s=timeout_s, **asked))

    def fill_records(
        self,
        texts: Iterable[str],
        schema: Schema,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
        timeout_s: float | None = None,
        **asked: Unpack[AskedRecord],
    ) -> list[Record | ClientError]:
        """Fill a record from each of many texts, several at a time; an error takes the place of a record.

        >>> client.fill_records(mails, Ticket, progress=tqdm(total=len(mails)).update)

        All else is as of ``fill_record`` and ``answer_many``.
        """
        checked = record_document("", schema, **asked)["schema"]

        async def fill(asking: AsyncClient, text: str) -> Record:
            return await asking.fill_record(text, checked, timeout_s=timeout_s)

        return self.do_many(fill, texts, concurrency=concurrency, progress=progress)

    def do_many(
        self,
        do: Callable[[AsyncClient, ItemT], Awaitable[T]],
        items: Iterable[ItemT],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
    ) -> list[T | ClientError]:
        """Do what a client of asyncio can for many items, several at a time; an error takes the place of a result.

        Progress is told on the caller's thread.
        """
        done: SimpleQueue[int] = SimpleQueue()
        asking, given = self._asking, list(items)  # before any is asked: a fault of the caller's own asks nothing
        work = do_many(lambda item: do(asking, item), given, concurrency, done.put)
        doing = asyncio.run_coroutine_threadsafe(work, _loop())
        doing.add_done_callback(lambda _: done.put(0))
        try:
            while done.get():
                if progress is not None:
                    progress(1)
            return doing.result()
        finally:
            doing.cancel()  # after an error nobody waits for what is on its way

    def get_model(self, *, timeout_s: float | None = None) -> Model:
        """Describe the served model and its limits."""
        return _wait_for(self._asking.get_model(timeout_s=timeout_s))

    def close(self) -> None:
        _wait_for(self._asking.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


_lock = Lock()


@cache
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="mqan-client", daemon=True).start()
    return loop


os.register_at_fork(after_in_child=_started.cache_clear)  # a forked process has no threads but its own


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        return _started()


def _wait_for(work: Coroutine[Any, Any, T]) -> T:
    doing = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return doing.result()
    finally:
        doing.cancel()  # nobody waits for it after Ctrl-C


def _wait_for_each(parts: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    async def advance() -> T | None:
        return await anext(parts, None)

    try:
        while (part := _wait_for(advance())) is not None:
            yield part
    finally:
        asyncio.run_coroutine_threadsafe(parts.aclose(), _loop())  # without waiting: this may run on any thread
