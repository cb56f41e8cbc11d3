"""Who answers ``mqan ask``: a bundle in this process, or a server."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import typer

from mqan_cli.asked import Document, for_client, texts_of
from mqan_cli.errors import CommandError

if TYPE_CHECKING:
    from mqan_client import Client, ClientError
    from mqan_core.answer.types import Answer
    from mqan_core.manifest import Manifest
    from mqan_serving.contract.questions import Question
    from mqan_serving.service.adapters import Adapters

Provider = Literal["auto", "cpu", "cuda"]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Server: grpc://HOST:PORT or http://HOST:PORT. Default: MQAN_SERVER, or this process answers.",
    ),
]
BundleOption = Annotated[
    Path | None,
    typer.Option(
        "--bundle", metavar="DIR", help="Folder of the model for this process; the default bundle if not given."
    ),
]

ClientT = TypeVar("ClientT")

SERVER_VARIABLE = "MQAN_SERVER"
_KEY = "MQAN_API_KEY"


class Answerer(Protocol):
    """Answers with documents of the REST API; raises ``MqanError`` where there is no answer."""

    def answer(self, text: str, asked: Document) -> Document: ...

    def fill(self, text: str, schema: Any) -> Document: ...


@contextmanager
def open_answerer(url: str | None, folder: Path | None, provider: Provider) -> Iterator[Answerer]:
    """Let a server answer, or a bundle in this process: the one given, that of MQAN_BUNDLE, or the packaged one."""
    if url is None:
        yield BundleAnswerer(find_folder(folder), provider)
        return
    from mqan_client import Client

    with open_client(Client, url) as client:
        yield ServerAnswerer(client, url)


class BundleAnswerer:
    """A bundle in this process, whose texts may have any length, with the adapters of MQAN_ADAPTERS."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        from mqan_runtime.engine import Engine

        try:
            self.engine = Engine.open(folder, provider=provider)
        except RuntimeError as error:
            raise CommandError(str(error)) from None
        self.adapters = open_adapters(self.engine.bundle.manifest, self.engine.bundle.sha256)

    def answer(self, text: str, asked: Document) -> Document:
        from mqan_serving.contract.answers import document_of
        from mqan_serving.contract.questions import Question

        for given in (text, *texts_of(asked)):
            _check_characters(given)
        found = self._answer(Question(context=text, **asked))
        return document_of(found, self.engine.bundle.manifest)

    def fill(self, text: str, schema: Any) -> Document:
        from mqan_serving.records.documents import record_document
        from mqan_serving.records.filling import RecordRequest, ask_fields, fill_fields
        from mqan_serving.records.schema import read_schema
        from mqan_serving.service.answer_service import knows_of

        for given in (text, str(schema)):
            _check_characters(given)
        wanted = RecordRequest(text, tuple(read_schema(schema)), None)
        answers = [self._answer(question) for question in ask_fields(wanted)]
        filled = fill_fields(wanted, answers, knows_of(self.engine.bundle))
        return record_document(filled, self.engine.bundle.manifest)

    def _answer(self, question: "Question") -> "Answer":
        from mqan_core.forms.parsed import parse_answer

        question = self.adapters.adapt(question)
        limit = self.engine.max_answer_tokens
        wanted = limit if question.max_answer_tokens is None else question.max_answer_tokens
        if wanted > limit:
            raise typer.BadParameter(f"this bundle answers with at most {limit}", param_hint="--max-answer-tokens")
        request = self.engine.read(question.context, question.question, question.options)
        (found,) = self.engine.answer([request], [wanted])
        if question.parse is None:
            return found
        return parse_answer(question.parse, found, question.context, question.question)


def open_adapters(manifest: "Manifest", bundle: str) -> "Adapters":
    """Return the adapters of MQAN_ADAPTERS for a bundle, which has this hash, in this process."""
    from mqan_serving.service.adapters import Adapters
    from mqan_serving.settings import load_settings

    return Adapters(load_settings().adapters, bundle, manifest.text_width)


class ServerAnswerer:
    """A server, asked by a client of it."""

    def __init__(self, client: "Client", url: str) -> None:
        self._client = client
        self._url = url

    def answer(self, text: str, asked: Document) -> Document:
        given = dict(asked)
        return self._told(lambda: self._client.answer(text, given.pop("question"), **for_client(given)))

    def fill(self, text: str, schema: Any) -> Document:
        return self._told(lambda: self._client.fill_record(text, schema))

    def _told(self, call: Callable[[], Any]) -> Document:
        from mqan_client import ClientError
        from mqan_client.documents import document_of

        try:
            return dict(document_of(call()))
        except ClientError as error:
            raise CommandError(explain(error, self._url)) from None


def _check_characters(text: str) -> None:
    """Refuse what no answer could quote: bytes of an argument that are not UTF-8 become lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CommandError(f"{text!r:.60} is not UTF-8 at character {error.start}") from None


def find_server(url: str | None, folder: Path | None) -> str | None:
    """Return the URL of the server to ask: the one given, or that of MQAN_SERVER. None: a bundle answers here."""
    if url is not None and folder is not None:
        raise typer.BadParameter("give --server or --bundle, not both")
    return None if folder is not None else url or os.environ.get(SERVER_VARIABLE) or None


def find_folder(folder: Path | None) -> Path:
    """Return the folder of the bundle to open: the one given, that of MQAN_BUNDLE, or the packaged one."""
    from mqan_serving.settings import find_bundle, load_settings

    return folder or find_bundle(load_settings())


def open_client(kind: Callable[..., ClientT], url: str) -> ClientT:
    """Open a client of a kind, with the key of MQAN_API_KEY; refuse a URL or a key that is none."""
    from mqan_client.transport import authorization

    api_key = os.environ.get(_KEY) or None
    try:
        authorization(api_key)
    except ValueError as error:
        raise typer.BadParameter(f"{error}, such as a line end", param_hint=_KEY) from None
    try:
        return kind(url, api_key=api_key)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--server") from None


def explain(error: "ClientError", url: str) -> str:
    """Return why a server did not answer and what to do."""
    from mqan_client import UnauthenticatedError, UnavailableError

    if isinstance(error, UnauthenticatedError):
        return f"{error} {_about_keys(url)}"
    if isinstance(error, UnavailableError):
        start = "Start one with `mqan serve`, or ask without a server"
        return f"no answer from {url} ({error}). {start}; gRPC and REST have ports of their own."
    return str(error)


def _about_keys(url: str) -> str:
    if os.environ.get(_KEY):
        return f"The one in {_KEY} is not known to {url}."
    return f"Set {_KEY} to yours; whoever runs {url} makes one with `mqan key NAME`."
