"""Reading on all cores gives what reading alone gives, piece numbers included, and tells the same errors."""

import json
import operator
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mqan_training.data import reading
from mqan_training.data.dataset import PieceTable, TaskData
from mqan_training.data.reading import Portion, read_portions
from mqan_training.errors import DatasetError

FILES = {"train": "train.jsonl", "validation": "val.jsonl"}
PORTIONS = [Portion(f"jsonl:{name}", split, 50, 9, 6) for name in ("animals", "towns") for split in FILES]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two tasks of two splits, which share some words and not others."""
    for name in ("animals", "towns"):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        for split in FILES:
            rows = [
                {
                    "context": f"The {split} set of {name} has row {i}.",
                    "question": f"Which row of {name}?",
                    "answer": str(i),
                }
                for i in range(5)
            ]
            (folder / FILES[split]).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path / "data"


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any amount of data is worth a second process."""
    monkeypatch.setattr(reading, "_BYTES_WORTH_PROCESSES", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def rows_of(found: Iterator[tuple[Portion, TaskData]]) -> list[list[list[int]]]:
    parts = ("context", "question", "answer")
    return [[getattr(item, part).tolist() for item in data.items for part in parts] for _, data in found]


@pytest.mark.usefixtures("two_cores")
def test_other_processes_read_into_the_cache_what_this_one_would(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, together = PieceTable(), PieceTable()
    expected = rows_of(read_portions(PORTIONS, data, alone, None))

    def fail(*_: object, **__: object) -> TaskData:
        raise AssertionError("this process tokenised by itself")

    monkeypatch.setattr(reading, "number_examples", fail)
    assert rows_of(read_portions(PORTIONS, data, together, tmp_path / "cache")) == expected
    assert together.pieces == alone.pieces
    assert all(len(rows) == 15 for rows in expected)
    assert max(np.concatenate([row for row in expected[0]])) < len(alone.pieces)


@pytest.mark.usefixtures("two_cores")
def test_a_malformed_row_is_told_as_ever(data: Path, tmp_path: Path) -> None:
    (data / "towns" / "val.jsonl").write_text('{"context": "No question."}\n', encoding="utf-8")
    with pytest.raises(DatasetError, match=r"val\.jsonl:1"):
        list(read_portions(PORTIONS, data, PieceTable(), tmp_path / "cache"))


@pytest.mark.usefixtures("two_cores")
def test_processes_that_die_are_told_of_and_not_missed(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "signal", SimpleNamespace(signal=operator.truediv, SIGINT=1, SIG_DFL=0))
    with pytest.warns(RuntimeWarning, match="reading on in this one alone"):
        assert len(list(read_portions(PORTIONS, data, PieceTable(), tmp_path / "cache"))) == 4


def test_little_data_is_read_here(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ProcessPoolExecutor", None)
    assert len(list(read_portions(PORTIONS, data, PieceTable(), tmp_path / "cache"))) == 4
