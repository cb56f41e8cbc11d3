"""``mqan ask``: questions about a text, answered in process or by a server, with each word's source shown."""

from pathlib import Path
from typing import Annotated, Final

import typer

from mqan_cli import answering, asked
from mqan_cli.answering import Parse, Provider
from mqan_cli.conversation import converse, has_terminal
from mqan_cli.html_page import html_page
from mqan_cli.record import fill, read_schema
from mqan_cli.show import show, show_json
from mqan_cli.texts import read_text, write_text

REFUSED: Final = 3
"""Exit status where ``--fail`` is given and the text does not answer."""


def ask(
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUESTION]...",
            help="Questions, in natural language. Without one, ask interactively.",
            show_default=False,
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
            help="Server: grpc://HOST:PORT or http://HOST:PORT. Default: MQAN_SERVER, or this process answers.",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the model for this process; the default bundle if not given."),
    ] = None,
    provider: Annotated[Provider, typer.Option(help="What this process runs it on.")] = "auto",
    max_answer_tokens: Annotated[int | None, typer.Option(min=1, help="Maximum number of tokens.")] = None,
    choices: Annotated[
        str | None,
        typer.Option("--choices", "-c", metavar="LABELS", help=asked.LABELS_HELP),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help=asked.NONE_HELP)] = False,
    yes_no: Annotated[bool, typer.Option("--yes-no", help=asked.YES_NO_HELP)] = False,
    scale: Annotated[str | None, typer.Option(metavar="LEVELS", help=asked.SCALE_HELP)] = None,
    multiple: Annotated[bool, typer.Option("--multiple", help=asked.MULTIPLE_HELP)] = False,
    sources: Annotated[str | None, typer.Option(metavar="SOURCES", help=asked.SOURCES_HELP)] = None,
    min_probability: Annotated[float | None, typer.Option(min=0, max=1, help=asked.MIN_PROBABILITY_HELP)] = None,
    record: Annotated[
        str | None,
        typer.Option(metavar="SCHEMA", help="Fill a record: a file with a JSON Schema, or MODULE:CLASS. Prints JSON."),
    ] = None,
    parse: Annotated[
        Parse | None,
        typer.Option(help="Read answers as queries of SQL, or as changes of a dialogue's state."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer, and what each step looked at, as one HTML page."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print whole answers as JSON; several as a list.")] = False,
    fail: Annotated[
        bool, typer.Option("--fail", help="End with status 3 where the text does not answer one of the questions.")
    ] = False,
) -> None:
    """Ask about a text; the words of the answer are coloured by their source.

    mqan ask "How tall is it?" --text "The tower is 330 m tall."

    mqan ask "Who pays the rent?" "When does it end?" --file contract.txt

    mqan ask "Which team?" --file mail.txt --choices "billing=invoices and refunds, shipping"

    mqan ask --record invoice.json --file mail.txt

    If the server requires an API key, set MQAN_API_KEY.
    """
    if bundle is not None and server is not None:
        raise typer.BadParameter("give --server or --bundle, not both")
    url = answering.find_server(server, bundle)
    if provider != "auto" and url is not None:
        raise typer.BadParameter(f"it says what this process runs on, and {url} answers", param_hint="--provider")
    if file is not None and context is not None:
        raise typer.BadParameter("give --file once")
    fields = asked.fields_of(
        choices=choices,
        yes_no=yes_no,
        scale=scale,
        multiple=multiple,
        none=none,
        sources=sources,
        min_probability=min_probability,
    )
    also = {"max_answer_tokens": max_answer_tokens, "explain": html is not None or None, "parse": parse}
    fields |= {name: value for name, value in also.items() if value is not None}
    if record is not None:
        if questions or fields:
            raise typer.BadParameter("its schema says all that is asked; leave the rest out", param_hint="--record")
        schema = read_schema(record)
        read = read_text(text, file if context is None else context)
        if not fill(schema, read, url, bundle, provider, as_json=as_json) and fail:
            raise typer.Exit(REFUSED)
        return
    if not questions and not has_terminal():
        raise typer.BadParameter("without a terminal to ask on, give the question", param_hint="QUESTION")
    if html is not None and len(questions or ()) != 1:
        raise typer.BadParameter("a page shows one question: give one", param_hint="--html")
    read = read_text(text, file if context is None else context)
    with answering.bundle(bundle, provider) if url is None else answering.server(url) as answer:
        if not questions:
            converse(read, fields, answer, show_json if as_json else show)
            return
        documents = []
        for question in questions:
            documents.append(answer(read, {**fields, "question": question}))
            if not as_json:
                show(documents[-1])
    if as_json:
        show_json(documents if len(documents) > 1 else documents[0])
    if html is not None:
        write_text(html, html_page(read, questions[0], documents[0]))
    if fail and not all(document["answered"] for document in documents):
        raise typer.Exit(REFUSED)
