"""Score and time a bundle with 8-bit products in both graphs, in one, and in none: what each choice costs and gains.

Prints a table: milliseconds of one answer on one core, answers that are equal to float32's, and each task's own metric,
on its first ``--limit`` examples.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import sys
from collections.abc import Callable
from functools import partial
from operator import eq
from pathlib import Path

from turns import CONTEXT, QUESTION, flat, take_turns

from mqan_core.bundle import Bundle, open_bundle
from mqan_evaluation.evaluate import answer_with_engine, evaluate_task
from mqan_runtime.engine import Engine
from mqan_training.data.readers.registry import tasks_named

TASKS = "squad,squad_unanswerable,sst,product_reviews,woz,qasrl,zre,wikisql,multinli,sick,rte,mwsc"
ANSWER_TOKENS, CALLS = 4, 96


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
    print(f"| products | ms | equal | {' | '.join(names)} |\n|---|---:|---:|{'---:|' * len(names)}", flush=True)
    scores: dict[str, list[float]] = {}
    answers: dict[str, list[str]] = {}
    for name, engine in engines.items():
        answer = answer_with_engine(engine)
        results = [
            evaluate_task(answer, engine.read, task, given.data, limit=given.limit, threads=2)
            for task in tasks_named(names)
        ]
        scores[name] = [result.own_score for result in results]
        answers[name] = [record["answer"] for result in results for record in result.predictions]
        equal = statistics.mean(map(eq, answers[name], answers["float32"]))
        row = " | ".join(f"{score:.1f}" for score in scores[name])
        print(f"| {name} | {times[name]:.1f} | {100 * equal:.1f} % | {row} |", flush=True)
    lost = max(full - fast for full, fast in zip(scores["float32"], scores["int8"], strict=True))
    print(f"8-bit products cost at most {lost:.2f} points")
    return 0 if lost <= given.at_most else 1


def make_engines(bundle: Bundle, *, mixed: bool) -> dict[str, Engine]:
    """Return an engine of each kind, by name."""
    engines = {name: Engine(bundle, provider="cpu", precision=name) for name in ("float32", "int8")}
    full, fast = engines["float32"].loop, engines["int8"].loop
    for name, encoder, step in (("int8 encoder", fast, full), ("int8 step", full, fast)) if mixed else ():
        engines[name] = engine = Engine(bundle, provider="cpu", precision="float32")
        engine.loop._encoder, engine.loop._step = encoder._encoder, step._step
    return engines


def time_engines(engines: dict[str, Engine]) -> dict[str, float]:
    """Return the median milliseconds of one answer on one core; the engines take turns."""
    request = next(iter(engines.values())).read(CONTEXT, QUESTION)
    ways: dict[str, Callable[[], object]] = {
        name: partial(engine.answer, [request], [ANSWER_TOKENS]) for name, engine in engines.items()
    }
    return {name: statistics.median(flat(turns)) for name, turns in take_turns(ways, CALLS).items()}


if __name__ == "__main__":
    sys.exit(main())
