"""The examples of the how-to page on frameworks print what it says, with the packages of those frameworks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import Block, is_as_shown, read_blocks, run_blocks


@pytest.mark.parametrize("package", ["langchain-typesafe", "llama-index-core", "haystack-ai"])
def test_an_example_prints_what_the_page_says(
    package: str,
    repository: Path,
    server: Any,
    interpreter: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    python = interpreter(package)
    monkeypatch.setenv("PYTHONPATH", str(repository / "clients" / "python"))  # and no other package of this repository
    block = example_of(package, (repository / "docs" / "how-to" / "frameworks.md").read_text())
    [printed] = run_blocks([block], server.rest.removeprefix("http://"), server.rpc, tmp_path, [str(python)])
    assert is_as_shown(block, printed), printed


def example_of(package: str, page: str) -> Block:
    """Return the program that follows the installation of a package."""
    blocks = read_blocks(page)
    [place] = [i for i, block in enumerate(blocks) if block.language == "sh" and f" {package} " in block.code]
    assert blocks[place + 1].shown
    return blocks[place + 1]
