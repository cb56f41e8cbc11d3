"""Measure what batches in flight cost and gain, in process: ``make bench``.

1. Many requests of SQuAD's length at once: answers a second, against one thread of the bare engine on the same requests
   times the number of threads. What is missing is the cost of batching, of reading texts and of Python.
2. A mix of one-word answers and long ones: the waiting time of the one-word answers, with requests that join and leave
   between steps, and with whole batches. The network is untrained and never ends an answer by itself.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import asyncio
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batcher import open_batcher
from endless import make_endless

from mqan_core.answer import Answer, AnswerToken
from mqan_core.request import Request
from mqan_runtime.interface import AnswerEngine, open_engine
from mqan_serving.service.batching import Batcher, Stepper
from mqan_serving.service.timeline import Timeline

SENTENCE = "The harbour office keeps a list of every ship that entered the bay between March and late October of {}. "
WORDS = SENTENCE.lower().split()
IN_FLIGHT = 64
LONG_STEPS = 60


def main() -> int:
    """Run both; exit 1 when one misses its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--at-least", type=float, default=0.9, help="required share of the bare engine's rate")
    parser.add_argument("--at-most", type=float, default=0.25, help="allowed share of the wait with whole batches")
    arguments = parser.parse_args()
    engine = open_engine(arguments.bundle, provider="cpu", num_threads=1)
    share = measure_rate(engine, arguments.threads, arguments.seconds)
    with tempfile.TemporaryDirectory() as folder:
        endless = make_endless(Path(folder))
    ratio = measure_wait(endless, arguments.threads, arguments.seconds)
    return 0 if share >= arguments.at_least and ratio <= arguments.at_most else 1


def measure_rate(engine: AnswerEngine, num_threads: int, seconds: float) -> float:
    """Print and return the answers a second with many in flight, as a share of the threads' bare rate."""
    rng = random.Random(1)
    texts = [(make_context(rng, rng.randint(4, 10)), "Which ships does the list name?") for _ in range(200)]
    requests = [engine.read(*text) for text in texts]
    endless = itertools.cycle(texts)

    async def ask(batcher: Batcher[Request]) -> None:
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


def measure_wait(engine: AnswerEngine, num_threads: int, seconds: float) -> float:
    """Print the waits of one-word answers beside long ones; return the ratio of the 99th percentiles."""
    rng = random.Random(2)
    reviews = [" ".join(rng.choices(WORDS, k=20)) for _ in range(100)]
    articles = [make_context(rng, 10) for _ in range(100)]

    async def ask_short(batcher: Batcher[Request]) -> None:
        await batcher.answer(engine.read(rng.choice(reviews), "Is this review negative or positive?"), 1, Timeline())

    async def ask_long(batcher: Batcher[Request]) -> None:
        await batcher.answer(engine.read(rng.choice(articles), "What is the summary?"), LONG_STEPS, Timeline())

    callers = [ask_short, ask_long] * (IN_FLIGHT // 2)
    print(f"one-word answers beside as many of {LONG_STEPS} steps, {IN_FLIGHT} in flight: wait of the one-word answers")
    found = {}
    for name, stepper in (("whole batches", WholeBatches(engine)), ("in flight", engine)):
        waits = run_load(stepper, num_threads, seconds, callers)
        short = sorted(wait for place in range(0, IN_FLIGHT, 2) for wait in waits[place])
        answered = sum(map(len, waits)) / seconds
        found[name] = statistics.quantiles(short, n=100)[98]
        print(
            f"  {name:14} p50 {1000 * statistics.median(short):7.1f} ms   p99 {1000 * found[name]:7.1f} ms   "
            f"{answered:6.1f} answers a second in all"
        )
    ratio = found["in flight"] / found["whole batches"]
    print(f"  ratio of p99   {ratio:.2f}")
    return ratio


def make_context(rng: random.Random, num_sentences: int) -> str:
    """Make a context of so many sentences."""
    return "".join(SENTENCE.format(rng.randint(1800, 2000)) for _ in range(num_sentences))


def bare_rate(engine: AnswerEngine, requests: Sequence[Request], seconds: float) -> float:
    """Answer one by one; return answers a second."""
    started, number = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        engine.answer([requests[number % len(requests)]], [10])
        number += 1
    return number / (time.perf_counter() - started)


def run_load(
    stepper: Stepper[Request],
    num_threads: int,
    seconds: float,
    callers: Sequence[Callable[[Batcher[Request]], Awaitable[None]]],
) -> list[list[float]]:
    """Let callers ask again and again for some seconds; return the waits of each."""

    async def run() -> list[list[float]]:
        async with open_batcher(stepper, num_threads) as batcher:
            end = time.perf_counter() + seconds

            async def call(caller: Callable[[Batcher[Request]], Awaitable[None]]) -> list[float]:
                waits = []
                while (started := time.perf_counter()) < end:
                    await caller(batcher)
                    waits.append(time.perf_counter() - started)
                return waits

            return list(await asyncio.gather(*map(call, callers)))

    return asyncio.run(run())


@dataclass
class Ended:
    """A batch that has been answered already."""

    answers: list[tuple[Any, Any]]
    num_tokens: int
    num_steps: int = 0


class WholeBatches:
    """An engine that answers a batch to the end of its longest answer, as before there were batches in flight."""

    def __init__(self, stepper: Stepper[Request]) -> None:
        self._stepper = stepper

    def start(self, requests: Sequence[Request], max_answer_tokens: Sequence[int], keys: Sequence[Any]) -> Ended:
        """Answer requests to the last."""
        decoding = self._stepper.start(requests, max_answer_tokens, keys)
        answers: list[tuple[Any, Any]] = []
        while len(answers) < len(requests):
            answers += self._stepper.step(decoding)
        return Ended(answers, decoding.num_tokens)

    def step(self, decoding: Ended) -> Sequence[tuple[Any, Any]]:
        """Return the answers."""
        return decoding.answers

    def decided(self, decoding: Ended, told: Mapping[Any, int]) -> Sequence[tuple[Any, Sequence[AnswerToken]]]:
        """Tell nothing early."""
        return []

    def write(self, ended: Any) -> Answer:
        """Write one."""
        return self._stepper.write(ended)

    def drop(self, decoding: Ended, keys: Collection[Any]) -> None:
        """Forget answers."""
        decoding.answers = [(key, answer) for key, answer in decoding.answers if key not in keys]

    def merge(self, decodings: Sequence[Ended]) -> Ended:
        """Never needed: everything ends at its first step."""
        raise AssertionError("a whole batch takes one step")


if __name__ == "__main__":
    sys.exit(main())
