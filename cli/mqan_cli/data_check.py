"""``mqan data check``: how many examples each split of each task has, and whether gold answers survive the way back."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mqan_cli.errors import make_folder
from mqan_data.files import DatasetError, MissingFileError, in_words
from mqan_data.tasks import Task, tasks_named
from mqan_training.roundtrip import WAYS, round_trip

TOLERATED = 0.005  # share of a task's examples whose gold answers may be lost, each of them named
_SPLITS = ("train", "validation", "test")
_NAMED = 10  # losses that are named on the terminal, a task


def check_data(data: Path, names: list[str], output: Path | None) -> bool:
    """Read every split of tasks, print and write what was found; return whether all is well, but for ``TOLERATED``."""
    tasks = tasks_named(names)
    if output is not None:
        make_folder(output.parent)
    messages = Console(stderr=True)
    checks: list[dict[str, Any]] = []
    is_well = True
    for task in tasks:
        with messages.status(f"reading {task.name}"):
            check, is_within = check_task(task, data)
        checks.append(check)
        is_well = is_well and is_within and not check["error"]
    if not any(check["examples"] or check["error"] for check in checks):
        raise ValueError(f"{data} holds no files of {', '.join(check['task'] for check in checks) or 'no task'}")
    _print(checks)
    if output is not None:
        output.write_text(json.dumps(checks, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        messages.print(f"wrote {output}")
    for check in checks:
        if check["error"]:
            messages.print(f"mqan: {check['error']}", markup=False, highlight=False, soft_wrap=True)
    return is_well


def check_task(task: Task, data: Path) -> tuple[dict[str, Any], bool]:
    """Count the examples of every split of a task; send the gold answers of validation, else of train, round.

    Return what was found, by split, and whether no more answers are lost than is tolerated.
    """
    check: dict[str, Any] = {"task": task.name, "metric": task.metric, "examples": {}, "dropped": {}, "missing": {}}
    check |= {"error": None, "round_trip": None}
    is_within = True
    for split in ("validation", "train", "test"):
        if split not in task.splits:
            continue
        dropped: Counter[str] = Counter()
        try:
            examples = task.read(data / task.folder, split, dropped)
            if check["round_trip"] is None and split != "test":
                trip = round_trip(task, examples)
                check["round_trip"] = {"split": split, "lost": trip.num_lost, **asdict(trip)}
                check["examples"][split], is_within = trip.num_examples, trip.is_within(TOLERATED)
            else:
                check["examples"][split] = sum(1 for _ in examples)
        except MissingFileError as error:
            check["missing"][split] = str(error)
            continue
        except DatasetError as error:
            check["error"] = str(error)
            break
        except ValueError as error:  # there are no examples, which is told without saying of what
            check["error"] = f"{task.name}, {split}: {error}"
            break
        if dropped:
            check["dropped"][split] = dict(dropped)
    return check, is_within


def _print(checks: list[dict[str, Any]]) -> None:
    table = Table("task", *_SPLITS, "metric", *(f"gold {way}" for way in WAYS), "lost", "longest answer")
    for column in (*table.columns[1:4], *table.columns[5:]):
        column.justify = "right"
    notes: list[str] = []
    for check in checks:
        name, counts, metric, trip = check["task"], check["examples"], check["metric"], check["round_trip"]
        told = ["-"] * 4
        if trip is not None:
            scores = [f"{trip['scores'][way][metric]:.2f}" for way in WAYS]
            told = [*scores, f"{trip['lost']:,}", f"{trip['longest_answer']} tokens"]
        if counts:
            table.add_row(name, *(f"{counts[s]:,}" if s in counts else "-" for s in _SPLITS), metric, *told)
        notes += [f"{name}, {split}: {in_words(dropped)}" for split, dropped in check["dropped"].items()]
        losses = trip["losses"] if trip else []
        for loss in losses[:_NAMED]:
            where = f"{name}, {trip['split']} {loss['id']}, {loss['way']}"
            notes.append(f"{where}: {loss['reason']}: {loss['gold']!r} came back as {loss['text']!r}")
        if len(losses) > _NAMED:
            notes.append(f"{name}: {len(losses) - _NAMED:,} more; --output FILE names all")
    notes += [f"{c['task']}: not there: {', '.join(c['missing'])}" for c in checks if c["examples"] and c["missing"]]
    skipped = [(c["task"], next(iter(c["missing"].values()))) for c in checks if not c["examples"] and not c["error"]]
    notes += [f"{name}: skipped: {reason.removeprefix(f'{name}: ')}" for name, reason in skipped]
    Console(width=None if Console().is_terminal else 160).print(table)
    if notes:
        print("\n".join(notes))
