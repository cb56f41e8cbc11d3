"""``mqan data check``: how many examples each split of each task has, and whether gold answers survive the way back."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mqan_cli.errors import make_folder
from mqan_data.errors import DatasetError, MissingFileError
from mqan_data.files import in_words
from mqan_data.tasks import Task, tasks_named
from mqan_training.roundtrip import WAYS, RoundTrip, round_trip

TOLERATED = 0.005
"""Share of a task's examples whose gold answers may be lost, each of them named."""

_SPLITS = ("train", "validation", "test")
_NAMED = 10  # losses that are named on the terminal, a task


@dataclass(slots=True)
class TaskCheck:
    """The findings of one task; counts, what the reader dropped, and where files are missing are by split."""

    task: Task
    counts: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    checked: str | None = None
    trip: RoundTrip | None = None
    error: str = ""


def check_data(data: Path, names: list[str], output: Path | None) -> bool:
    """Read every split of tasks, print and write what was found; return whether all is well, but for ``TOLERATED``."""
    tasks = tasks_named(names)
    if output is not None:
        make_folder(output.parent)
    messages = Console(stderr=True)
    checks: list[TaskCheck] = []
    for task in tasks:
        with messages.status(f"reading {task.name}"):
            checks.append(check_task(task, data))
    if not any(check.counts or check.error for check in checks):
        raise ValueError(f"{data} holds no files of {', '.join(check.task.name for check in checks) or 'no task'}")
    _print(checks)
    if output is not None:
        document = json.dumps([_document(check) for check in checks], indent=2, ensure_ascii=False)
        output.write_text(document + "\n", encoding="utf-8")
        messages.print(f"wrote {output}")
    for check in checks:
        if check.error:
            messages.print(f"mqan: {check.error}", markup=False, highlight=False, soft_wrap=True)
    return not any(check.error for check in checks) and all(
        check.trip is None or check.trip.is_within(TOLERATED) for check in checks
    )


def check_task(task: Task, data: Path) -> TaskCheck:
    """Count the examples of every split of a task; send the gold answers of validation, else of train, round."""
    check = TaskCheck(task)
    for split in ("validation", "train", "test"):
        if split not in task.splits:
            continue
        dropped: Counter[str] = Counter()
        try:
            examples = task.read(data / task.folder, split, dropped)
            if check.trip is None and split != "test":
                check.trip = round_trip(task, examples)
                check.checked, check.counts[split] = split, check.trip.num_examples
            else:
                check.counts[split] = sum(1 for _ in examples)
        except MissingFileError as error:
            check.missing[split] = str(error)
            continue
        except DatasetError as error:
            check.error = str(error)
            break
        except ValueError as error:  # there are no examples, which is told without saying of what
            check.error = f"{task.name}, {split}: {error}"
            break
        if dropped:
            check.dropped[split] = dict(dropped)
    return check


def _print(checks: list[TaskCheck]) -> None:
    table = Table("task", *_SPLITS, "metric", *(f"gold {way}" for way in WAYS), "lost", "longest answer")
    for column in (*table.columns[1:4], *table.columns[5:]):
        column.justify = "right"
    for check in checks:
        if not check.counts:
            continue
        counts = [f"{check.counts[split]:,}" if split in check.counts else "-" for split in _SPLITS]
        trip = ["-"] * 4
        if check.trip is not None:
            scores = [f"{check.trip.scores[way][check.task.metric]:.2f}" for way in WAYS]
            trip = [*scores, f"{check.trip.num_lost:,}", f"{check.trip.longest_answer} tokens"]
        table.add_row(check.task.name, *counts, check.task.metric, *trip)
    Console(width=None if Console().is_terminal else 160).print(table)
    for check in checks:
        for split, dropped in check.dropped.items():
            print(f"{check.task.name}, {split}: {in_words(dropped)}")
        for loss in check.trip.losses[:_NAMED] if check.trip else ():
            where = f"{check.task.name}, {check.checked} {loss.id}, {loss.way}"
            print(f"{where}: {loss.reason}: {loss.gold!r} came back as {loss.text!r}")
        if check.trip and len(check.trip.losses) > _NAMED:
            print(f"{check.task.name}: {len(check.trip.losses) - _NAMED:,} more; --output FILE names all")
    for check in checks:
        if check.counts and check.missing:
            print(f"{check.task.name}: not there: {', '.join(check.missing)}")
    for check in checks:
        if not check.counts and not check.error:
            print(
                f"{check.task.name}: skipped: {next(iter(check.missing.values())).removeprefix(check.task.name + ': ')}"
            )


def _document(check: TaskCheck) -> dict[str, Any]:
    trip = check.trip
    return {
        "task": check.task.name,
        "metric": check.task.metric,
        "examples": check.counts,
        "dropped": check.dropped,
        "missing": check.missing,
        "error": check.error or None,
        "round_trip": None if trip is None else {"split": check.checked, "lost": trip.num_lost, **asdict(trip)},
    }
