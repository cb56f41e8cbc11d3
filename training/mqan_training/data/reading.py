"""Reads and numbers the examples of many tasks: from the cache, or on all cores into it."""

import multiprocessing
import os
import signal
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mqan_core.errors import MqanError
from mqan_training.data.cache import cached, is_cached
from mqan_training.data.dataset import PieceTable, TaskData, number_examples
from mqan_training.data.readers.registry import task_named

_BYTES_WORTH_PROCESSES = 16 * 2**20  # less is read before another process has started


@dataclass(frozen=True, slots=True)
class Portion:
    """What is read of a dataset.

    Attributes:
        task, split: which one.
        max_context_tokens, max_answer_tokens: examples with more are left out.
        cut_context_at: contexts are cut to this many tokens before that; None for never.
    """

    task: str
    split: str
    max_context_tokens: int
    max_answer_tokens: int
    cut_context_at: int | None = None

    @property
    def _limits(self) -> tuple[int | None, ...]:
        return (self.cut_context_at, self.max_context_tokens, self.max_answer_tokens)

    def is_cached(self, data: Path, cache: Path) -> bool:
        """Return whether the cache holds it as it is now; the file may still turn out to be damaged."""
        return is_cached(cache, task_named(self.task), data, self.split, self._limits)

    def num_bytes(self, data: Path) -> int:
        """Return the size of the dataset's files, those of other splits included."""
        folder = data / task_named(self.task).folder
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    def read(self, data: Path, table: PieceTable, cache: Path | None) -> TaskData:
        """Read and number the examples as decaNLP does, or take them from the cache.

        Raises:
            MissingFileError: a file of the dataset is not there.
            DatasetError: a row is malformed.
        """
        task = task_named(self.task)

        def number() -> TaskData:
            dropped: Counter[str] = Counter()
            numbered = number_examples(
                task.name,
                task.read(data / task.folder, self.split, dropped),
                table,
                cut_context_at=self.cut_context_at,
                max_context_tokens=self.max_context_tokens,
                max_answer_tokens=self.max_answer_tokens,
            )
            numbered.dropped.update(dropped)
            return numbered

        return cached(cache, task, data, self.split, self._limits, table, number)


def read_portions(
    portions: Sequence[Portion], data: Path, table: PieceTable, cache: Path | None
) -> Iterator[tuple[Portion, TaskData]]:
    """Yield the examples of each portion, in order; pieces get the same numbers however many processes read.

    Args:
        portions: what to read.
        data: folder of the datasets.
        table: gets the numbers of the pieces.
        cache: folder that keeps numbered examples; with one, what it lacks is first read into it on all cores.

    Raises:
        MissingFileError: a file of a dataset is not there.
        DatasetError: a row is malformed.
    """
    if cache is not None:
        _fill(portions, data, cache)
    for portion in portions:
        yield portion, portion.read(data, table, cache)


def _fill(portions: Sequence[Portion], data: Path, cache: Path) -> None:
    """Read what the cache lacks into it, if that is worth other processes."""
    sizes = {portion: portion.num_bytes(data) for portion in portions if not portion.is_cached(data, cache)}
    num_cores = (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # torchrun's own processes
    num_processes = min(num_cores, len(sizes))
    if num_processes < 2 or sum(sizes.values()) < _BYTES_WORTH_PROCESSES:
        return
    spawn = multiprocessing.get_context("spawn")  # a fork would inherit the locks of torch's threads
    # By default a process would take Ctrl-C for an error of what it reads, and go on with the next.
    pool = ProcessPoolExecutor(num_processes, spawn, signal.signal, (signal.SIGINT, signal.SIG_DFL))
    try:
        with pool:
            largest_first = sorted(sizes, key=lambda portion: -sizes[portion])
            for read in [pool.submit(_read_into_cache, portion, data, cache) for portion in largest_first]:
                read.result()
    except BrokenProcessPool:
        reason = "a process that read datasets has died, for want of memory perhaps"
        warnings.warn(f"{reason}; reading on in this one alone", RuntimeWarning, stacklevel=3)


def _read_into_cache(portion: Portion, data: Path, cache: Path) -> None:
    with suppress(MqanError):  # raised again, where it can be told, when the portion is read from the cache in vain
        portion.read(data, PieceTable(), cache)
