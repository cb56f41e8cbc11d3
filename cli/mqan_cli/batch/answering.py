"""Rows answered in their order, with few of them in memory: by processes that each open a bundle, or by a server."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mqan_cli.answering import explain, open_client
from mqan_cli.asked import for_client
from mqan_cli.batch.inputs import Row
from mqan_cli.batch.plan import Plan
from mqan_cli.batch.running import Cells, cell_of, cell_of_field, line_of
from mqan_cli.errors import CommandError
from mqan_client import Client, ClientError, OverloadedError, Retries, UnauthenticatedError, UnavailableError

if TYPE_CHECKING:
    from mqan_cli.local import Worker

ROWS_TOGETHER: Final = 32  # rows that a process answers at a time, and then hands over
_ROUNDS: Final = 3  # of them for each process, on their way
_CALLS: Final = 16  # to a server at a time
_ATTEMPTS: Final = 10  # of a call to a server that is full
_TIMEOUT_S: Final = 120.0

Parts = Iterator[list[str]]  # lines of the journal, some at a time


def answering(
    rows: Iterator[Row], url: str | None, folder: Path, plan: Plan, number: int | None
) -> AbstractContextManager[Parts]:
    """Let a server, or as many processes as there are cores, answer rows, or ``number`` at a time."""
    if url is not None:
        return by_server(rows, url, plan, number or _CALLS)
    return by_processes(rows, folder, plan, number or num_cores())


def num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def by_processes(rows: Iterator[Row], folder: Path, plan: Plan, number: int) -> Iterator[Parts]:
    """Answer rows by processes that each open the bundle; raise ``CommandError`` if one of them is ended."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(number, context, initializer=_begin, initargs=(folder, plan))
    try:
        yield _in_order(rows, lambda some: pool.submit(_answer, some), ROWS_TOGETHER, _ROUNDS * number)
    except BrokenProcessPool:
        raise CommandError("a process that answers was ended; the same command goes on") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


_open: "Callable[[], Worker]"


def _begin(folder: Path, plan: Plan) -> None:
    global _open
    _open = cache(partial(open_worker, folder, plan))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _answer(rows: Sequence[Row]) -> list[str]:
    return _open().answer_rows(rows)


def open_worker(folder: Path, plan: Plan) -> "Worker":
    from mqan_cli.local import Worker

    return Worker(folder, plan)


@contextmanager
def by_server(rows: Iterator[Row], url: str, plan: Plan, concurrency: int) -> Iterator[Parts]:
    """Let a server answer rows, some at a time; raise ``CommandError`` if it takes none."""
    opener = partial(Client, timeout_s=_TIMEOUT_S, retries=Retries(max_attempts=_ATTEMPTS))
    pool = ThreadPoolExecutor(concurrency)
    with open_client(opener, url) as client:  # what is on its way fails when it is closed
        try:
            yield _in_order(rows, lambda some: pool.submit(_ask, client, plan, some[0]), 1, 2 * concurrency)
        except ClientError as error:
            raise CommandError(explain(error, url)) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ask(client: Client, plan: Plan, row: Row) -> list[str]:
    if row.error is not None:
        return [line_of(row, {}, row.error)]
    cells: Cells = {}
    failures = []
    asked: list[Any] = [for_client(fields) for fields in plan.questions.values()]
    try:
        found = client.answer_questions(row.text, asked) if asked else []
        for (name, fields), one in zip(plan.questions.items(), found, strict=True):
            if isinstance(one, ClientError):
                failures.append(f"{name}: {one}")
            else:
                cells[name] = cell_of(one, fields, one.citations())
        if plan.schema is not None:
            filled = client.fill_record(row.text, plan.schema)
            cells |= {name: cell_of_field(field) for name, field in filled.fields.items()}
    except (OverloadedError, UnauthenticatedError, UnavailableError):  # no fault of the row
        raise
    except ClientError as error:
        failures.append(str(error))
    return [line_of(row, cells, "; ".join(failures) or None)]


def _in_order(rows: Iterator[Row], submit: Callable[[list[Row]], Future[list[str]]], size: int, most: int) -> Parts:
    """Yield what is answered in the order of the rows: ``size`` rows at a time, of which ``most`` are on their way."""
    waiting: deque[Future[list[str]]] = deque()
    while some := list(islice(rows, size)):
        waiting.append(submit(some))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
