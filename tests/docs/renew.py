"""Write into the documents and the notebook what they print with another model.

    python -m tests.docs.renew 127.0.0.1:8000 127.0.0.1:9000

asks the server of these addresses; names of pages after them renew only these. Read what has changed: sentences around
the blocks may no longer be true.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

from tests.docs.blocks import REPOSITORY, Block, is_as_shown, read_blocks, run_blocks
from tests.docs.test_blocks import PAGES, SERVE
from tests.docs.test_notebook import NOTEBOOK

_SCALAR: Final = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null')


def renewed(block: Block, printed: str) -> str:
    """Return what a page shows of a block that printed something else: of JSON the same fields, in its layout."""
    assert block.shown is not None
    if block.shown_as == "text":
        return printed
    now = _same_part(json.loads(block.shown), json.loads(printed))
    values = list(_scalars(now))
    if len(values) != len(list(_scalars(json.loads(block.shown)))):
        return json.dumps(now, ensure_ascii=False, indent=2) + "\n"
    left = iter(values)
    return _SCALAR.sub(lambda m: m[0] if m[1] else json.dumps(next(left), ensure_ascii=False), block.shown)


def _same_part(shown: Any, real: Any) -> Any:
    """Return of a value the part that was shown of the old one, with as many decimals."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return {name: _same_part(one, real[name]) for name, one in shown.items() if name in real}
    if isinstance(shown, list) and isinstance(real, list) and shown:
        if "..." in shown:
            return [one if one == "..." else _same_part(one, other) for one, other in zip(shown, real, strict=False)]
        return [_same_part(shown[min(i, len(shown) - 1)], one) for i, one in enumerate(real)]
    if isinstance(shown, float) and isinstance(real, float):
        return round(real, len(repr(shown).partition(".")[2]))
    return real


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _scalars(one)
    else:
        yield value


def _renew_page(page: Path, rest: str, rpc: str) -> bool:
    before = text = page.read_text(encoding="utf-8")
    blocks = [block for block in read_blocks(text) if block.code != SERVE]
    with tempfile.TemporaryDirectory() as folder:
        printed = run_blocks(blocks, rest, rpc, Path(folder))
    for block, real in zip(blocks, printed, strict=True):
        if block.shown is not None and not is_as_shown(block, real):
            begin = text.index(block.shown, text.index(block.code))
            text = text[:begin] + renewed(block, real) + text[begin + len(block.shown) :]
    page.write_text(text, encoding="utf-8")
    return text != before


def _renew_notebook(rpc: str) -> None:
    os.environ |= {"MQAN_SERVER": f"grpc://{rpc}", "TQDM_DISABLE": "1"}
    notebook: Any = nbformat.reads(NOTEBOOK.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": NOTEBOOK.parent}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    NOTEBOOK.write_text(nbformat.writes(notebook), encoding="utf-8")  # type: ignore[no-untyped-call]


def main() -> int:
    """Renew the notebook and all pages, or those named; print which changed. Return 1 if one could not be run."""
    rest, rpc, *names = sys.argv[1:]
    status = 0
    for page in [REPOSITORY / name for name in names] or PAGES:
        try:
            if _renew_page(page, rest, rpc):
                print(page.relative_to(REPOSITORY))
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print(f"{page.relative_to(REPOSITORY)} was not renewed: {error}", file=sys.stderr)
            status = 1
    if not names:
        _renew_notebook(rpc)
    return status


if __name__ == "__main__":
    sys.exit(main())
