"""Numbered examples on disk, so that only the first start of a run tokenises.

One file a task, split and limits: safetensors with flat int32 arrays and the counts of pieces, and JSON with the pieces
that the numbers stand for, and what was left out. It is used only while the dataset's files (size and time of
change), the source of readers and tokenizer and the version of Unicode are what they were; anything else is read anew
and written over it.
"""

import hashlib
import inspect
import json
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import mqan_core.example
import mqan_core.sql
import mqan_core.state_change
import mqan_core.text
import mqan_training.data.dataset
import mqan_training.data.readers
from mqan_training.data.dataset import Int32Array, Item, PieceCounts, PieceTable, TaskData
from mqan_training.data.readers.task import Task

_FORMAT = "3"
_SOURCES = (  # and all readers
    *(mqan_core.text, mqan_core.example, mqan_core.sql, mqan_core.state_change),
    mqan_training.data.dataset,
)
_PARTS = ("context", "question", "answer")
_COUNTS = ("total", "not_in_context", "not_in_source")


def cached(
    cache: Path | None,
    task: Task,
    data: Path,
    split: str,
    limits: Sequence[int | None],
    table: PieceTable,
    read: Callable[[], TaskData],
) -> TaskData:
    """Return a task's numbered examples, from the cache if it holds them as they are now.

    Args:
        cache: folder of the cache; None for none.
        task: whose examples.
        data: folder of the datasets.
        split: which of its splits.
        limits: everything else that decides what ``read`` returns.
        table: gets the numbers of the pieces.
        read: reads and numbers the examples.
    """
    if cache is None:
        return read()
    signature = _signature(data / task.folder)
    path = _path(cache, task, split, limits)
    found = _load(path, signature, table)
    if found is not None:
        return found
    examples = read()
    _save(path, signature, examples, table)
    return examples


def _path(cache: Path, task: Task, split: str, limits: Sequence[int | None]) -> Path:
    limits_text = "-".join("all" if limit is None else str(limit) for limit in limits)
    return cache / f"{quote(task.name, safe='')}-{split}-{limits_text}.safetensors"


def _signature(folder: Path) -> str:
    digest = hashlib.sha256(f"{_FORMAT} {unicodedata.unidata_version}".encode())
    paths = [Path(inspect.getfile(module)) for module in _SOURCES]
    paths += sorted(Path(mqan_training.data.readers.__path__[0]).glob("*.py"))
    for path in paths:
        digest.update(path.read_bytes())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        status = path.stat()
        digest.update(f"{path.relative_to(folder)}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _save(path: Path, signature: str, data: TaskData, table: PieceTable) -> None:
    distinct: dict[int, int] = {}  # identity of a context's array -> its place; questions on one paragraph share it
    contexts: list[Int32Array] = []
    for item in data.items:
        if distinct.setdefault(id(item.context), len(contexts)) == len(contexts):
            contexts.append(item.context)
    rows = {
        "context": contexts,
        "question": [item.question for item in data.items],
        "answer": [item.answer for item in data.items],
    }
    flat = {part: np.concatenate([np.zeros(0, np.int32), *rows[part]]) for part in _PARTS}
    tensors: dict[str, npt.NDArray[np.generic]] = {
        "context_of": np.array([distinct[id(item.context)] for item in data.items], np.int32)
    }
    numbers = data.counts.pieces
    for part in _PARTS:
        tensors[part] = np.searchsorted(numbers, flat[part]).astype(np.int32)
        tensors[f"{part}_lengths"] = np.array([row.size for row in rows[part]], np.int32)
    tensors |= {name: getattr(data.counts, name) for name in _COUNTS}
    document = {
        "name": data.name,
        "pieces": [table.pieces[number] for number in numbers],
        "dropped": data.dropped,
    }
    tensors["json"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}.tmp")  # another run may write the same file
    save_file(tensors, str(aside), {"signature": signature})
    aside.replace(path)


def _load(path: Path, signature: str, table: PieceTable) -> TaskData | None:
    """Read a file of the cache; None when there is none, it is damaged or made from something else."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            if (file.metadata() or {}).get("signature") != signature:
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        document = json.loads(tensors["json"].tobytes())
    except (OSError, SafetensorError, KeyError, ValueError):
        return None
    number_of = table.numbers(document["pieces"])
    rows = {
        part: np.split(number_of[tensors[part]], np.cumsum(tensors[f"{part}_lengths"])[:-1])
        if tensors[f"{part}_lengths"].size
        else []
        for part in _PARTS
    }
    contexts = [rows["context"][place] for place in tensors["context_of"].tolist()]
    items = [Item(*parts) for parts in zip(contexts, rows["question"], rows["answer"], strict=True)]
    data = TaskData(document["name"], items, Counter(document["dropped"]))
    data.counts = PieceCounts(number_of, *(tensors[name] for name in _COUNTS))
    return data
