"""The client for asyncio. Its methods take, return and raise what those of ``Client`` do."""

from collections.abc import AsyncGenerator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from mqan_client.client import DEFAULT_TIMEOUT_S, DEFAULT_URL, split_url
from mqan_client.errors import ClientError
from mqan_client.many import DEFAULT_CONCURRENCY, Progress, ask_many_async
from mqan_client.records import Record, Schema, schema_of
from mqan_client.results import Answer, Model, StreamedWord
from mqan_client.transport import (
    Asked,
    AskedQuestion,
    Call,
    Retries,
    T,
    authorization,
    in_tuples,
    question_of,
    questions_of,
)

if TYPE_CHECKING:
    from mqan_client.rest import AsyncRestTransport
    from mqan_client.rpc import AsyncRpcTransport


class AsyncClient:
    """Asks a server from asyncio. Belongs to the event loop it is first used in.

    Args:
        url: the server; see the table of ``mqan_client.client``.
        timeout_s: longest duration of a call, retries included.
        retries: when to ask again while the server is full or cannot be reached.
        api_key: names the caller, where the server asks for that. Without TLS whoever is between can read it.

    Raises:
        ValueError: the URL names no transport or no host, or the key has characters that no key has.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: Retries | None = None,
        api_key: str | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._transport = _open(url, retries or Retries(), authorization(api_key))

    async def answer(
        self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> Answer:
        """Answer a question about a context, as ``Client.answer`` does.

        Raises:
            ClientError: there is no answer; the class says whose fault it is.
        """
        return await self._call(self._transport.answer(question_of(context, question, asked)), timeout_s)

    def answer_stream(
        self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> AsyncGenerator[StreamedWord | Answer, None]:
        """Answer a question about a context word by word, as ``Client.answer_stream`` does.

        >>> async for part in client.answer_stream("The tower is 330 m tall.", "How tall is it?"):
        ...     print(part.delta if isinstance(part, StreamedWord) else f" ({part.probability:.2f})", end="")

        Raises:
            ClientError: there is no answer; the class says whose fault it is. After the first word nothing is asked
                again.
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        return self._transport.answer_stream(question_of(context, question, asked), timeout_s)

    async def answer_questions(
        self, context: str, questions: Iterable[str | AskedQuestion], *, timeout_s: float | None = None
    ) -> list[Answer | ClientError]:
        """Answer several questions about one context in one call, as ``Client.answer_questions`` does.

        Raises:
            InvalidRequestError: there are no questions or too many, or one cannot be sent.
            ClientError: there is no response; the class says whose fault it is.
        """
        call = self._transport.answer_questions(context, questions_of(context, questions))
        return await self._call(call, timeout_s)

    async def answer_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
        timeout_s: float | None = None,
        **asked: Unpack[Asked],
    ) -> list[Answer | ClientError]:
        """Answer many questions, each about its own context, as ``Client.answer_many`` does.

        Raises:
            ValueError: the concurrency is below 1.
            InvalidRequestError: what is asked for is an empty list, or a string where a list belongs.
        """
        asked = in_tuples(asked)

        async def ask(context: str, question: str) -> Answer:
            return await self.answer(context, question, timeout_s=timeout_s, **asked)

        return await ask_many_async(ask, pairs, concurrency, progress)

    async def fill_record(self, context: str, schema: Schema, *, timeout_s: float | None = None) -> Record:
        """Fill a record of named fields from a text, as ``Client.fill_record`` does.

        Raises:
            InvalidRequestError: the schema is not supported; the message names the field.
            ClientError: there is no record; the class says whose fault it is.
        """
        return await self._call(self._transport.fill_record(context, schema_of(schema)), timeout_s)

    async def get_model(self, *, timeout_s: float | None = None) -> Model:
        """Describe the served model and its limits.

        Raises:
            ClientError: the server does not say.
        """
        return await self._call(self._transport.get_model(), timeout_s)

    async def _call(self, call: Call[T], timeout_s: float | None) -> T:
        return await self._transport.call(call, self._timeout_s if timeout_s is None else timeout_s)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _open(url: str, retries: Retries, headers: dict[str, str]) -> "AsyncRestTransport | AsyncRpcTransport":
    scheme, target = split_url(url)
    if scheme in ("http", "https"):
        from mqan_client.rest import AsyncRestTransport

        return AsyncRestTransport(url, retries, headers)
    from mqan_client.rpc import AsyncRpcTransport

    return AsyncRpcTransport(target, retries, headers, tls=scheme == "grpcs")
