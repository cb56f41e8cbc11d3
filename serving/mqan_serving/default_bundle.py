"""The bundle that is served when none is named: a wheel carries it, and a checkout has it beside this package."""

import json
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
_PLACES: Final = (_HERE / "bundles" / "default", _HERE.parent / "bundles" / "default")  # of a wheel, of a checkout


def default_bundle() -> Path:
    return next((place for place in _PLACES if place.is_dir()), _PLACES[-1])


def default_model() -> str | None:
    """Return name and version of the default model, or None where it cannot be read. Nothing of it is loaded."""
    try:
        manifest = json.loads((default_bundle() / "manifest.json").read_bytes())
        return f"{manifest['name']} {manifest['version']}"
    except (OSError, ValueError, KeyError, TypeError):
        return None
