"""Failures of commands: one line on standard error and exit status 1; 2 for wrong usage and a refused bundle."""

import sys
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from mqan_core.errors import BundleError, MqanError

_EXTRAS = {
    "mcp": "pip install 'mqan[mcp]'",
    "pyarrow": "pip install 'mqan[batch]'",
    "onnxruntime": "pip install 'mqan[cpu]', or 'mqan[gpu]' for NVIDIA GPUs",
    "ray": "pip install 'mqan[serve]'",
    "yaml": "pip install 'mqan[batch]'",
}


class CommandError(MqanError):
    """A verb cannot do what it was asked; the message says why and what to do."""


def make_folder(folder: Path) -> None:
    """Make the folder that results go into, before the work that they come from."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot make the folder {folder}: {error.strerror}; give another --output") from None


class FriendlyGroup(TyperGroup):
    """Verbs whose expected errors are told in one line; a traceback means a fault of ours."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except MqanError as error:
            print(f"mqan: {error}", file=sys.stderr)
            ctx.exit(2 if isinstance(error, BundleError) else 1)
        except BrokenPipeError:  # click ends quietly
            raise
        except OSError as error:
            print(f"mqan: {error}", file=sys.stderr)
            ctx.exit(1)
        except ModuleNotFoundError as error:
            extra = _EXTRAS.get((error.name or "").partition(".")[0])
            if extra is None:
                raise
            print(f"mqan: {error.name} is not installed; install the extra: {extra}", file=sys.stderr)
            ctx.exit(1)
