"""Pools of examples that were drawn before, so that a run begins while its data is still being read."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mqan_data.formats.dataset_file import DATASETS, load_dataset

_KEPT: Final = 4  # pools before the newest; what is drawn ahead is among them


class KeptPools:
    """Files of pools of one run, told from those of other recipes, data and programs by a key."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder, self._key = folder, hashlib.sha256(key.encode()).hexdigest()[:16]

    def read(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Keep something, whole or not at all, whoever else writes it at the same time."""
        self._folder.mkdir(parents=True, exist_ok=True)
        aside = self._folder / f".{self._key}-{name}.{os.getpid()}"
        aside.write_bytes(content)
        aside.replace(self._path(name))

    def write_pool(self, number: int, content: bytes) -> None:
        """Keep a pool, and the first one and some before it."""
        self.write(f"pool-{number}", content)
        for path in self._folder.glob(f"{self._key}-pool-*"):
            if 0 < int(path.name.rpartition("-")[2]) < number - _KEPT:
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._key}-{name}"


def data_key(data: Path, names: Iterable[str]) -> str:
    """Return what tells the files of datasets, and the program that reads them, from others: sizes, times and code."""
    digest = hashlib.sha256()
    for path in sorted(DATASETS.parent.rglob("*")):
        if path.suffix in (".py", ".yaml"):
            digest.update(path.read_bytes())
    for folder in sorted({load_dataset(name).folder_in(data) for name in names}):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(f"{path}\0{path.stat().st_size}\0{path.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()
