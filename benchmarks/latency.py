"""Measure what an answer costs by the length of its context, and in batches: ``--plot FILE.svg``.

One core, the shipped bundle, at most four words of answer. All sizes of a table take turns. What is bounded is how cost
grows with the context: ten times the tokens may take at most ``--at-most`` times as long.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import platform
import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from turns import QUESTION, flat, ratio, take_turns

from mqan_core.text.tokens import read_tokens
from mqan_runtime.engine import Engine

CONTEXT_TOKENS = (25, 50, 100, 200, 400, 800, 1600, 4000)
BATCH_SIZES = (1, 2, 4, 8, 16, 32)
USUAL_CONTEXT, USUAL_ANSWER = 150, 4
LONG, SHORT = 4000, 400  # tokens whose costs are compared

Table = dict[int, float]


def main() -> int:
    """Print the tables; exit 1 when the cost grows faster than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--at-most", type=float, default=11.0, help="most that ten times the context may cost")
    parser.add_argument("--plot", type=Path, help="SVG to draw the tables into")
    given = parser.parse_args()
    engine = Engine.open(given.bundle, provider="cpu", num_threads=1)
    print(f"{datetime.now(UTC):%Y-%m-%d}, one core of: {processor()}")

    contexts = {n: partial(engine.answer, [make_request(engine, n)], [USUAL_ANSWER]) for n in CONTEXT_TOKENS}
    by_context, growth = measure(contexts, given.runs)
    show(f"tokens of the context ({USUAL_ANSWER} of the answer)", by_context)
    print(f"  {LONG} tokens cost {growth:.1f} times {SHORT} (at most {given.at_most:g})")

    usual = make_request(engine, USUAL_CONTEXT)
    batches = {n: partial(engine.answer, [usual] * n, [USUAL_ANSWER] * n) for n in BATCH_SIZES}
    whole, _ = measure(batches, given.runs)
    by_batch = {n: ms / n for n, ms in whole.items()}
    show("questions in a batch: ms for each of them", by_batch)
    hours = by_context[SHORT] * 1e6 / 3.6e6
    print(f"a million answers about {SHORT} tokens take {hours:.1f} core-hours, one by one")
    if given.plot is not None:
        plot(given.plot, by_context, by_batch)
    return 0 if growth <= given.at_most else 1


def measure(ways: Mapping[int, Callable[[], object]], runs: int) -> tuple[Table, float]:
    """Return the median milliseconds of each size, and how much more the long one takes, where both are there."""
    times = take_turns({str(size): call for size, call in ways.items()}, runs)
    table = {size: statistics.median(flat(times[str(size)])) for size in ways}
    growth = ratio(times[str(LONG)], times[str(SHORT)]) if LONG in ways else 0.0
    return table, growth


def make_request(engine: Engine, num_tokens: int) -> Any:
    """Make a request with a context of exactly so many tokens, some of its words repeated."""
    rng = random.Random(num_tokens)
    text = " ".join(f"w{rng.randrange(num_tokens)}" for _ in range(2 * num_tokens))
    cut = read_tokens(text)[num_tokens - 1].end
    return engine.read(text[:cut], QUESTION)


def show(title: str, table: Table) -> None:
    """Print a table of milliseconds."""
    print(title)
    for size, ms in table.items():
        print(f"  {size:5}  {ms:8.2f} ms")


def plot(path: Path, *tables: Table) -> None:
    """Draw the tables side by side, both axes logarithmic."""
    matplotlib.rcParams["svg.hashsalt"] = "mqan"  # the same numbers give the same file
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    labels: Sequence[str] = ("tokens of the context", "questions in a batch")
    for place, (label, table) in enumerate(zip(labels, tables, strict=True)):
        axes = figure.add_subplot(1, 2, place + 1)
        axes.plot(list(table), list(table.values()), marker="o")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.set_ylabel("ms for each answer")
        axes.set_xticks(list(table), labels=[f"{size:,}" for size in table], rotation=45)
        axes.xaxis.set_minor_locator(NullLocator())
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which(FuncFormatter(lambda ms, _: f"{ms:g}" if f"{ms:.0e}"[0] in "1257" else ""))
        axes.grid(visible=True, which="both", alpha=0.2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})


def processor() -> str:
    """Return what the machine computes with."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
