"""Who answers ``mqan ask``: a bundle in this process, or a server."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import typer

from mqan_cli.asked import Document, for_client
from mqan_cli.errors import CommandError
from mqan_client import Client, ClientError, UnauthenticatedError, UnavailableError
from mqan_client.documents import document_of
from mqan_client.transport import authorization

if TYPE_CHECKING:
    from mqan_core.manifest import Manifest
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
        from mqan_cli.local import BundleAnswerer

        yield BundleAnswerer(find_folder(folder), provider)
        return
    with open_client(Client, url) as client:
        yield ServerAnswerer(client, url)


def open_adapters(manifest: "Manifest", bundle: str) -> "Adapters":
    """Return the adapters of MQAN_ADAPTERS for a bundle, which has this hash, in this process."""
    from mqan_serving.service.adapters import Adapters
    from mqan_serving.settings import load_settings

    return Adapters(load_settings().adapters, bundle, manifest.text_width)


class ServerAnswerer:
    """A server, asked by a client of it."""

    def __init__(self, client: Client, url: str) -> None:
        self._client = client
        self._url = url

    def answer(self, text: str, asked: Document) -> Document:
        given = dict(asked)
        return self._told(lambda: self._client.answer(text, given.pop("question"), **for_client(given)))

    def fill(self, text: str, schema: Any) -> Document:
        return self._told(lambda: self._client.fill_record(text, schema))

    def _told(self, call: Callable[[], Any]) -> Document:
        try:
            return dict(document_of(call()))
        except ClientError as error:
            raise CommandError(explain(error, self._url)) from None


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
    api_key = os.environ.get(_KEY) or None
    try:
        authorization(api_key)
    except ValueError as error:
        raise typer.BadParameter(f"{error}, such as a line end", param_hint=_KEY) from None
    try:
        return kind(url, api_key=api_key)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--server") from None


def explain(error: ClientError, url: str) -> str:
    if isinstance(error, UnauthenticatedError):
        if os.environ.get(_KEY):
            return f"{error} The one in {_KEY} is not known to {url}."
        return f"{error} Set {_KEY} to yours; whoever runs {url} makes one with `mqan key NAME`."
    if isinstance(error, UnavailableError):
        start = "Start one with `mqan serve`, or ask without a server"
        return f"no answer from {url} ({error}). {start}; gRPC and REST have ports of their own."
    return str(error)
