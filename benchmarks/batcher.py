"""What benchmarks share: a batcher with the sizes that a server has on a CPU."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from mqan_core.request import Request
from mqan_serving.observability.metrics import Metrics
from mqan_serving.service.batching import Batcher, Stepper


@asynccontextmanager
async def open_batcher(stepper: Stepper[Request], num_threads: int) -> AsyncIterator[Batcher[Request]]:
    """Open a batcher over threads of its own, and close it."""
    with ThreadPoolExecutor(num_threads) as executor:
        batcher: Batcher[Request] = Batcher(
            stepper,
            executor,
            Metrics(),
            num_threads=num_threads,
            max_batch_size=4,
            max_batch_tokens=8192,
            max_running_tokens=16384 * num_threads,
        )
        yield batcher
        await batcher.close()
