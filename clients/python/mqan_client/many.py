"""Many questions in one call: several at a time, one result for each, in the caller's order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, as_completed
from queue import Empty, SimpleQueue
from threading import Thread

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
    asked: list[Future[Result]] = [Future() for _ in given]
    waiting: SimpleQueue[tuple[Future[Result], Pair]] = SimpleQueue()
    for item in zip(asked, given, strict=True):
        waiting.put(item)
    for _ in range(min(concurrency, len(given))):
        # not those of a ThreadPoolExecutor: the interpreter waits for them when it ends, as after Ctrl-C
        Thread(target=_work, args=(one, waiting), name="mqan-client", daemon=True).start()
    try:
        for done in as_completed(asked):
            done.result()  # what is no ClientError ends the call
            if progress is not None:
                progress(1)
    finally:
        for future in asked:
            future.cancel()  # after an error nobody waits for what is under way
    return [done.result() for done in asked]


def _work(one: Callable[[Pair], Result], waiting: SimpleQueue[tuple[Future[Result], Pair]]) -> None:
    """Ask pair after pair until none waits; those whose result nobody wants any more are left out."""
    while True:
        try:
            future, pair = waiting.get_nowait()
        except Empty:
            return
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(one(pair))
        except BaseException as error:  # told to the caller
            future.set_exception(error)


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
