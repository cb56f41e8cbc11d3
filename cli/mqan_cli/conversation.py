"""Several questions about one text on a terminal, with the editing and history of lines that shells have."""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from mqan_cli.answering import Answerer
from mqan_cli.asked import KINDS, Document, read_choices
from mqan_cli.errors import CommandError
from mqan_cli.files import paste, read_file
from mqan_core.errors import InputError

_HELP = """  /file FILE       ask about another text, from a file
  /text            paste another text to ask about
  /choices A, B    choose answers from these labels; /choices alone: free answers again
  /quit            quit, as Ctrl-D does"""


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
    """Do what a line that is no question says, and return the text to ask about from now on."""
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
