"""The answerers of the tools: a running server, or a bundle in this process with the service that servers have."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.mcpserver.exceptions import ToolError

from mqan_cli import answering
from mqan_client import AsyncClient, Choice, ClientError
from mqan_core.errors import InputError
from mqan_serving.contract.questions import ChoiceField
from mqan_serving.service.health import Health

if TYPE_CHECKING:
    from mqan_cli.mcp.results import AnyAnswer
    from mqan_serving.service.answer_service import Service
    from mqan_serving.settings import Settings


class ServerAnswerer:
    """Lets a running server answer.

    Args:
        client: a client of it.
        url: where it is.
    """

    def __init__(self, client: AsyncClient, url: str) -> None:
        self.health = Health()  # of the server we know nothing until it is asked
        self._client = client
        self._url = url

    async def answer(
        self,
        context: str,
        question: str,
        *,
        choices: Sequence[ChoiceField] | None = None,
        multiple: bool = False,
        none: bool = False,
        contiguous: bool = False,
    ) -> "AnyAnswer":
        """Answer a question about a context.

        Args:
            context: the text.
            question: the question, in natural language.
            choices: the labels to choose from, for a closed question.
            multiple: whether several of them can be right.
            none: whether none of them may be the answer.
            contiguous: whether the answer is to be one unbroken quotation of the context.

        Raises:
            ToolError: there is no answer; it says why in the service's words.
        """
        given = None if choices is None else [Choice(choice.label, choice.description) for choice in choices]
        try:
            return await self._client.answer(
                context, question, choices=given, multiple=multiple, none=none, contiguous=contiguous
            )
        except ClientError as error:
            raise ToolError(await asyncio.to_thread(answering.explain, error, self._url)) from None


class LocalAnswerer:
    """Answers in this process.

    Args:
        service: the service, ready.
    """

    def __init__(self, service: "Service") -> None:
        self.health = service.health
        self._service = service

    async def answer(
        self,
        context: str,
        question: str,
        *,
        choices: Sequence[ChoiceField] | None = None,
        multiple: bool = False,
        none: bool = False,
        contiguous: bool = False,
    ) -> "AnyAnswer":
        """Answer as ``ServerAnswerer`` does."""
        from mqan_serving.contract.errors import ServingError, describe
        from mqan_serving.contract.questions import Question

        asked = Question(
            context=context,
            question=question,
            choices=None if choices is None else [*choices],
            multiple=multiple,
            none=none,
            contiguous=contiguous,
        )
        try:
            return await self._service.answer(asked)
        except (InputError, ServingError) as error:
            failure = describe(error)
            raise ToolError(f"{failure.message} {failure.hint}") from None


Answerer = ServerAnswerer | LocalAnswerer


@asynccontextmanager
async def server_answerer(url: str) -> AsyncIterator[ServerAnswerer]:
    """Let a server answer; that it is there is not asked, for it may come later.

    Raises:
        typer.BadParameter: the URL is none of a server, or the API key none of any.
    """
    async with answering.open_client(AsyncClient, url) as client:
        yield ServerAnswerer(client, url)


@asynccontextmanager
async def local_answerer(settings: "Settings") -> AsyncIterator[LocalAnswerer]:
    """Open a bundle and answer in this process, with the limits of a server.

    Raises:
        SettingsError: there is no bundle.
        BundleError: it is damaged.
    """
    from mqan_serving.service.answer_service import open_service
    from mqan_serving.settings import find_bundle

    service = await open_service(find_bundle(settings), settings)
    try:
        yield LocalAnswerer(service)
    finally:
        await service.close()
