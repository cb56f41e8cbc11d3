"""Failures of commands: one line on standard error and exit status 1; 2 for wrong usage and a refused bundle."""

from pathlib import Path

from mqan_core.errors import MqanError


class CommandError(MqanError):
    """A verb cannot do what it was asked; the message says why and what to do."""


def make_folder(folder: Path) -> None:
    """Make the folder that results go into, before the work that they come from."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot make the folder {folder}: {error.strerror}; give another --output") from None
