"""Every example in the documents prints what its page says."""

import os
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mqan_serving.formats.foreign import EXAMPLES
from mqan_serving.records.documents import RECORD_REQUEST, RECORD_RESPONSE
from tests.docs.blocks import REPOSITORY, Block, agrees, is_as_shown, read_blocks, run_blocks

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "clients" / "python" / "README.md",
    *sorted(
        path
        for path in (REPOSITORY / "docs").rglob("*.md")
        if path.name != "frameworks.md" and read_blocks(path.read_text())  # tests/interop runs that one
    ),
]
SERVE = "make serve\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_examples_print_what_the_page_says(page: Path, default_server: Any, tmp_path: Path) -> None:
    blocks = [block for block in read_blocks(page.read_text()) if block.code != SERVE]
    assert blocks
    printed = run_blocks(blocks, default_server.rest.removeprefix("http://"), default_server.rpc, tmp_path)
    wrong = [
        f"{block.code}\n--- the page says\n{block.shown}\n--- it printed\n{real}"
        for block, real in zip(blocks, printed, strict=True)
        if not is_as_shown(block, real)
    ]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "request_body", "shown"),
    [
        ("/v1/systemone", *EXAMPLES["/v1/systemone"].values()),
        ("/v1/decisions", *EXAMPLES["/v1/decisions"].values()),
        ("/v1/records", RECORD_REQUEST, {name: RECORD_RESPONSE[name] for name in ("record", "missing", "fields")}),
    ],
)
def test_examples_of_the_rest_reference_are_answers(
    path: str, request_body: dict[str, Any], shown: dict[str, Any], default_server: Any
) -> None:
    response = httpx2.post(default_server.rest + path, json=request_body, trust_env=False)
    assert agrees(shown, response.json()), response.text


def test_make_serve_starts_a_server() -> None:
    """It would install one first, so only its last command is looked at; the examples run against such a server."""
    own = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL", "VENV")  # what a make that runs the tests hands on
    planned = subprocess.run(
        ["make", "--dry-run", *SERVE.split()[1:]],
        cwd=REPOSITORY,
        env={name: value for name, value in os.environ.items() if name not in own},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert planned.stdout.splitlines()[-1].strip() == ".venv/bin/mqan serve"


def test_code_in_the_guides_is_of_a_kind_that_is_run() -> None:
    guides = [REPOSITORY / "docs" / name for name in ("index.md", "tutorial.md")]
    guides += sorted((REPOSITORY / "docs" / "how-to").glob("*.md"))
    for page in guides:
        lines = page.read_text().splitlines()
        opened = [line for line in lines if line.startswith("```")][::2]
        assert set(opened) <= {"```sh", "```python", "```text", "```json"}, page
        assert [line for line in lines if line.startswith("    ") and "curl" in line] == [], page
        assert any(line in ("```sh", "```python") for line in opened), f"{page} has no example"


@pytest.mark.parametrize(
    ("shown_as", "shown", "printed", "is_right"),
    [
        ("text", "yes 0.93\n", "yes 0.92\n", True),
        ("text", "yes 0.93\n", "yes 0.71\n", False),
        ("text", "yes 0.93\n", "no 0.93\n", False),
        ("text", "yes\n", "yes\nno\n", False),
        ("json", '{"a": 0.5}', '{"a": 0.51, "b": 1}', True),
        ("json", '{"a": 0.5}', '{"a": 0.6}', False),
        ("json", '{"a": 0.5}', '{"b": 0.5}', False),
        ("json", '{"a": true}', '{"a": 1}', False),
        ("json", '{"a": 3}', '{"a": 4}', False),
        ("json", "[1, 2]", "[1]", False),
        ("json", '["...", 2]', "[1, 2, 3]", True),
        ("json", '["...", 4]', "[1, 2, 3]", False),
    ],
)
def test_what_is_printed_is_compared(shown_as: str, shown: str, printed: str, is_right: bool) -> None:
    assert is_as_shown(Block("sh", "", shown, shown_as), printed) is is_right
