"""Many questions in one call: several at a time, one result for each, in the caller's order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed

from mqan_client.errors import ClientError
from mqan_client.results import Answer

DEFAULT_CONCURRENCY = 16

Pair = tuple[str, str]
Result = Answer | ClientError
Progress = Callable[[int], object]


def ask_many(
    ask: Callable[[str, str], Answer], pairs: Iterable[Pair], concurrency: int, progress: Progress | None
) -> list[Result]:
    """Ask all pairs, at most so many at a time; an error takes the place of an answer.

    Raises:
        ValueError: the concurrency is below 1.
    """
    _check(concurrency)

    def one(pair: Pair) -> Result:
        try:
            return ask(*pair)
        except ClientError as error:
            return error

    given = list(pairs)  # before any is asked: a fault of the caller's own iterable asks nothing
    threads = ThreadPoolExecutor(concurrency, "mqan-client")
    try:
        asked = [threads.submit(one, pair) for pair in given]
        for done in as_completed(asked):
            done.result()  # what is no ClientError ends the call
            if progress is not None:
                progress(1)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)  # after an error nobody waits for what is under way
    return [done.result() for done in asked]


async def ask_many_async(
    ask: Callable[[str, str], Awaitable[Answer]], pairs: Iterable[Pair], concurrency: int, progress: Progress | None
) -> list[Result]:
    """Do the same from asyncio.

    Raises:
        ValueError: the concurrency is below 1.
    """
    _check(concurrency)
    free = asyncio.Semaphore(concurrency)

    async def one(pair: Pair) -> Result:
        async with free:
            try:
                result: Result = await ask(*pair)
            except ClientError as error:
                result = error
        if progress is not None:
            progress(1)
        return result

    given = list(pairs)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(pair)) for pair in given]
    except BaseExceptionGroup as group_error:
        raise group_error.exceptions[0] from None  # as the other client raises it
    return [task.result() for task in tasks]


def _check(concurrency: int) -> None:
    if concurrency < 1:
        raise ValueError(f"concurrency is {concurrency}; it must be at least 1")
