"""``mqan ask``: questions about a text, answered in process or by a server, with each word's source shown."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mqan_cli import asked
from mqan_cli.answering import BundleOption, Provider, ServerOption, find_server, open_answerer
from mqan_cli.files import read_text, write_text
from mqan_cli.sections import option
from mqan_cli.show import html_page, show, show_json, show_record

REFUSED: Final = 3  # exit status where ``--fail`` is given and the text does not answer


@asked.asks(before="schema")
def ask(
    questions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUESTION]...", help="Questions, in natural language.", show_default=False),
    ] = None,
    text: str | None = option("The text itself.", "--text", "-t"),
    file: str | None = option(
        "File with the text. Without --text and --file it is standard input.",
        "--file",
        "-f",
        metavar="FILE",
    ),
    server: ServerOption = None,
    bundle: BundleOption = None,
    provider: Provider = option("What this process runs it on.", default="auto"),
    max_answer_tokens: int | None = option("Maximum number of tokens.", min=1),
    schema: str | None = option("Fill a record: a file with a JSON Schema, or MODULE:CLASS. Prints JSON."),
    record: str | None = option("Another name of --schema.", hidden=True),
    parse: asked.Parse | None = option("Parse the answer as SQL or as a dialogue state."),
    html: Path | None = option("Write the answer, and what each step looked at, as one HTML page.", metavar="FILE"),
    as_json: bool = option("Print whole answers as JSON; several as a list.", "--json", default=False),
    fail: bool = option(
        "End with status 3 where the text does not answer one of the questions.", "--fail", default=False
    ),
    **given: Any,
) -> None:
    """Ask about a text; the words of the answer are coloured by their source.

    mqan ask "How tall is it?" --text "The tower is 330 m tall."

    mqan ask "Who pays the rent?" "When does it end?" --file contract.txt

    mqan ask "Which team?" --file mail.txt --choices "billing=invoices and refunds, shipping"

    mqan ask --schema invoice.json --file mail.txt

    If the server requires an API key, set MQAN_API_KEY.
    """
    url = find_server(server, bundle)
    if provider != "auto" and url is not None:
        raise typer.BadParameter(f"it says what this process runs on, and {url} answers", param_hint="--provider")
    fields = asked.fields_of(**given, max_answer_tokens=max_answer_tokens, explain=html is not None, parse=parse)
    questions = questions or []
    if given["adapter"] is not None:
        if questions:
            raise typer.BadParameter("it has a question of its own: leave QUESTION out", param_hint="--adapter")
        questions = [""]
    schema = record if schema is None else schema
    if schema is not None and (questions or fields):
        raise typer.BadParameter("it says all that is asked; leave the rest out", param_hint="--schema")
    if schema is None and not questions:
        raise typer.BadParameter("give the question", param_hint="QUESTION")
    if html is not None and len(questions) != 1:
        raise typer.BadParameter("a page shows one question: give one", param_hint="--html")
    properties = None if schema is None else asked.read_schema(schema)
    read = read_text(text, file)
    with open_answerer(url, bundle, provider) as answerer:
        if schema is not None:
            filled = answerer.fill(read, properties)
            (show_json if as_json else show_record)(filled)
            is_whole = all(name in filled["record"] for name in filled["missing"])  # null where the schema allows that
        else:
            documents = []
            for question in questions:
                documents.append(answerer.answer(read, {**fields, "question": question}))
                if not as_json:
                    show(documents[-1])
            if as_json:
                show_json(documents if len(documents) > 1 else documents[0])
            if html is not None:
                write_text(html, html_page(read, questions[0], documents[0]))
            is_whole = all(document["answered"] for document in documents)
    if fail and not is_whole:
        raise typer.Exit(REFUSED)
