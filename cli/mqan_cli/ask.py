"""``mqan ask``: questions about a text, answered by a server or in process, with each word's source shown."""

from pathlib import Path
from typing import Annotated

import typer

from mqan_cli import answering
from mqan_cli.answering import Parse, Provider
from mqan_cli.conversation import converse, has_terminal
from mqan_cli.html_page import html_page
from mqan_cli.record import fill, read_schema
from mqan_cli.show import show, show_json
from mqan_cli.texts import labels_of, read_text, write_text


def ask(
    question: Annotated[
        str | None,
        typer.Argument(
            help="The question, in natural language. Without one, ask several interactively.", show_default=False
        ),
    ] = None,
    text: Annotated[str | None, typer.Option("--text", "-t", help="The text itself.")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="File with the text. Without --text, too, standard input is read."
        ),
    ] = None,
    context: Annotated[str | None, typer.Option(metavar="FILE", hidden=True, help="Another name of --file.")] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Server: grpc://HOST:PORT or http://HOST:PORT. Default: MQAN_SERVER, or grpc://127.0.0.1:9000.",
        ),
    ] = None,
    bundle: Annotated[Path | None, typer.Option(metavar="DIR", help="Answer in this process with this bundle.")] = None,
    provider: Annotated[Provider, typer.Option(help="What to run the bundle on.")] = "auto",
    max_answer_tokens: Annotated[int | None, typer.Option(min=1, help="Maximum number of tokens.")] = None,
    choices: Annotated[
        str | None,
        typer.Option("--choices", "-c", metavar="LABELS", help="Labels to choose from, separated by commas."),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="None of the labels may be the answer, too.")] = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="SCHEMA", help="Fill a record: a file with the JSON Schema of its fields. Prints JSON."),
    ] = None,
    parse: Annotated[
        Parse | None,
        typer.Option(help="Read answers as queries of SQL, or as changes of a dialogue's state."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer, and what each step looked at, as one HTML page."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print whole answers as JSON.")] = False,
) -> None:
    """Ask about a text; the words of the answer are coloured by their source.

    mqan ask "How tall is it?" --text "The tower is 330 m tall."

    mqan ask "Who pays the rent?" --file contract.txt

    mqan ask "Which team?" --file mail.txt --choices "billing, shipping, technical support"

    mqan ask --record invoice.json --file mail.txt

    If the server requires an API key, set MQAN_API_KEY.
    """
    if bundle is not None and server is not None:
        raise typer.BadParameter("give --server or --bundle, not both")
    if provider != "auto" and bundle is None:
        raise typer.BadParameter("it says what --bundle runs on; give that, too", param_hint="--provider")
    if file is not None and context is not None:
        raise typer.BadParameter("give --file once")
    if record is not None:
        if none or any(given is not None for given in (question, choices, html, max_answer_tokens, parse)):
            raise typer.BadParameter("its schema says all that is asked; leave the rest out", param_hint="--record")
        schema = read_schema(record)
        fill(schema, read_text(text, file if context is None else context), server, bundle, provider, as_json=as_json)
        return
    if question is None and not has_terminal():
        raise typer.BadParameter("without a terminal to ask on, give the question", param_hint="QUESTION")
    labels = labels_of(choices or "")
    if choices is not None and not labels:
        raise typer.BadParameter("name at least one label", param_hint="--choices")
    if html is not None and question is None:
        raise typer.BadParameter("a page shows one question: give it", param_hint="--html")
    read = read_text(text, file if context is None else context)
    shown = show_json if as_json else show
    with (
        answering.server(server, max_answer_tokens, is_explained=html is not None, parse=parse, none=none)
        if bundle is None
        else answering.bundle(
            *(bundle, provider, max_answer_tokens), is_explained=html is not None, parse=parse, none=none
        )
    ) as answer:
        if question is None:
            converse(read, labels, answer, shown)
        else:
            document = answer(read, question, labels)
            shown(document)
            if html is not None:
                write_text(html, html_page(read, question, document))
