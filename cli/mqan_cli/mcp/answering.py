"""The answerers of the tools: a running server, or a bundle in this process with the service that servers have."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mcp.server.mcpserver.exceptions import ToolError

from mqan_cli import answering
from mqan_cli.asked import Document, for_client
from mqan_client import AsyncClient, ClientError
from mqan_client.documents import document_of
from mqan_core.errors import InputError
from mqan_serving.service.health import Health

if TYPE_CHECKING:
    from mqan_serving.service.answer_service import Service
    from mqan_serving.settings import Settings


class Answerer(Protocol):
    """Answers with documents of the REST API, or raises ``ToolError`` in the service's words."""

    health: Health

    async def answer(self, context: str, asked: Document) -> Document: ...

    async def fill(self, context: str, schema: Document) -> Document: ...


class ServerAnswerer:
    """A running server, asked by a client of it."""

    def __init__(self, client: AsyncClient, url: str) -> None:
        self.health = Health()  # of the server we know nothing until it is asked
        self._client = client
        self._url = url

    async def answer(self, context: str, asked: Document) -> Document:
        given = dict(asked)
        return await self._told(self._client.answer(context, given.pop("question"), **for_client(given)))

    async def fill(self, context: str, schema: Document) -> Document:
        return await self._told(self._client.fill_record(context, schema))

    async def _told(self, call: Awaitable[Any]) -> Document:
        try:
            return dict(document_of(await call))
        except ClientError as error:
            raise ToolError(await asyncio.to_thread(answering.explain, error, self._url)) from None


class LocalAnswerer:
    """A service in this process, ready."""

    def __init__(self, service: "Service") -> None:
        self.health = service.health
        self._service = service

    async def answer(self, context: str, asked: Document) -> Document:
        from mqan_serving.contract.answers import document_of
        from mqan_serving.contract.questions import Question

        with _failures_told():
            found = await self._service.answer(Question(context=context, **asked))
        return document_of(found, self._service.model)

    async def fill(self, context: str, schema: Document) -> Document:
        from mqan_serving.records.documents import record_document
        from mqan_serving.records.filling import RecordRequest, fill_record
        from mqan_serving.records.schema import read_schema
        from mqan_serving.service.many import answer_texts

        with _failures_told():
            asked = RecordRequest(context, tuple(read_schema(schema)), None)
            found = await fill_record(asked, self._service, partial(answer_texts, self._service))
        return record_document(found, self._service.model)


@contextmanager
def _failures_told() -> Iterator[None]:
    from mqan_serving.contract.errors import AnsweringError, ServingError, describe

    try:
        yield
    except (InputError, AnsweringError, ServingError) as error:
        failure = describe(error)
        raise ToolError(f"{failure.message} {failure.hint}") from None


@asynccontextmanager
async def server_answerer(url: str) -> AsyncIterator[ServerAnswerer]:
    """Let a server answer; that it is there is not asked, for it may come later."""
    async with answering.open_client(AsyncClient, url) as client:
        yield ServerAnswerer(client, url)


@asynccontextmanager
async def local_answerer(settings: "Settings") -> AsyncIterator[LocalAnswerer]:
    """Open a bundle and answer in this process, with the limits of a server."""
    from mqan_serving.service.answer_service import open_service
    from mqan_serving.settings import find_bundle

    service = await open_service(find_bundle(settings), settings)
    try:
        yield LocalAnswerer(service)
    finally:
        await service.close()
