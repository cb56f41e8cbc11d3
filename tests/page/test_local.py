"""The model that runs in browsers: its tests compare with what the engine answers, and its page works."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.page.local_answers import answer, open_engine, read_cases

FindPackages = Callable[[str], Path]


def test_the_answers_that_it_is_compared_with_are_the_engines() -> None:
    engine = open_engine()
    cases = read_cases()
    assert len(cases) == 50
    for case in cases:
        is_same = is_close(answer(engine, case["request"]), case["answer"])
        assert is_same, f"of {case['request']}: run python -m tests.page.local_answers"


def is_close(one: Any, other: Any) -> bool:
    """Return whether documents are the same, but for what processors add up otherwise."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_close(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_close, one, other))
    return abs(one - other) < 1e-3 if isinstance(one, float) else bool(one == other)


def test_its_page_answers_without_a_server(node_packages: FindPackages, browse: Any) -> None:
    node_packages("typescript")
    with subprocess.Popen(
        ["node", "demo.mjs", "0"], cwd=node_packages("page"), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            browse("local", process.stdout.readline().strip())
        finally:
            process.terminate()
