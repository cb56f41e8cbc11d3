"""The answerers of the tools: a running server, or a bundle in this process with the service that servers have.

They answer with documents of the REST API, or raise ``ToolError`` in the service's words.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from mcp.server.mcpserver.exceptions import ToolError

from mqan_cli.answering import explain, open_client
from mqan_cli.asked import Document, for_client
from mqan_client import AsyncClient, ClientError, documents
from mqan_core.errors import InputError
from mqan_serving.contract.answers import document_of
from mqan_serving.contract.errors import AnsweringError, ServingError, describe
from mqan_serving.contract.questions import Question
from mqan_serving.records.documents import record_document
from mqan_serving.records.filling import RecordRequest, fill_record
from mqan_serving.records.schema import read_schema
from mqan_serving.service.answer_service import Service, open_service
from mqan_serving.service.health import Health
from mqan_serving.service.many import answer_texts
from mqan_serving.settings import Settings, find_bundle


class ServerAnswerer:
    """A running server, asked by a client of it."""

    def __init__(self, client: AsyncClient, url: str) -> None:
        self.health = Health()  # of the server we know nothing until it is asked
        self._client = client
        self._url = url

    async def answer(self, context: str, asked: Document) -> Document:
        given = dict(asked)
        with _failures_told(self._url):
            found = await self._client.answer(context, given.pop("question"), **for_client(given))
        return dict(documents.document_of(found))

    async def fill(self, context: str, schema: Document) -> Document:
        with _failures_told(self._url):
            return dict(documents.document_of(await self._client.fill_record(context, schema)))


class LocalAnswerer:
    """A service in this process, ready."""

    def __init__(self, service: Service) -> None:
        self.health = service.health
        self._service = service

    async def answer(self, context: str, asked: Document) -> Document:
        with _failures_told():
            found = await self._service.answer(Question(context=context, **asked))
        return document_of(found, self._service.model)

    async def fill(self, context: str, schema: Document) -> Document:
        with _failures_told():
            asked = RecordRequest(context, tuple(read_schema(schema)), None)
            found = await fill_record(asked, self._service, partial(answer_texts, self._service))
        return record_document(found, self._service.model)


Answerer = ServerAnswerer | LocalAnswerer


@contextmanager
def _failures_told(url: str = "") -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise ToolError(explain(error, url)) from None
    except (InputError, AnsweringError, ServingError) as error:
        failure = describe(error)
        raise ToolError(f"{failure.message} {failure.hint}") from None


@asynccontextmanager
async def open_answerer(url: str | None, settings: Settings) -> AsyncIterator[Answerer]:
    """Let a server answer, which may come later, or a bundle in this process, with the limits of a server."""
    if url is not None:
        async with open_client(AsyncClient, url) as client:
            yield ServerAnswerer(client, url)
        return
    service = await open_service(find_bundle(settings), settings)
    try:
        yield LocalAnswerer(service)
    finally:
        await service.close()
