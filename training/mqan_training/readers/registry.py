"""All tasks by name: the one place that lists the datasets."""

from difflib import get_close_matches

from mqan_training.readers import imdb, mwsc, product_reviews, squad, sst, woz
from mqan_training.readers.task import Task

TASKS: dict[str, Task] = {module.TASK.name: module.TASK for module in (squad, sst, woz, mwsc, imdb, product_reviews)}


def task_named(name: str) -> Task:
    """Return the task with a name.

    Raises:
        ValueError: there is none; the message lists the nearest names, or all.
    """
    if name in TASKS:
        return TASKS[name]
    near = get_close_matches(name, TASKS, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known tasks: {', '.join(TASKS)}."
    raise ValueError(f"There is no task {name!r}. {hint}")
