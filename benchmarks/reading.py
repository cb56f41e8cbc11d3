"""Time the reading and batching of all data, first without a cache, then with the one that left: ``--data DIR``.

Every example of every split of every task that is in the folder is read, tokenised, numbered and put into a batch
once; none is too long. Reading takes all cores, batching one. Each of the two starts is a process of its own, so that
its memory can be told apart: its own peak, and for each core the largest of those that read for it. The word vectors
are random (speed does not depend on them) and of the default recipe's sizes.
"""

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from mqan_core.vocab import Vocabulary
from mqan_training.batching import Batcher, TaskStream
from mqan_training.data.dataset import PieceTable, generator_pieces
from mqan_training.data.readers.registry import TASKS
from mqan_training.data.readers.task import Task
from mqan_training.data.reading import Portion, read_portions
from mqan_training.errors import MissingFileError
from mqan_training.model.embeddings import Embedder, StaticVectors

NUM_WORDS, NUM_GENERATED, STATIC_WIDTH = 30_000, 8_000, 300
BATCH_TOKENS = 10_000
NUM_CORES = len(os.sched_getaffinity(0))
NO_LIMIT = 1_000_000  # tokens; nothing is left out for its length


@dataclass
class Start:
    """What one start measured; times in seconds, ``cpu_s`` those of all its processes."""

    examples: int
    dropped: int
    tokens: int
    batches: int
    read_s: float
    prepare_s: float
    batch_s: float
    cpu_s: float
    peak_gib: float


def main() -> int:
    """Run a cold and a warm start; exit 1 when one takes longer or more memory than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MQAN_DATA", "data")))
    parser.add_argument("--cold-s", type=float, default=240.0, help="seconds that reading and batching may take")
    parser.add_argument(
        "--warm-s", type=float, default=20.0, help="seconds from a start to the first batch, from the cache"
    )
    parser.add_argument("--gib", type=float, default=4.0, help="memory that either may take")
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)  # set in the processes that are started below
    arguments = parser.parse_args()
    if arguments.cache:
        print(json.dumps(asdict(start(arguments.data, arguments.cache))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--data", str(arguments.data), "--cache", folder]
        cold, warm = (Start(**json.loads(subprocess.check_output(command))) for _ in range(2))
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    what = f"{cold.examples:,} examples, {cold.tokens:,} tokens, {cold.batches:,} batches"
    print(f"{what}; {cold.dropped} left out; cache of {size / 2**20:.0f} MiB; {NUM_CORES} cores")
    for name, run in (("cold", cold), ("warm", warm)):
        print(
            f"  {name}: read {run.read_s:5.1f} s   vocabulary and word index {run.prepare_s:4.1f} s   "
            f"batches {run.batch_s:5.1f} s   of the CPU {run.cpu_s:5.1f} s   at most {run.peak_gib:.2f} GiB"
        )
    in_time = cold.read_s + cold.prepare_s + cold.batch_s <= arguments.cold_s
    in_time &= warm.read_s + warm.prepare_s <= arguments.warm_s
    return 0 if in_time and max(cold.peak_gib, warm.peak_gib) <= arguments.gib else 1


def start(data: Path, cache: Path) -> Start:
    """Read everything, prepare batching, and draw every example once."""
    torch.set_num_threads(1)
    times = [time.perf_counter()]
    table = PieceTable()
    portions = [
        Portion(task.name, split, NO_LIMIT, NO_LIMIT, task.max_context_tokens)
        for task in TASKS.values()
        for split in task.splits
        if is_there(task, split, data)
    ]
    found = [examples for _, examples in read_portions(portions, data, table, cache)]
    times.append(time.perf_counter())
    rows = np.random.default_rng(0).integers(-127, 128, (NUM_WORDS, STATIC_WIDTH), dtype=np.int8)
    vectors = StaticVectors(tuple(f"w{i}" for i in range(NUM_WORDS)), rows, np.full(NUM_WORDS, 0.01, np.float32))
    vocabulary = Vocabulary(generator_pieces(found, table, NUM_GENERATED), vectors.words)
    batcher = Batcher(table, vocabulary, Embedder(vectors, 10_000, 50))
    times.append(time.perf_counter())
    num_tokens = num_batches = 0
    for examples in found:
        stream = TaskStream(examples, BATCH_TOKENS, seed=0)
        num_drawn = 0
        while num_drawn < len(examples.items):  # an epoch draws each example once
            items = stream.draw()
            num_drawn += len(items)
            num_batches += 1
            num_tokens += batcher.collate(examples.name, items).num_tokens
    times.append(time.perf_counter())
    own, of_others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    read_s, prepare_s, batch_s = np.diff(times).tolist()
    return Start(
        examples=sum(len(examples.items) for examples in found),
        dropped=sum(examples.dropped.total() for examples in found),
        tokens=num_tokens,
        batches=num_batches,
        read_s=read_s,
        prepare_s=prepare_s,
        batch_s=batch_s,
        cpu_s=own.ru_utime + own.ru_stime + of_others.ru_utime + of_others.ru_stime,
        peak_gib=(own.ru_maxrss + NUM_CORES * of_others.ru_maxrss) / 2**20,
    )


def is_there(task: Task, split: str, data: Path) -> bool:
    """Return whether the folder has the files of a split."""
    try:
        next(iter(task.read(data / task.folder, split)))
    except MissingFileError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
