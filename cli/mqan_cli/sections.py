"""The verbs of ``mqan``: their sections in ``mqan --help``, in the order of use, and how their failures are told."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import typer
from typer.core import TyperGroup

from mqan_core.errors import BundleError, MqanError, command_to_install

VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "Serve and ask": ("serve", "ask", "batch", "adapt", "mcp", "settings", "key", "models"),
    "Train": ("data", "embed", "train"),
    "Bundles": ("export", "verify", "evaluate"),
}
SECTION_OF: Final = {name: section for section, names in VERBS.items() for name in names}
_PLACES: Final = {name: place for place, name in enumerate(SECTION_OF)}
ROWS: Final = "Rows of your own"  # a section of options
_EXTRAS = {
    "mcp": "mcp",
    "pyarrow": "batch",
    "onnxruntime": "cpu",
    "ray": "serve",
    "yaml": "batch",
}


def option(told: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Return an option of a verb, and what ``--help`` says of it."""
    return typer.Option(default, *names, help=told, **more)


def of_rows(told: str, *names: str, **more: Any) -> Any:
    return option(told, *names, rich_help_panel=ROWS, **more)


class SectionedGroup(TyperGroup):
    """Verbs in the order of their sections, those of no section last. Expected errors are told in one line.

    A traceback means a fault of ours.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=lambda name: _PLACES.get(name, len(_PLACES)))

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
            more = f", or for NVIDIA GPUs {command_to_install('gpu')}" if extra == "cpu" else ""
            print(f"mqan: {error.name} is not installed: {command_to_install(extra)}{more}", file=sys.stderr)
            ctx.exit(1)
