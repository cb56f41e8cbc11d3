"""The notebook of the folder examples, with the model in this repository: it runs, and shows what it shows when run."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOK = REPOSITORY / "examples" / "tickets.ipynb"


def shown(notebook: Any) -> list[list[str]]:
    """Return what each cell prints and shows, words and whole numbers alone: probabilities depend on the processor."""
    texts: list[list[str]] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            plain = [output.get("text") or output["data"]["text/plain"] for output in outputs]
            texts.append([" ".join(re.sub(r"\d\.\d+", "0.0", text).split()) for text in plain])
    return texts


def test_the_notebook_shows_what_it_shows_when_run(default_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQAN_SERVER", f"grpc://{default_server.rpc}")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    kept, run = (
        nbformat.reads(  # type: ignore[no-untyped-call]
            NOTEBOOK.read_text(encoding="utf-8"), as_version=4
        )
        for _ in range(2)
    )
    NotebookClient(run, timeout=60, resources={"metadata": {"path": NOTEBOOK.parent}}).execute()
    expected, found = shown(kept), shown(run)
    assert found == expected, f"run it anew: jupyter execute --inplace {NOTEBOOK.relative_to(REPOSITORY)}"
    assert any("48213" in text for cell in found for text in cell)
