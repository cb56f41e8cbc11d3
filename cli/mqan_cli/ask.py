"""``mqan ask``: one question about one text, answered by a server or in process, with each word's source shown."""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mqan_cli.errors import CommandError

if TYPE_CHECKING:
    import mqan_client
    from mqan_core.answer import Answer

    AnyAnswer = Answer | mqan_client.Answer

STYLES = {"context": "bold green", "question": "bold cyan", "vocabulary": "yellow"}
_KINDS = {"context": "from the context", "question": "from the question", "vocabulary": "the model's own word"}


Provider = Literal["auto", "cpu", "cuda"]


def ask(
    question: Annotated[str, typer.Argument(help="The question, in natural language.")],
    context: Annotated[str, typer.Option(metavar="FILE|-", help="File with the text; - for standard input.")],
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Server: grpc://HOST:PORT or http://HOST:PORT; else MQAN_SERVER, else grpc://127.0.0.1:9000.",
        ),
    ] = None,
    bundle: Annotated[Path | None, typer.Option(metavar="DIR", help="Answer in process from this bundle.")] = None,
    provider: Annotated[Provider, typer.Option(help="Where to run the bundle.")] = "auto",
    max_answer_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of the answer.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole answer as JSON.")] = False,
) -> None:
    """Ask a question about a text; the answer's words are coloured by where they came from.

    A server that asks for an API key gets that of MQAN_API_KEY.
    """
    if bundle is not None and server is not None:
        raise typer.BadParameter("give --server or --bundle, not both")
    text = _read_context(context)
    if bundle is not None:
        document = _ask_bundle(bundle, provider, text, question, max_answer_tokens)
    else:
        document = _ask_server(server, text, question, max_answer_tokens)
    if as_json:
        print(json.dumps(document, ensure_ascii=not _speaks_unicode(), indent=2))
    else:
        show(document)


def _read_context(name: str) -> str:
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return content.decode("utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {name}: {error.strerror}", param_hint="--context") from None
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{name} is not UTF-8: byte {error.start}", param_hint="--context") from None


def _ask_bundle(
    folder: Path, provider: Provider, context: str, question: str, max_answer_tokens: int | None
) -> dict[str, Any]:
    from mqan_runtime.engine import Engine

    try:
        engine = Engine.open(folder, provider=provider)
    except RuntimeError as error:
        raise CommandError(str(error)) from None
    limit = engine.max_answer_tokens
    wanted = limit if max_answer_tokens is None else max_answer_tokens
    if wanted > limit:
        raise typer.BadParameter(f"this bundle answers with at most {limit}", param_hint="--max-answer-tokens")
    (answer,) = engine.answer([engine.read(context, question)], [wanted])
    manifest = engine.bundle.manifest
    return to_document(answer, manifest.name, manifest.version)


def _ask_server(url: str | None, context: str, question: str, max_answer_tokens: int | None) -> dict[str, Any]:
    from mqan_client import Client, ClientError, UnavailableError
    from mqan_client.client import DEFAULT_URL
    from mqan_client.transport import authorization

    url = url or os.environ.get("MQAN_SERVER") or DEFAULT_URL
    api_key = os.environ.get("MQAN_API_KEY") or None
    try:
        authorization(api_key)
    except ValueError as error:
        raise typer.BadParameter(f"{error}, such as a line end", param_hint="MQAN_API_KEY") from None
    try:
        with Client(url, api_key=api_key) as client:
            answer = client.answer(context, question, max_answer_tokens=max_answer_tokens)
    except UnavailableError as error:
        raise CommandError(
            f"no answer from {url} ({error}). Start a server with `mqan serve`, or give --bundle."
        ) from None
    except ClientError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--server") from None
    return to_document(answer, answer.model.name, answer.model.version)


def to_document(answer: "AnyAnswer", name: str, version: str) -> dict[str, Any]:
    """Return an answer as the document that the REST API answers with."""
    tokens = [
        {
            "text": token.text,
            "probability": token.probability,
            "source": token.source.value,
            "masses": dataclasses.asdict(token.masses),
            "span": None if token.span is None else dataclasses.asdict(token.span),
        }
        for token in answer.tokens
    ]
    spans = [
        {"source": span.source.value, "start": span.start, "end": span.end, "text": span.text} for span in answer.spans
    ]
    return {
        "answer": answer.text,
        "probability": answer.probability,
        "tokens": tokens,
        "spans": spans,
        "truncated": answer.truncated,
        "model": {"name": name, "version": version},
    }


def show(document: dict[str, Any]) -> None:
    """Print the answer to standard output, coloured on a terminal, and where it came from to standard error."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    answer = document["answer"]
    if console.is_terminal:
        styled = Text(visible(answer))
        for start, end, source in colour(answer, document["tokens"]):
            styled.stylize(STYLES[source], start, end)
        console.print(styled)
    else:
        print(answer)
    notes = Console(stderr=True, highlight=False, soft_wrap=True)
    for span in document["spans"]:
        quotation = visible(span["text"]).replace("\n", " ")
        notes.print(Text(f"  {span['source']} {span['start']}-{span['end']}: {quotation}", STYLES[span["source"]]))
    sources = dict.fromkeys(token["source"] for token in document["tokens"])
    for source in sources.keys() - {span["source"] for span in document["spans"]}:
        words = " ".join(token["text"] for token in document["tokens"] if token["source"] == source)
        notes.print(Text(f"  {_KINDS[source]}: {visible(words)}", STYLES[source]))
    cut = ", cut at the limit of tokens" if document["truncated"] else ""
    model = document["model"]
    notes.print(Text(f"  probability {document['probability']:.3f}{cut}, {model['name']} {model['version']}", "dim"))


def colour(answer: str, tokens: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    """Return where each token stands in the answer, with its source."""
    ranges = []
    position = 0
    for token in tokens:
        start = answer.find(token["text"], position)
        if start >= 0 and token["text"]:
            position = start + len(token["text"])
            ranges.append((start, position, token["source"]))
    return ranges


def visible(text: str) -> str:
    """Replace control characters, which a quoted text could use to steer the terminal; keep the length."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def _speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
