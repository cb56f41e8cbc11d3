"""A run of ``mqan batch``: rows are answered into a journal, from which the output is written at the end.

The journal stands beside the output until then. It has a line for each row, so that a run that was killed can go on: of
the last line a part may be missing, and is dropped.
"""

import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mqan_cli.batch.inputs import Row, Rows
from mqan_cli.errors import CommandError

Entry = dict[str, Any]  # a row and what was answered: ``row``, ``text``, ``cells`` by name, and ``error``


Cells = dict[str, dict[str, Any]]
"""What was answered, by name: ``value``, ``probability`` and ``spans``, and of a scale ``expected``."""


def cell_of(answer: Any, asked: Mapping[str, Any], cited: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the cell of an answer, as a bundle or a client has it, with its citations."""
    value = list(answer.chosen) if asked.get("multiple") else answer.text if answer.answered else None
    spans = [(one["start_char_index"], one["end_char_index"]) for one in cited]
    cell = {"value": value, "probability": round(answer.probability, 4), "spans": spans}
    return cell if answer.expected is None else {**cell, "expected": round(answer.expected, 4)}


def cell_of_field(field: Any) -> dict[str, Any]:
    spans = [(span.start, span.end) for span in field.spans]
    probability = round(field.probability, 4)
    return {"value": field.value, "probability": probability, "spans": spans, "reason": field.reason}


def line_of(row: Row, cells: Mapping[str, Any], error: str | None) -> str:
    return json.dumps({"row": row.values, "text": row.text, "cells": cells, "error": error}) + "\n"


class Journal:
    """The journal of an output, which begins with what is asked. While it is open no other run can write it."""

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path = path
        self._head = (json.dumps(asked, sort_keys=True) + "\n").encode()
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise CommandError(f"another run writes {path}") from None
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror}") from None

    def go_on(self, rows: Iterator[Row]) -> int:
        """Return how many of the rows are answered, and take these from them; refuse answers to anything else."""
        number, end = 0, len(self._head) if self._file.readline() == self._head else 0
        for line in self._file:
            try:
                entry = json.loads(line if line.endswith(b"\n") else b"")
            except ValueError:  # cut, or what a machine that lost its power has left
                break
            if not end:
                self._refuse("has answers to another question, with another text or of another model or adapter")
            row = next(rows, None)
            if row is None or json.loads(line_of(row, {}, None)) != {**entry, "cells": {}, "error": None}:
                self._refuse(f"has another row {number + 1} than the input")
            number, end = number + 1, end + len(line)
        self._file.seek(end)
        self._file.truncate()
        self.append([] if end else [self._head.decode()])
        return number

    def append(self, lines: Iterable[str]) -> None:
        self._file.write("".join(lines).encode())
        self._file.flush()

    def __iter__(self) -> Iterator[Entry]:
        with self.path.open("rb") as file:
            file.readline()
            yield from map(json.loads, file)

    def close(self) -> None:
        self._file.close()

    def _refuse(self, what: str) -> None:
        raise CommandError(f"{self.path} {what}: remove it to begin anew, or give another --output")


def answer_all(
    rows: Rows, journal: Journal, answering: Callable[[Iterator[Row], int], AbstractContextManager[Iterator[list[str]]]]
) -> None:
    """Answer the rows that a journal has not, and say how far that is; ``answering`` is given both."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    stream = iter(rows)
    num_done = num_before = journal.go_on(stream)
    if num_done:
        print(f"mqan: going on after row {num_done:,}", file=sys.stderr)
    left = TimeRemainingColumn(elapsed_when_finished=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("rows, {task.fields[rate]:.1f} a second,"), left)
    with Progress(*columns, console=Console(stderr=True)) as progress, answering(stream, num_done) as parts:
        task = progress.add_task("", total=rows.count(), completed=num_done, rate=0.0)
        for lines in parts:
            journal.append(lines)
            num_done += len(lines)
            rate = (num_done - num_before) / max(1e-9, progress.tasks[0].elapsed or 0)
            progress.update(task, completed=num_done, rate=rate)
    num_failed = sum(entry["error"] is not None for entry in journal)
    failed = f", {num_failed:,} of them with an error" if num_failed else ""
    print(f"mqan: {num_done:,} rows{failed}", file=sys.stderr)
