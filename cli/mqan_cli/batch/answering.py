"""Rows answered in their order, with few of them in memory: by processes that each open a bundle, or by a server."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mqan_cli.answering import BundleAnswerer, explain, open_client
from mqan_cli.asked import Document, for_client
from mqan_cli.batch.inputs import Row
from mqan_cli.batch.plan import Plan
from mqan_cli.batch.running import line_of
from mqan_cli.errors import CommandError

if TYPE_CHECKING:
    from mqan_client import Answer as ClientAnswer
    from mqan_client import Client
    from mqan_core.answer.types import Answer as CoreAnswer
    from mqan_serving.contract.questions import Question

ROWS_TOGETHER: Final = 32
"""Rows that a process answers at a time, and then hands over."""
_ROUNDS: Final = 3  # of them for each process, on their way
_MOST_TOGETHER: Final = 16  # questions that are answered at once
_MOST_TOKENS: Final = 16_384  # of their texts, each as long as the longest: what is in memory grows with them
_ATTEMPTS: Final = 10  # of a call to a server that is full
_TIMEOUT_S: Final = 120.0

Cells = dict[str, dict[str, Any]]
"""What was answered, by name: ``value``, ``probability`` and ``spans``, and of a scale ``expected``."""
Parts = Iterator[list[str]]
"""Lines of the journal, some at a time."""


def _cell(answer: "CoreAnswer | ClientAnswer", asked: Document, spans: Iterable[tuple[int, int]]) -> dict[str, Any]:
    value: Any = list(answer.chosen) if asked.get("multiple") else answer.text if answer.answered else None
    cell = {"value": value, "probability": round(answer.probability, 4), "spans": list(spans)}
    return cell if answer.expected is None else {**cell, "expected": round(answer.expected, 4)}


def _field(field: Any) -> dict[str, Any]:
    spans = [(span.start, span.end) for span in field.spans]
    return {"value": field.value, "probability": round(field.probability, 4), "spans": spans}


class Worker:
    """A bundle that this process has opened."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        from mqan_serving.records.schema import read_schema

        opened = BundleAnswerer(folder, "cpu")
        self._engine, self._adapters = opened.engine, opened.adapters
        self._questions = plan.questions
        self._fields = () if plan.schema is None else tuple(read_schema(plan.schema))

    def answer(self, rows: Sequence[Row]) -> list[str]:
        """Return the lines of rows for the journal."""
        from mqan_core.errors import InputError

        found: list[dict[str, CoreAnswer | str]] = [{} for _ in rows]
        waiting = []
        for row, of_row in zip(rows, found, strict=True):
            for name, question in self._ask(row.text) if row.error is None else ():
                most = min(question.max_answer_tokens or self._engine.max_answer_tokens, self._engine.max_answer_tokens)
                try:
                    request = self._engine.read(row.text, question.question, question.options)
                    waiting.append((of_row, name, request, most))
                except InputError as error:
                    of_row[name] = error.message
        waiting.sort(key=lambda one: int(one[2].num_context_tokens), reverse=True)
        while waiting:
            number = max(1, min(_MOST_TOGETHER, _MOST_TOKENS // max(1, waiting[0][2].num_context_tokens)))
            together, waiting = waiting[:number], waiting[number:]
            for (of_row, name, _, _), one in zip(together, self._answer(together), strict=True):
                of_row[name] = one
        return [self._line(row, of_row) for row, of_row in zip(rows, found, strict=True)]

    def _ask(self, text: str) -> list[tuple[str, "Question"]]:
        from mqan_serving.contract.questions import Question
        from mqan_serving.records.filling import RecordRequest, ask_fields

        questions = [
            (name, self._adapters.adapt(Question(context=text, **asked))) for name, asked in self._questions.items()
        ]
        of_fields = ask_fields(RecordRequest(text, self._fields, None))
        return [*questions, *zip((field.name for field in self._fields), of_fields, strict=True)]

    def _answer(self, asked: Sequence[tuple[Any, ...]]) -> "Sequence[CoreAnswer | str]":
        try:
            return self._engine.answer([request for _, _, request, _ in asked], [most for *_, most in asked])
        except Exception as error:  # of one of them, which must not end the others
            return [repr(error)] if len(asked) == 1 else [found for one in asked for found in self._answer([one])]

    def _line(self, row: Row, found: "dict[str, CoreAnswer | str]") -> str:
        from mqan_serving.contract.answers import cite
        from mqan_serving.records.filling import RecordRequest, fill_fields
        from mqan_serving.service.answer_service import knows_of

        answers = {name: one for name, one in found.items() if not isinstance(one, str)}
        cells: Cells = {}
        for name in self._questions.keys() & answers.keys():
            spans = ((one["start_char_index"], one["end_char_index"]) for one in cite(answers[name]))
            cells[name] = _cell(answers[name], self._questions[name], spans)
        fields = tuple(field for field in self._fields if field.name in answers)
        record = RecordRequest(row.text, fields, None)
        filled = fill_fields(record, [answers[field.name] for field in fields], knows_of(self._engine.bundle))
        cells |= {field.name: _field(field) for field in filled.fields}
        failures = [f"{name}: {one}" for name, one in found.items() if isinstance(one, str)]
        return line_of(row, cells, row.error or "; ".join(failures) or None)


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


_open: Callable[[], Worker]


def _begin(folder: Path, plan: Plan) -> None:
    global _open
    _open = cache(lambda: Worker(folder, plan))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, however it did."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _answer(rows: Sequence[Row]) -> list[str]:
    return _open().answer(rows)


@contextmanager
def by_server(rows: Iterator[Row], url: str, plan: Plan, concurrency: int) -> Iterator[Parts]:
    """Let a server answer rows, some at a time; raise ``CommandError`` if it takes none."""
    from mqan_client import Client, ClientError, Retries

    opener = partial(Client, timeout_s=_TIMEOUT_S, retries=Retries(max_attempts=_ATTEMPTS))
    pool = ThreadPoolExecutor(concurrency)
    with open_client(opener, url) as client:  # what is on its way fails when it is closed
        try:
            yield _in_order(rows, lambda some: pool.submit(_ask, client, plan, some[0]), 1, 2 * concurrency)
        except ClientError as error:
            raise CommandError(explain(error, url)) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ask(client: "Client", plan: Plan, row: Row) -> list[str]:
    from mqan_client import ClientError, OverloadedError, UnauthenticatedError, UnavailableError

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
                spans = ((cited["start_char_index"], cited["end_char_index"]) for cited in one.citations())
                cells[name] = _cell(one, fields, spans)
        if plan.schema is not None:
            filled = client.fill_record(row.text, plan.schema)
            cells |= {name: _field(field) for name, field in filled.fields.items()}
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
