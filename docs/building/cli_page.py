"""The list of commands and their options, made of what ``mqan --help`` shows."""

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import typer

from mqan_cli.main import app
from mqan_cli.sections import VERBS

_HEAD: Final = """# Command line

All commands of `mqan` and their options, as `mqan COMMAND --help` prints them;
[Ask on the command line](../how-to/command-line.md) has examples. Expected errors are one line on standard error. The
exit status is 0, or 1 for an error, 2 for wrong usage and a damaged bundle, and 3 where `--fail` asks for it.
"""
_EXAMPLE: Final = re.compile(r"^(?=mqan )", re.MULTILINE)
_KINDS: Final = {Path: "PATH", int: "INTEGER", float: "NUMBER", str: "TEXT"}


def cli_page() -> str:
    """Return the page as Markdown."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    parts = [_HEAD]
    for section, verbs in VERBS.items():
        parts.append(f"## {section}")
        for verb in verbs:
            parts += _command(f"mqan {verb}", commands[verb])
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"### {name}\n\n{_EXAMPLE.sub('    ', cleandoc(command.help or ''))}"
    if rows := "".join(_row(param) for param in command.params if not param.hidden):
        yield f"| Argument or option | Value | Default | What it is |\n|---|---|---|---|\n{rows}".rstrip()
    for verb, inner in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {verb}", inner)


def _row(param: Any) -> str:
    is_option = param.opts[0].startswith("-")
    names = [*param.opts, *param.secondary_opts] if is_option else [param.metavar or param.name.upper()]
    told = [param.help or "", f"Variable `{param.envvar}`." if param.envvar else ""]
    value = _value(param) if is_option else ""
    cells = (", ".join(f"`{name}`" for name in names), value, _default(param), " ".join(told))
    return f"| {' | '.join(cell.strip().replace('|', chr(92) + '|') for cell in cells)} |\n"


def _value(param: Any) -> str:
    if param.is_flag or param.count:
        return ""
    kind = param.type_descriptor.annotation
    if get_origin(kind) is Literal:
        named = ", ".join(f"`{value}`" for value in get_args(kind))
    else:
        (kind,) = get_args(kind) or (kind,)
        named = f"`{param.metavar or _KINDS.get(kind, 'TEXT')}`"
    bounds = [f"{sign} {bound}" for sign, bound in (("≥", param.min), ("≤", param.max)) if bound is not None]
    return " ".join([named, ", ".join(bounds), "several times" if param.multiple else ""])


def _default(param: Any) -> str:
    default = getattr(param, "default", None)
    if param.required:
        return "required"
    return f"`{default}`" if default else ""
