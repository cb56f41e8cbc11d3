"""Watch the memory of a process that answers many questions of random lengths: it must not grow.

The requests go through the batcher, as a server's do, many at once. Lengths have a long tail, and the memory of long
requests is given back after them, so that what is resident goes up and down: the median over the last quarter of
the requests is compared with that over the second: less than ``--percent`` more. Mean and most of each are printed too.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import asyncio
import random
import sys
import time
from pathlib import Path
from statistics import fmean, median

from batcher import open_batcher

from mqan_core.request import Request
from mqan_runtime.interface import AnswerEngine, open_engine
from mqan_serving.service.batching import Batcher
from mqan_serving.service.timeline import Timeline

IN_FLIGHT, SAMPLES = 32, 2000


def main() -> int:
    """Run; exit 1 when memory grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--percent", type=float, default=1.0, help="growth in the second half that is allowed")
    given = parser.parse_args()
    engine = open_engine(given.bundle, provider="cpu", num_threads=1)
    begun = time.monotonic()
    samples = asyncio.run(run(engine, given.requests))
    quarter = len(samples) // 4
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]
    growth = 100 * (median(last) / median(second) - 1)
    print(f"{given.requests:,} requests in {time.monotonic() - begun:.0f} s")
    print(
        "  "
        + "  ".join(f"{sample / 2**20:.1f}" for sample in samples[:: max(1, len(samples) // 10)])
        + "  MiB on the way"
    )
    for name, some in (("second", second), ("last", last)):
        middle, mean, most = (f"{size(some) / 2**20:.1f}" for size in (median, fmean, max))
        print(f"  {name} quarter: median {middle} MiB, mean {mean}, at most {most}")
    print(f"  median {growth:+.2f} %")
    return 0 if growth < given.percent else 1


async def run(engine: AnswerEngine, num_requests: int) -> list[int]:
    """Answer so many requests; return the resident bytes after each so many of them."""
    rng = random.Random(0)
    remaining = iter(range(num_requests))
    samples: list[int] = []

    async def call(batcher: Batcher[Request]) -> None:
        for number in remaining:
            context = " ".join(f"w{rng.randrange(5000)}" for _ in range(min(1500, int(rng.lognormvariate(3, 1)) + 1)))
            question = " ".join(f"q{rng.randrange(500)}" for _ in range(rng.randint(1, 12)))
            await batcher.answer(engine.read(context, question), rng.randint(1, 8), Timeline())
            if number % max(1, num_requests // SAMPLES) == 0:
                samples.append(resident_bytes())

    async with open_batcher(engine, os.cpu_count() or 1) as batcher:
        await asyncio.gather(*(call(batcher) for _ in range(IN_FLIGHT)))
    return samples


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
