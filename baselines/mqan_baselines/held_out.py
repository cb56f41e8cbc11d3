"""Rows of test files, which no task may be trained on: STS-B has pairs of MRPC, and other sets repeat their own."""

from collections.abc import Iterator, Mapping, Sequence

from mqan_baselines.formats import Row
from mqan_baselines.tasks import BaselineTask, baseline_task
from mqan_training.data.held_out import HeldOut
from mqan_training.runlog import console


def held_out_rows(tests: Mapping[str, Sequence[Row]]) -> HeldOut:
    """Return the sentences and pairs of tasks' test files.

    A text of a pair is held out beside the other one only: many questions of QQP stand in both files, in other pairs.

    Args:
        tests: the rows of the file of each task.
    """
    held_out = HeldOut()
    for name, rows in tests.items():
        task = baseline_task(name)
        for row in rows:
            for texts in _as_read(task, row):
                held_out.add(texts, shortest=None)
    return held_out


def not_held_out(task: BaselineTask, rows: Sequence[Row], held_out: HeldOut) -> list[Row]:
    """Return the rows of a task of which neither the sentence nor a pair is held out."""
    return [row for row in rows if not any(map(held_out.holds, _as_read(task, row)))]


def print_left_out(counts: Mapping[str, int]) -> None:
    """Print how many rows of which task were left out, if any were."""
    if told := ", ".join(f"{count} of {task}" for task, count in counts.items() if count):
        console.print(f"rows left out of the training, since they stand in a test file: {told}")


def _as_read(task: BaselineTask, row: Row) -> Iterator[tuple[str, ...]]:
    """Yield the sentence or the pair of a row; of a ranking, the question with each of its candidates."""
    if task.form == "ranking":
        question, *candidates = row.texts
        yield from ((question, candidate) for candidate in candidates)
    else:
        yield row.texts
