"""Time a bundle on a GPU: one-word answers a second, and a captured step against the same one uncaptured.

Needs the extra `gpu` and a CUDA device.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mqan_runtime.device import STEPS_A_LOOK, DeviceLoop
from mqan_runtime.engine import Engine

CONTEXT = (
    "The harbour office keeps a list of every ship that entered the bay between March and late October, and it sells "
    "copies to all visitors."
)
QUESTION = "Is this list long or short?"
RUNS = 20
ROWS = (1, 8, 32, 128, 512)


def main() -> int:
    """Print the figures; exit 1 when they miss what is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--faster", type=float, default=3.0, help="required ratio uncaptured / captured step")
    parser.add_argument("--answers", type=float, default=20_000, help="required one-word answers a second")
    given = parser.parse_args()
    engine = Engine.open(given.bundle, provider="cuda")
    request = engine.read(CONTEXT, QUESTION)
    rates = {rows: rows / seconds(partial(engine.answer, [request] * rows, [1] * rows)) for rows in ROWS}
    print("one-word answers a second: " + ", ".join(f"{rate:,.0f} at {rows}" for rows, rate in rates.items()))
    is_fast = max(rates.values()) >= given.answers
    if isinstance(engine.loop, DeviceLoop):
        captured_ms, eager_ms = step_ms(engine), step_ms(Engine(engine.bundle, provider="cuda", places=()))
        print(f"buffers of captured steps: {engine.loop.num_bytes >> 20} MiB")
        print(f"step: captured {captured_ms:.3f} ms, uncaptured {eager_ms:.3f} ms: {eager_ms / captured_ms:.1f} times")
        is_fast = is_fast and eager_ms >= given.faster * captured_ms
    return 0 if is_fast else 1


def step_ms(engine: Engine) -> float:
    """Return the median milliseconds of a step of one answer."""
    request = engine.read(CONTEXT, QUESTION)
    times = []
    for _ in range(RUNS):
        decoding = engine.start([request], [100], [0])
        while decoding.num_live and decoding.num_steps < 10 * STEPS_A_LOOK:
            before = decoding.num_steps
            begun = time.perf_counter()
            engine.step(decoding)
            times.append(1000 * (time.perf_counter() - begun) / max(1, decoding.num_steps - before))
    return statistics.median(times)


def seconds(run: Callable[[], object]) -> float:
    """Return the median seconds of a call."""
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
