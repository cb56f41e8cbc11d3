"""Questions of validation sets, for benchmarks."""

from itertools import islice
from pathlib import Path

from mqan_data.tasks import task_named


def read_questions(data: Path, every: int, name: str = "squad") -> list[tuple[str, str]]:
    """Return context and question of every so many examples.

    Args:
        data: folder of the datasets.
        every: one of so many; neighbours of SQuAD share their paragraph.
        name: of the task.
    """
    task = task_named(name)
    examples = islice(task.read(data / task.folder, "validation"), 0, None, every)
    return [(example.context, example.question) for example in examples]
