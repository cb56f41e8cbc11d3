"""The list of settings, made of the fields of ``Settings``."""

import ast
import inspect
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from mqan_serving.settings import Settings

_HEAD: Final = """# Settings

Each setting of a server is an environment variable (`MQAN_HTTP_PORT=8080 mqan serve`), a key of the
[file of `--config`](../operations.md#a-configuration) (`http_port = 8080`), and an argument of
[deploy/serve.yaml](../../deploy/serve.yaml). A variable that is nearly one of these (`MQAN_HTTP_PROT`) is refused
with the name that was meant. `mqan settings` prints those in effect.

| Variable | Default | Range | What it is, and why |
|---|---|---|---|
"""
_SIGNS: Final = {Ge: ("ge", "≥"), Gt: ("gt", ">"), Le: ("le", "≤"), Lt: ("lt", "<")}


def settings_page() -> str:
    """Return the page as Markdown."""
    meanings = _meanings()
    return _HEAD + "".join(_row(name, field, meanings[name]) for name, field in Settings.model_fields.items())


def _meanings() -> dict[str, str]:
    """Return the docstring below each field."""
    found = {}
    for field, told in pairwise(ast.parse(inspect.getsource(Settings)).body[0].body):  # type: ignore[attr-defined]
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            found[field.target.id] = str(ast.literal_eval(told.value))
    return found


def _row(name: str, field: FieldInfo, meaning: str) -> str:
    meaning = " ".join(meaning.split()).replace("|", "\\|")
    return f"| `MQAN_{name.upper()}` | {_default(field.default)} | {_range(field)} | {meaning} |\n"


def _default(value: Any) -> str:
    if value is None or value == ():
        return "unset"
    return f"`{value}`" if isinstance(value, str | Path) else f"`{json.dumps(value)}`"


def _range(field: FieldInfo) -> str:
    bounds = []
    for kind, (attribute, sign) in _SIGNS.items():
        bounds += [f"{sign} {getattr(rule, attribute):,}" for rule in field.metadata if isinstance(rule, kind)]
    return ", ".join(bounds)
