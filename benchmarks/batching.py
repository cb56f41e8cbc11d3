"""Measure what batches in flight cost, in process: ``make bench``.

Many requests of SQuAD's length at once: answers a second, against one thread of the bare engine on the same requests
times the number of threads. What is missing is the cost of batching, of reading texts and of Python.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import asyncio
import itertools
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from mqan_runtime.engine import Engine
from mqan_runtime.steps import ReadRequest
from mqan_serving.observability.metrics import Metrics
from mqan_serving.service.admission import Pace
from mqan_serving.service.batching import Batcher
from mqan_serving.service.health import Watch
from mqan_serving.service.timeline import Timeline

SENTENCE = "The harbour office keeps a list of every ship that entered the bay between March and late October of {}. "
IN_FLIGHT = 64


def main() -> int:
    """Run; exit 1 when the share is below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--at-least", type=float, default=0.9, help="required share of the bare engine's rate")
    arguments = parser.parse_args()
    engine = Engine.open(arguments.bundle, provider="cpu", num_threads=1)
    share = measure_rate(engine, arguments.threads, arguments.seconds)
    return 0 if share >= arguments.at_least else 1


def measure_rate(engine: Engine, num_threads: int, seconds: float) -> float:
    """Print and return the answers a second with many in flight, as a share of the threads' bare rate."""
    rng = random.Random(1)
    texts = [(make_context(rng, rng.randint(4, 10)), "Which ships does the list name?") for _ in range(200)]
    requests = [engine.read(*text) for text in texts]
    endless = itertools.cycle(texts)

    async def ask(batcher: Batcher) -> None:
        await batcher.answer(engine.read(*next(endless)), 10, Timeline())

    alone, together = [], []
    for _ in range(2):  # in turn, so that a busy machine slows both
        alone.append(bare_rate(engine, requests, seconds / 2))
        waits = run_load(engine, num_threads, seconds / 2, [ask] * IN_FLIGHT)
        together.append(sum(map(len, waits)) / (seconds / 2))
    bare, batched = statistics.mean(alone), statistics.mean(together)
    share = batched / (bare * num_threads)
    print(f"{IN_FLIGHT} requests of {statistics.mean(r.num_context_tokens for r in requests):.0f} tokens in flight")
    print(f"  bare engine, one thread, one by one   {bare:7.1f} answers a second")
    print(f"  in flight, {num_threads} threads                  {batched:7.1f} answers a second")
    print(f"  share of {num_threads} threads' bare rate          {share:7.2f}")
    return share


def make_context(rng: random.Random, num_sentences: int) -> str:
    """Make a context of so many sentences."""
    return "".join(SENTENCE.format(rng.randint(1800, 2000)) for _ in range(num_sentences))


def bare_rate(engine: Engine, requests: Sequence[ReadRequest], seconds: float) -> float:
    """Answer one by one; return answers a second."""
    started, number = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        engine.answer([requests[number % len(requests)]], [10])
        number += 1
    return number / (time.perf_counter() - started)


def run_load(
    stepper: Engine,
    num_threads: int,
    seconds: float,
    callers: Sequence[Callable[[Batcher], Awaitable[None]]],
) -> list[list[float]]:
    """Let callers ask again and again for some seconds; return the waits of each."""

    async def run() -> list[list[float]]:
        async with open_batcher(stepper, num_threads) as batcher:
            end = time.perf_counter() + seconds

            async def call(caller: Callable[[Batcher], Awaitable[None]]) -> list[float]:
                waits = []
                while (started := time.perf_counter()) < end:
                    await caller(batcher)
                    if time.perf_counter() < end:  # else it was answered in more time than is measured
                        waits.append(time.perf_counter() - started)
                return waits

            return list(await asyncio.gather(*map(call, callers)))

    return asyncio.run(run())


@asynccontextmanager
async def open_batcher(stepper: Engine, num_threads: int) -> AsyncIterator[Batcher]:
    """Open a batcher with the sizes that a server has on a CPU, over threads of its own, and close it."""
    with ThreadPoolExecutor(num_threads) as executor:
        batcher: Batcher = Batcher(
            stepper,
            executor,
            Metrics(),
            Watch(60),
            Pace(),
            num_threads=num_threads,
            max_batch_size=4,
            max_batch_tokens=8192,
            max_running_tokens=16384 * num_threads,
        )
        yield batcher
        await batcher.close()


if __name__ == "__main__":
    sys.exit(main())
