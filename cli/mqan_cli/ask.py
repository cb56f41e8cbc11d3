"""``mqan ask``: questions about a text, answered in process or by a server, with each word's source shown."""

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mqan_cli import asked
from mqan_cli.answering import Answerer, BundleOption, Provider, ServerOption, find_server, open_answerer
from mqan_cli.asked import KINDS, Document, read_choices
from mqan_cli.errors import CommandError
from mqan_cli.files import paste, read_file, read_text, write_text
from mqan_cli.sections import option
from mqan_cli.show import html_page, show, show_json, show_record
from mqan_core.errors import InputError

REFUSED: Final = 3  # exit status where ``--fail`` is given and the text does not answer

_HELP = """  /file FILE       ask about another text, from a file
  /text            paste another text to ask about
  /choices A, B    choose answers from these labels; /choices alone: free answers again
  /quit            quit, as Ctrl-D does"""


@asked.asks(before="schema")
def ask(
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUESTION]...",
            help="Questions, in natural language. Without one, ask interactively.",
            show_default=False,
        ),
    ] = None,
    text: str | None = option("The text itself.", "--text", "-t"),
    file: str | None = option(
        "File with the text. Without --text, too, standard input is read.", "--file", "-f", metavar="FILE"
    ),
    context: str | None = option("Another name of --file.", metavar="FILE", hidden=True),
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
    if file is not None and context is not None:
        raise typer.BadParameter("give --file once")
    fields = asked.fields_of(**given, max_answer_tokens=max_answer_tokens, explain=html is not None, parse=parse)
    if given["adapter"] is not None:
        if questions:
            raise typer.BadParameter("it has a question of its own: leave QUESTION out", param_hint="--adapter")
        questions = [""]
    schema = record if schema is None else schema
    if schema is not None and (questions or fields):
        raise typer.BadParameter("it says all that is asked; leave the rest out", param_hint="--schema")
    if schema is None and not questions and not has_terminal():
        raise typer.BadParameter("without a terminal to ask on, give the question", param_hint="QUESTION")
    if html is not None and len(questions or ()) != 1:
        raise typer.BadParameter("a page shows one question: give one", param_hint="--html")
    properties = None if schema is None else asked.read_schema(schema)
    read = read_text(text, file if context is None else context)
    with open_answerer(url, bundle, provider) as answerer:
        if schema is not None:
            filled = answerer.fill(read, properties)
            (show_json if as_json else show_record)(filled)
            is_whole = all(name in filled["record"] for name in filled["missing"])  # null where the schema allows that
        elif questions:
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
        else:
            converse(read, fields, answerer, show_json if as_json else show)
            return
    if fail and not is_whole:
        raise typer.Exit(REFUSED)


def has_terminal() -> bool:
    """Say whether somebody can be asked: on standard input and output, or, where a text is piped in, beside them."""
    if not sys.stdout.isatty():
        return False
    if sys.stdin.isatty():
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return False
    os.close(terminal)
    return True


def converse(text: str, asked: Document, answerer: Answerer, show: Callable[[dict[str, Any]], None]) -> None:
    """Answer questions about a text until there are no more, each with the fields that are ``asked``."""
    _take_terminal()
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  edits lines, and keeps those of this conversation
    print("Ask about the text; /help lists the commands.", file=sys.stderr)
    while True:
        try:
            line = input("? ").strip()
            name, _, rest = line.partition(" ")
            if line == "/quit":
                return
            if name == "/choices":
                asked = {name: value for name, value in asked.items() if name not in KINDS}
                asked |= {"choices": labels} if (labels := read_choices(rest)) else {}
            elif line.startswith("/"):
                text = _command(line, text)
            elif line:
                show(answerer.answer(text, {**asked, "question": line}))
        except EOFError:
            print(file=sys.stderr)
            return
        except KeyboardInterrupt:
            print(file=sys.stderr)
        except UnicodeDecodeError:
            print("mqan: the line is not UTF-8", file=sys.stderr)
        except (CommandError, InputError, typer.BadParameter) as error:
            print(f"mqan: {error}", file=sys.stderr)


def _command(line: str, text: str) -> str:
    name, _, rest = line.partition(" ")
    match name, rest.strip():
        case "/text", "":
            return paste()
        case "/file", file if file:
            return read_file(file)
        case "/help", "":
            print(_HELP, file=sys.stderr)
            return text
    raise CommandError(f"no such command: {line}\n{_HELP}")


def _take_terminal() -> None:
    if not sys.stdin.isatty():
        terminal = os.open("/dev/tty", os.O_RDWR)
        os.dup2(terminal, 0)
        os.close(terminal)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  as long as the process
