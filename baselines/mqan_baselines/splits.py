"""Rows to train on and to report on, drawn by a seed, none trained on that stands in a test file; and mini-batches.

STS-B has pairs of MRPC, and other sets repeat their own. A text of a pair is held out beside the other one only: many
questions of QQP stand in both files, in other pairs.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from mqan_baselines.formats import Row
from mqan_baselines.tasks import BaselineTask, Split, baseline_task
from mqan_data.held_out import HeldOut
from mqan_training.runlog import console

T = TypeVar("T")
_TOGETHER: Final = 20  # batches of which the rows are sorted by length


def read_splits(
    names: Sequence[str],
    data: Path,
    splits: Mapping[Split, Sequence[Split]],
    most_rows: int,
    seed: int,
    others: Sequence[str] = (),
) -> dict[str, dict[Split, list[Row]]]:
    """Return of each task the rows to train on and those of its test split; print how many were left out.

    ``splits`` says what there is to be beside ``test``, and what it is made of; rows of ``others`` are held out, too.
    """
    tests = {name: baseline_task(name).rows(data, "test") for name in (*names, *others)}
    held_out = held_out_rows(tests)
    rows: dict[str, dict[Split, list[Row]]] = {}
    left_out: dict[str, int] = {}
    for name in names:
        task = baseline_task(name)
        read = {split: task.rows(data, *parts) for split, parts in splits.items()}
        drawn = {split: draw(found, most_rows, seed, task.together) for split, found in read.items()}
        kept = {split: not_held_out(task, found, held_out) for split, found in drawn.items()}
        left_out[name] = sum(len(drawn[split]) - len(kept[split]) for split in drawn)
        rows[name] = {**kept, "test": draw(tests[name], most_rows, seed, task.together)}
    if told := ", ".join(f"{count} of {name}" for name, count in left_out.items() if count):
        console.print(f"rows left out of the training, since they are in a test file: {told}")
    if empty := [f"{split} of {name}" for name, of in rows.items() for split, found in of.items() if not found]:
        raise ValueError(f"there are no rows: {', '.join(empty)}")
    return rows


def draw(rows: Sequence[T], most: int, seed: int, together: int = 1) -> list[T]:
    """Return so many rows at random, in their own order; all of them if ``most`` is 0 or there are no more.

    Rows that stand so many ``together`` are drawn together, one group at least.
    """
    if not most or len(rows) <= most:
        return list(rows)
    starts = random.Random(seed).sample(range(0, len(rows), together), max(most // together, 1))  # noqa: S311
    return [row for start in sorted(starts) for row in rows[start : start + together]]


def held_out_rows(tests: Mapping[str, Sequence[Row]]) -> HeldOut:
    held_out = HeldOut()
    for name, rows in tests.items():
        for row in rows:
            for texts in _as_read(baseline_task(name), row):
                held_out.add(texts, shortest=None)
    return held_out


def not_held_out(task: BaselineTask, rows: Sequence[Row], held_out: HeldOut) -> list[Row]:
    """Return the rows of a task of which neither the sentence nor a pair is held out."""
    return [row for row in rows if not any(map(held_out.holds, _as_read(task, row)))]


def _as_read(task: BaselineTask, row: Row) -> Iterator[tuple[str, ...]]:
    if task.form == "ranking":
        question, *candidates = row.texts
        yield from ((question, candidate) for candidate in candidates)
    else:
        yield row.texts


def mini_batches(lengths: Sequence[int], size: int, generator: random.Random) -> list[list[int]]:
    """Return the places of all rows in batches, at random: each row once, rows of a batch nearly of one length."""
    order = list(range(len(lengths)))
    generator.shuffle(order)
    batches = []
    for first in range(0, len(order), size * _TOGETHER):
        together = sorted(order[first : first + size * _TOGETHER], key=lengths.__getitem__)
        batches += [together[start : start + size] for start in range(0, len(together), size)]
    generator.shuffle(batches)
    return batches


def endless_batches(lengths: Sequence[int], size: int, generator: random.Random) -> Iterator[list[int]]:
    """Yield batches for ever: all rows once, then all again in another order; ValueError if there are none."""
    if not lengths:
        raise ValueError("there are no rows to train on")
    while True:
        yield from mini_batches(lengths, size, generator)
