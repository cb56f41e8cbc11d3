"""The cache gives back what was read, and only while nothing that it was made from has changed."""

import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mqan_core import sql as sql_module
from mqan_core import state_change as state_module
from mqan_core import text as text_module
from mqan_core.example import Example
from mqan_training.data import dataset as dataset_module
from mqan_training.data import readers
from mqan_training.data.cache import cached
from mqan_training.data.dataset import PieceTable, TaskData, number_examples
from mqan_training.data.readers.task import Task

CONTEXT = "Ada wrote notes on the Analytical Engine."
EXAMPLES = [
    Example("t", "1", CONTEXT, "Who wrote notes?", ("Ada",)),
    Example("t", "2", CONTEXT, "What did Ada write?", ("notes", "Notes")),
    Example("t", "3", "Dull, and 'far' too long… 🦊", "Is this review negative or positive?", ("negative",)),
    Example("t", "4", " ", "Left out?", ("yes",)),
]


class Reading:
    """A task in a folder, and how often it was read."""

    def __init__(self, data: Path, examples: list[Example]) -> None:
        self.data = data
        self.count = 0
        self.examples = examples
        (data / "t").mkdir(parents=True)
        (data / "t" / "train.txt").write_text("one")

        def rows(*_: object) -> Iterator[Example]:
            return iter(())

        self.task = Task("t", "t", ("train",), "em", rows)

    def get(self, table: PieceTable, limit: int | None = 50) -> TaskData:
        def read() -> TaskData:
            self.count += 1
            return number_examples(
                "t", self.examples, table, cut_context_at=limit, max_context_tokens=50, max_answer_tokens=9
            )

        return cached(self.data / "cache", self.task, self.data, "train", (limit, 50, 9), table, read)


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return Reading(tmp_path, EXAMPLES)


def in_text(data: TaskData, table: PieceTable) -> list[list[str]]:
    return [
        ["".join(table.pieces[n] for n in part) for part in (item.context, item.question, item.answer)]
        for item in data.items
    ]


def counted(data: TaskData, table: PieceTable) -> dict[str, tuple[int, ...]]:
    columns = (data.counts.total, data.counts.not_in_context, data.counts.not_in_source)
    return {table.pieces[n]: tuple(int(column[i]) for column in columns) for i, n in enumerate(data.counts.pieces)}


def test_what_comes_back_is_what_was_read(reading: Reading) -> None:
    first_table, second_table = PieceTable(), PieceTable()
    second_table.number("a piece that another task numbered first")
    first, second = reading.get(first_table), reading.get(second_table)
    assert reading.count == 1
    assert len(second.items) == 3
    assert in_text(second, second_table) == in_text(first, first_table)
    assert (second.name, second.dropped) == (first.name, first.dropped)
    assert second.dropped == {"empty context": 1}
    assert second.items[0].context is second.items[1].context, "one array for a shared paragraph"
    assert counted(second, second_table) == counted(first, first_table)
    assert counted(TaskData("t", second.items), second_table) == counted(first, first_table), "counted anew"
    assert all(array.dtype == np.int32 for item in second.items for array in (item.context, item.question, item.answer))


def test_without_a_folder_nothing_is_kept(reading: Reading) -> None:
    expected = TaskData("t")
    assert cached(None, reading.task, reading.data, "train", (), PieceTable(), lambda: expected) is expected
    assert sorted(path.name for path in reading.data.iterdir()) == ["t"]


def rewrite(path: Path) -> None:
    path.write_text("two")
    os.utime(path, ns=(1, 1))


def touch(path: Path) -> None:
    os.utime(path, ns=(5, 5))


def add(path: Path) -> None:
    (path.parent / "more.txt").write_text("")


@pytest.mark.parametrize("change", [rewrite, touch, add, Path.unlink])
def test_a_changed_dataset_is_read_again(reading: Reading, change: Callable[[Path], None]) -> None:
    reading.get(PieceTable())
    change(reading.data / "t" / "train.txt")
    reading.get(PieceTable())
    assert reading.count == 2
    reading.get(PieceTable())
    assert reading.count == 2, "the new examples took the place of the old ones"


def test_other_limits_are_read_apart(reading: Reading) -> None:
    assert len(reading.get(PieceTable(), 2).items[0].context) == 2
    assert len(reading.get(PieceTable(), 50).items[0].context) > 2
    assert reading.count == 2


@pytest.mark.parametrize("module", [text_module, dataset_module, sql_module, state_module])
def test_a_changed_tokenizer_is_noticed(
    reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    """Tokens, their numbering, and the writing of queries and states decide what is in the cache."""
    reading.get(PieceTable())
    source = Path(str(module.__file__))
    changed = tmp_path / source.name
    changed.write_bytes(source.read_bytes() + b"\n# changed\n")
    monkeypatch.setattr(module, "__file__", str(changed))
    reading.get(PieceTable())
    assert reading.count == 2


def test_a_changed_reader_is_noticed(reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading.get(PieceTable())
    folder = tmp_path / "readers"
    shutil.copytree(readers.__path__[0], folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(readers, "__path__", [str(folder)])
    reading.get(PieceTable())
    assert reading.count == 1, "the same source in another place"
    (folder / "squad.py").write_text("# changed")
    reading.get(PieceTable())
    assert reading.count == 2


def test_another_version_of_unicode_is_noticed(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizer goes by the categories of characters, which a newer Python may change."""
    reading.get(PieceTable())
    monkeypatch.setattr(unicodedata, "unidata_version", "0.0.0")
    reading.get(PieceTable())
    assert reading.count == 2


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0{}", b"garbage" * 40])
def test_a_damaged_file_is_read_again(reading: Reading, content: bytes) -> None:
    table = PieceTable()
    expected = in_text(reading.get(table), table)
    (file,) = (reading.data / "cache").iterdir()
    file.write_bytes(content)
    table = PieceTable()
    assert in_text(reading.get(table), table) == expected
    assert reading.count == 2


def test_a_task_without_examples_is_kept_too(tmp_path: Path) -> None:
    reading = Reading(tmp_path, [EXAMPLES[3]])
    assert reading.get(PieceTable()).items == reading.get(PieceTable()).items == []
    assert reading.count == 1
