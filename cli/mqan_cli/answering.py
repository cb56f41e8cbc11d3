"""Who answers ``mqan ask``: a bundle in this process, or a server."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import typer

from mqan_cli.asked import Fields, for_client, texts_of
from mqan_cli.errors import CommandError

if TYPE_CHECKING:
    from mqan_client import ClientError

Provider = Literal["auto", "cpu", "cuda"]
Parse = Literal["sql", "dialogue_state"]
# Answers a question (second: the fields of the REST API) about a text (first) with the document of the REST API; raises
# CommandError.
Answerer = Callable[[str, Fields], dict[str, Any]]

ClientT = TypeVar("ClientT")

SERVER_VARIABLE = "MQAN_SERVER"
_KEY = "MQAN_API_KEY"


@contextmanager
def bundle(folder: Path | None, provider: Provider) -> Iterator[Answerer]:
    """Answer in this process.

    Args:
        folder: the bundle; the packaged one, or that of MQAN_BUNDLE, if None.
        provider: what it runs on.

    Raises:
        CommandError: it does not run there.
        BundleError: the bundle is damaged.
        SettingsError: there is none.
    """
    from mqan_core.errors import InputError
    from mqan_core.forms.parsed import parse_answer
    from mqan_runtime.interface import open_engine
    from mqan_serving.contract.answers import document_of
    from mqan_serving.contract.questions import Question

    try:
        engine = open_engine(find_folder(folder), provider=provider)
    except RuntimeError as error:
        raise CommandError(str(error)) from None
    limit = engine.max_answer_tokens

    def answer(text: str, asked: Fields) -> dict[str, Any]:
        for given in (text, *texts_of(asked)):
            _check_characters(given)
        question = Question(context=text, **asked)
        wanted = limit if question.max_answer_tokens is None else question.max_answer_tokens
        if wanted > limit:
            raise typer.BadParameter(f"this bundle answers with at most {limit}", param_hint="--max-answer-tokens")
        try:
            request = engine.read(text, question.question, question.options)
        except InputError as error:
            raise CommandError(f"{error.message} {error.hint}") from None
        (found,) = engine.answer([request], [wanted])
        if question.parse is not None:
            found = parse_answer(question.parse, found, text, question.question)
        return document_of(found, engine.bundle.manifest)

    yield answer


def _check_characters(text: str) -> None:
    """Refuse what no answer could quote: bytes of an argument that are not UTF-8 become lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CommandError(f"{text!r:.60} is not UTF-8 at character {error.start}") from None


@contextmanager
def server(url: str) -> Iterator[Answerer]:
    """Let a server answer."""
    from mqan_client import Client, ClientError
    from mqan_client.documents import document_of

    with open_client(Client, url) as client:

        def answer(text: str, asked: Fields) -> dict[str, Any]:
            given = dict(asked)
            try:
                found = client.answer(text, given.pop("question"), **for_client(given))
            except ClientError as error:
                raise CommandError(explain(error, url)) from None
            return dict(document_of(found))

        yield answer


def find_server(url: str | None, folder: Path | None) -> str | None:
    """Return the URL of the server to ask: the one given, or that of MQAN_SERVER. None: a bundle answers here."""
    return None if folder is not None else url or os.environ.get(SERVER_VARIABLE) or None


def find_folder(folder: Path | None) -> Path:
    """Return the folder of the bundle to open: the one given, that of MQAN_BUNDLE, or the packaged one.

    Raises:
        SettingsError: there is none.
    """
    from mqan_serving.settings import find_bundle, load_settings

    return folder or find_bundle(load_settings())


def open_client(kind: Callable[..., ClientT], url: str) -> ClientT:
    """Open a client of a server, with the key of MQAN_API_KEY.

    Args:
        kind: ``mqan_client.Client`` or ``AsyncClient``.
        url: the server.

    Raises:
        typer.BadParameter: the URL is none of a server, or the key has characters that no key has.
    """
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
    """Return why a server did not answer and what to do.

    Args:
        error: how asking failed.
        url: the server that was asked.
    """
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
