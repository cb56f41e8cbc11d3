"""What the rest of the training code knows about a dataset."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mqan_core.example import Example


class Reader(Protocol):
    """Reads one split of a dataset, row by row."""

    def __call__(self, folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
        """Yield the examples of a split in file order.

        Args:
            folder: folder that directly contains the task's files.
            split: one of the task's splits.
            dropped: counts the rows that gave no example, and the fields left out, by reason.

        Raises:
            MissingFileError: a file is not there.
            DatasetError: a row is malformed.
            ValueError: the task has no such split.
        """


@dataclass(frozen=True, slots=True)
class Download:
    """One official file.

    Attributes:
        url: where the publisher (or decaNLP) has it.
        path: where it goes, below the task's folder.
        sha256: checksum in hex; None where no trusted one is known.
    """

    url: str
    path: str
    sha256: str | None = None


def downloads(url: str, sha256s: Mapping[str, str | None]) -> tuple[Download, ...]:
    """Return the files of one address, which keep their names, by their checksums."""
    return tuple(Download(url + name, name, sha256) for name, sha256 in sha256s.items())


@dataclass(frozen=True, slots=True)
class Task:
    """One dataset as a question-answering task.

    Attributes:
        name: what the command line and the recipes call it.
        folder: name of its folder below the data folder.
        splits: the splits the official files have, out of ``train``, ``validation`` and ``test``. ``test`` is for a
            final score only: never train on it, build a vocabulary from it or choose a checkpoint by it.
        metric: key into ``metrics.METRICS``; the number that counts for this task.
        read: reads one split.
        max_context_tokens: contexts are cut to this many tokens, as in decaNLP; None for never.
        sources: official files that ``mqan data get`` downloads.
    """

    name: str
    folder: str
    splits: tuple[str, ...]
    metric: str
    read: Reader
    max_context_tokens: int | None = None
    sources: tuple[Download, ...] = ()
