"""Who answers ``mqan ask``: a server, or a bundle in this process."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import typer

from mqan_cli.errors import CommandError
from mqan_cli.show import to_document

if TYPE_CHECKING:
    from mqan_client import Answer, Client, ClientError
    from mqan_client.transport import Asked

Provider = Literal["auto", "cpu", "cuda"]
Parse = Literal["sql", "dialogue_state"]
# Answers a question (second) about a text (first), choosing from labels (third) where there are any, with the document
# of the REST API; raises CommandError.
Answerer = Callable[[str, str, Sequence[str]], dict[str, Any]]

ClientT = TypeVar("ClientT")

SERVER_VARIABLE = "MQAN_SERVER"
_KEY = "MQAN_API_KEY"


@contextmanager
def bundle(
    folder: Path,
    provider: Provider,
    max_answer_tokens: int | None,
    *,
    is_explained: bool = False,
    parse: Parse | None = None,
    none: bool = False,
) -> Iterator[Answerer]:
    """Answer in this process; arguments as of ``server``.

    Raises:
        CommandError: it does not run there.
        BundleError: the bundle is damaged.
    """
    from mqan_core.errors import InputError
    from mqan_core.options import Options, choices_of
    from mqan_core.parsed import check_parse, parse_answer
    from mqan_runtime.interface import open_engine
    from mqan_serving.rest.documents import AnswerDocument

    try:
        engine = open_engine(folder, provider=provider)
    except RuntimeError as error:
        raise CommandError(str(error)) from None
    limit = engine.max_answer_tokens
    wanted = limit if max_answer_tokens is None else max_answer_tokens
    if wanted > limit:
        raise typer.BadParameter(f"this bundle answers with at most {limit}", param_hint="--max-answer-tokens")

    def answer(text: str, question: str, labels: Sequence[str]) -> dict[str, Any]:
        for given in (text, question, *labels):
            _check_characters(given)
        try:
            options = Options(choices_of(labels), explain=is_explained, reads_lists=parse is None, none=none)
            if parse is not None:
                check_parse(options)
            request = engine.read(text, question, options)
        except InputError as error:
            raise CommandError(f"{error.message} {error.hint}") from None
        (answer,) = engine.answer([request], [wanted])
        if parse is not None:
            answer = parse_answer(parse, answer, text, question)
        return AnswerDocument.of(answer, engine.bundle.manifest).model_dump()

    yield answer


def _check_characters(text: str) -> None:
    """Refuse what no answer could quote: bytes of an argument that are not UTF-8 become lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CommandError(f"{text!r:.60} is not UTF-8 at character {error.start}") from None


@contextmanager
def server(
    url: str | None,
    max_answer_tokens: int | None,
    *,
    is_explained: bool = False,
    parse: Parse | None = None,
    none: bool = False,
) -> Iterator[Answerer]:
    """Let a server answer.

    Args:
        url: the server; that of MQAN_SERVER, or the default one, if None.
        max_answer_tokens: most tokens of an answer; the server's limit if None.
        is_explained: whether answers are to say what each step looked at.
        parse: what answers are to be read as.
        none: whether none of the labels may be the answer.
    """
    from mqan_client import Client

    url = find_server(url)
    with open_client(Client, url) as client:

        def answer(text: str, question: str, labels: Sequence[str]) -> dict[str, Any]:
            asked: Asked = {"max_answer_tokens": max_answer_tokens, "none": none}
            if labels:
                asked["choices"] = labels
            if is_explained:
                asked["explain"] = True
            if parse is not None:
                asked["parse"] = parse
            return to_document(_ask(client, url, text, question, asked))

        yield answer


def find_server(url: str | None) -> str:
    """Return the URL of the server to ask: the one given, that of MQAN_SERVER, or the default one."""
    from mqan_client.client import DEFAULT_URL

    return url or os.environ.get(SERVER_VARIABLE) or DEFAULT_URL


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
        start = "Start a server with `mqan serve`, or give --bundle"
        return f"no answer from {url} ({error}). {start}; gRPC and REST have ports of their own."
    return str(error)


def _ask(client: "Client", url: str, text: str, question: str, asked: "Asked") -> "Answer":
    from mqan_client import ClientError

    try:
        return client.answer(text, question, **asked)
    except ClientError as error:
        raise CommandError(explain(error, url)) from None


def _about_keys(url: str) -> str:
    if os.environ.get(_KEY):
        return f"The one in {_KEY} is not known to {url}."
    return f"Set {_KEY} to yours; whoever runs {url} makes one with `mqan key NAME`."
