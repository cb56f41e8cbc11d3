"""Tables of cases: data beside the tests that read them, one JSON value a line."""

import json
from pathlib import Path
from typing import Any


def cases(name: str) -> list[Any]:
    """Return the rows of a table, by its place below this folder."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
