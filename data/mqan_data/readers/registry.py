"""All tasks by name: the one place that lists the datasets."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from mqan_data.readers import (
    cnn_dailymail,
    imdb,
    mwsc,
    nli,
    ontonotes,
    product_reviews,
    qasrl,
    squad,
    squad_unanswerable,
    sst,
    subj,
    translation,
    wikisql,
    wnut17,
    woz,
    zre,
)
from mqan_data.readers.jsonl import jsonl_task
from mqan_data.readers.task import Task

# The ten of decaNLP in the paper's order, then those for transfer and for comparison.
_DECANLP = (squad, translation, cnn_dailymail, nli, sst, qasrl, zre, woz, wikisql, mwsc)
_TRANSFER = (squad_unanswerable, imdb, product_reviews)
_OTHERS = (subj, ontonotes, wnut17)

ALL = "all"
"""In a list of names: every task of ``TASKS``."""
FOLDER_OF_JSON_LINES = "jsonl:"
"""With the folder behind it the name of a task."""

# the metrics that need the answers alone
_METRICS_WITHOUT_REFERENCE = ("em", "nf1", "bleu", "avg_rouge", "corpus_f1")

TASKS: dict[str, Task] = {
    task.name: task
    for tasks in (
        [module.TASK for module in (*_DECANLP, *_TRANSFER)],
        nli.OTHERS,
        [module.TASK for module in _OTHERS],
        translation.OTHERS,
    )
    for task in tasks
}


def task_named(name: str) -> Task:
    """Return the task with a name; ``jsonl:FOLDER`` or ``jsonl:FOLDER:METRIC`` is a folder of JSON lines.

    The folder lies in the data folder, or, if it begins with ``./``, in the working directory.

    Raises:
        ValueError: there is none; the message lists the nearest names, or all.
    """
    if name in TASKS:
        return TASKS[name]
    rest = name.removeprefix(FOLDER_OF_JSON_LINES)
    if rest not in ("", name):
        folder, _, metric = rest.partition(":")
        if folder.startswith("./"):
            folder = str(Path(folder).absolute())
        return jsonl_task(name, folder, _known_metric(metric or "em"))
    near = get_close_matches(name, TASKS, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known tasks: {', '.join(TASKS)}."
    raise ValueError(f"There is no task {name!r}. {hint}")


def tasks_named(names: Iterable[str]) -> list[Task]:
    """Return the tasks with these names, each once, in the order given; ``ALL`` stands for every task of ``TASKS``.

    Raises:
        ValueError: there is no task with one of the names.
    """
    expanded = [task for name in names for task in (TASKS if name == ALL else (name,))]
    return [task_named(name) for name in dict.fromkeys(expanded)]


def _known_metric(name: str) -> str:
    if name not in _METRICS_WITHOUT_REFERENCE:
        raise ValueError(
            f"A folder of JSON lines is scored by {', '.join(_METRICS_WITHOUT_REFERENCE)}; {name!r} is none."
        )
    return name
