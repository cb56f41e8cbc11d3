"""Time bundles on real questions, one at a time on one core, in turns: 128 of SQuAD, 200 sentences of SST.

A model that can choose is offered SST's two labels; another is told them by the question alone. Reading the text into
words is part of the time, which is the processor's, so that others on the machine count less. Memory is what the
process holds more after a bundle was opened and has answered.

    python benchmarks/bundles.py --data DIR BUNDLE...
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from squad import read_questions

from mqan_core.answering import AnsweringBundle
from mqan_core.example import Choice
from mqan_core.options import Options
from mqan_runtime.interface import AnswerEngine, open_engine
from mqan_training.data.readers.registry import task_named

NUM_SQUAD, SQUAD_EVERY, NUM_SST = 128, 80, 200
LABELS = (Choice("negative"), Choice("positive"))
LIMIT = 50  # answer tokens


@dataclass(frozen=True, slots=True)
class Opened:
    """A bundle that is open.

    Attributes:
        name: its folder.
        engine: what runs it.
        open_s: seconds to open it, the first time.
        memory_mib: what it holds.
    """

    name: str
    engine: AnswerEngine
    open_s: float
    memory_mib: float


def main() -> int:
    """Print a table, one row a bundle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    squad = read_questions(given.data, SQUAD_EVERY)[:NUM_SQUAD]
    sst = read_sentences(given.data)
    opened = [open_bundle(folder) for folder in given.bundles]
    times: dict[str, dict[str, list[float]]] = {some.name: {"squad": [], "sst": []} for some in opened}
    for _ in range(given.rounds):
        for task, texts in (("squad", squad), ("sst", sst)):
            for some in opened:
                choices = LABELS if task == "sst" and isinstance(some.engine.bundle, AnsweringBundle) else ()
                times[some.name][task] += time_answers(some.engine, texts, choices)
    print(
        f"{len(squad)} questions of SQuAD, {len(sst)} sentences of SST, {given.rounds} rounds; "
        "means of processor time, one core"
    )
    print("| bundle | precision | SQuAD ms | SST ms | open s | MiB |\n|---|---|---:|---:|---:|---:|")
    for some in opened:
        means = {task: statistics.mean(values) for task, values in times[some.name].items()}
        print(
            f"| {some.name} | {some.engine.precision} | {means['squad']:.1f} | {means['sst']:.2f} | "
            f"{some.open_s:.2f} | {some.memory_mib:.0f} |"
        )
    return 0


def open_bundle(folder: Path) -> Opened:
    """Open a bundle and let it answer once."""
    before = _resident_mib()
    begun = time.perf_counter()
    engine = open_engine(folder, provider="cpu", num_threads=1)
    open_s = time.perf_counter() - begun
    engine.answer([engine.read("The kettle is in the kitchen.", "Where is the kettle?")], [LIMIT])
    return Opened(str(folder), engine, open_s, _resident_mib() - before)


def read_sentences(data: Path) -> list[tuple[str, str]]:
    """Return sentences of SST's validation set and the question about them."""
    task = task_named("sst")
    examples = islice(task.read(data / task.folder, "validation"), NUM_SST)
    return [(example.context, example.question) for example in examples]


def time_answers(engine: AnswerEngine, texts: Sequence[tuple[str, str]], choices: Sequence[Choice]) -> list[float]:
    """Return the milliseconds of processor time of each answer; the first is given once more before."""
    options = Options(choices=tuple(choices))

    def ask(context: str, question: str) -> Any:
        return engine.answer([engine.read(context, question, options)], [LIMIT])

    ask(*texts[0])
    times = []
    for text in texts:
        begun = time.thread_time()
        ask(*text)
        times.append(1000 * (time.thread_time() - begun))
    return times


def _resident_mib() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    sys.exit(main())
