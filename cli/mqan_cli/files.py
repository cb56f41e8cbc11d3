"""Files of the commands: the text that ``mqan ask`` asks about, what is written, and where secrets may be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import typer

from mqan_cli.errors import CommandError

STANDARD_INPUT = "-"
_IGNORED = 0  # exit status of git check-ignore; that of a file which git follows is 1


def read_text(text: str | None, file: str | None) -> str:
    """Return the text to ask about: given, of a file, or of standard input."""
    if text is not None and file is not None:
        raise typer.BadParameter("give --text or --file, not both")
    found = text if text is not None else _read_file(STANDARD_INPUT if file is None else file)
    if not found.strip():
        raise typer.BadParameter("there is no text to ask about; give --text, --file or standard input")
    return found


def _read_file(name: str) -> str:
    if not name:  # a variable of a shell that is not set
        raise typer.BadParameter("the name of the file is empty", param_hint="--file")
    if name == STANDARD_INPUT and sys.stdin is None:
        raise typer.BadParameter("standard input is closed; give --text or --file")
    if name == STANDARD_INPUT and sys.stdin.isatty():
        print("Paste the text, then press Ctrl-D on a line of its own:", file=sys.stderr)
    try:
        content = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(os.path.expanduser(name)).read_bytes()
        return content.decode("utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot read {name}: {error.strerror}", param_hint="--file") from None
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{name} is not UTF-8: byte {error.start}", param_hint="--file") from None


def write_text(path: Path, text: str) -> None:
    content = text.encode("utf-8")  # first, so that nothing is lost where it fails
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None


def exposing_tree(file: Path) -> Path | None:
    """Return the git work tree that a file is in, or None if it is in none, or git ignores it there.

    What git cannot say counts as not ignored.
    """
    folder = file.absolute().parent.resolve()
    tree = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
    git = shutil.which("git")
    if tree is None or git is None:
        return tree
    # Those that name another repository, as in a hook of git.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [git, "-C", str(folder), "check-ignore", "--quiet", "--", file.name]
    try:
        asked = subprocess.run(command, env=environment, capture_output=True, timeout=10)  # noqa: S603  no shell
    except (OSError, subprocess.TimeoutExpired):
        return tree
    return None if asked.returncode == _IGNORED else tree
