"""Errors raised by the core, and what to do about a package that is missing."""

import shlex
import sys

_MAX_LINE = 600  # characters


class MqanError(Exception):
    """Base of every error this project raises on purpose."""


class InputError(MqanError, ValueError):
    """The caller's input cannot be answered; the hint says in one sentence how to fix it."""

    def __init__(self, code: str, field: str, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.code = code
        self.field = field
        self.message = message
        self.hint = hint


class BundleError(MqanError):
    """A bundle cannot be opened; the message says in one line which file and why.

    It may quote the bundle or onnx, over many lines: so it is made one line of what can be printed, and not too long.
    """

    def __init__(self, message: str) -> None:
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(message.split()))
        super().__init__(shown if len(shown) <= _MAX_LINE else f"{shown[: _MAX_LINE - 3]}...")


class FormError(MqanError, ValueError):
    """An answer is not of the form that it is to be read in; the message says in one line what is wrong."""


class EngineFailedError(MqanError):
    """An engine has failed for good: nothing it computes from now on can be trusted; its process is to be replaced."""


def command_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra here: beside a clone as beside a wheel."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        needed = [line.partition(";") for line in requires("mqan") or ()]
    except PackageNotFoundError:  # the code was copied, not installed
        return f"the extra {extra} of pyproject.toml"
    packages = [name.strip() for name, _, marker in needed if f'extra == "{extra}"' in marker.replace("'", '"')]
    return shlex.join([sys.executable, "-m", "pip", "install", *packages])
