"""Score and time a bundle with 8-bit products in both graphs, in one, and in none: what each choice costs and gains.

Prints a table. The scores are each task's own metric, on its first ``--limit`` examples.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mqan_core.bundle import Bundle, open_bundle
from mqan_core.request import Request
from mqan_export.engine import Engine
from mqan_export.evaluate import answer_with_engine, evaluate_task
from mqan_training.readers.registry import tasks_named

SENTENCE = "The harbour office keeps a list of every ship that entered the bay between March and late October of 1923. "
CONTEXT = SENTENCE * 7
QUESTION = "Which ships does the list of the harbour office name for the month of October?"
TASKS = "squad,squad_unanswerable,sst,product_reviews,woz,qasrl,zre,wikisql,multinli,sick,rte,mwsc"
ANSWER_TOKENS, TURN, TURNS = 4, 10, 12


def main() -> int:
    """Print the table; exit 1 when 8-bit products cost more than ``--at-most`` points on a task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", default=TASKS)
    parser.add_argument("--limit", type=int, default=None, help="examples of each task; all by default")
    parser.add_argument("--at-most", type=float, default=0.5, help="points that 8-bit products may cost on a task")
    parser.add_argument("--mixed", action="store_true", help="also with 8-bit products in one graph only")
    given = parser.parse_args()
    engines = make_engines(open_bundle(given.bundle), mixed=given.mixed)
    times = time_engines(engines)
    names = given.tasks.split(",")
    print(f"| products | ms | {' | '.join(names)} |\n|---|---:|{'---:|' * len(names)}", flush=True)
    scores: dict[str, list[float]] = {}
    for name, engine in engines.items():
        answer, vocabulary = answer_with_engine(engine), engine.bundle.vocabulary
        scores[name] = [
            evaluate_task(answer, vocabulary, task, given.data, limit=given.limit, threads=2).own_score
            for task in tasks_named(names)
        ]
        print(f"| {name} | {times[name]:.1f} | {' | '.join(f'{score:.1f}' for score in scores[name])} |", flush=True)
    lost = max(full - fast for full, fast in zip(scores["float32"], scores["int8"], strict=True))
    print(f"8-bit products cost at most {lost:.2f} points")
    return 0 if lost <= given.at_most else 1


def make_engines(bundle: Bundle, *, mixed: bool) -> dict[str, Engine]:
    """Return an engine of each kind, by name."""
    engines = {name: Engine(bundle, provider="cpu", precision=name) for name in ("float32", "int8")}  # type: ignore[arg-type]
    full, fast = engines["float32"].loop, engines["int8"].loop
    for name, encoder, step in (("int8 encoder", fast, full), ("int8 step", full, fast)) if mixed else ():
        engines[name] = engine = Engine(bundle, provider="cpu", precision="float32")
        engine.loop._encoder, engine.loop._step = encoder._encoder, step._step
    return engines


def time_engines(engines: dict[str, Engine]) -> dict[str, float]:
    """Return the median milliseconds of one answer on one core; the engines take turns."""
    some: Sequence[Request] = [next(iter(engines.values())).read(CONTEXT, QUESTION)]
    times: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(TURNS):
        for name, engine in engines.items():
            for number in range(TURN):
                begun = time.perf_counter()
                engine.answer(some, [ANSWER_TOKENS])
                if number > 1:  # the first bring the weights back into the caches
                    times[name].append(1000 * (time.perf_counter() - begun))
    return {name: statistics.median(values) for name, values in times.items()}


if __name__ == "__main__":
    sys.exit(main())
