"""Any folder of JSON lines: ``train.jsonl``, ``val.jsonl``, ``test.jsonl``, rows ``{context, question, answer}``.

``answer`` is a string or a list of strings, all of them right; the first is trained on.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mqan_core.example import Example
from mqan_data.errors import MissingFileError
from mqan_data.readers.files import check_split, malformed, read_json_lines, text_field
from mqan_data.readers.task import Task

_FILE_OF_SPLIT = {"train": "train.jsonl", "validation": "val.jsonl", "test": "test.jsonl"}


def jsonl_task(name: str, folder: str, metric: str = "em") -> Task:
    """Make a task of a folder of JSON lines.

    Args:
        name: what to call the task.
        folder: name of its folder below the data folder.
        metric: key into ``metrics.METRICS``.
    """
    return Task(name, folder, tuple(_FILE_OF_SPLIT), metric, partial(read, name))


def read(task: str, folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the rows of a split; every row gives one example, whose id is the line number."""
    check_split(task, split, _FILE_OF_SPLIT)
    path = folder / _FILE_OF_SPLIT[split]
    if not path.exists():
        raise MissingFileError(
            f"{task}: found no {path.name} in {folder}. A folder is looked for below `--data DIR`; put ./ before one "
            "below the working directory, or give its absolute path."
        )
    for number, row in read_json_lines(path):
        answer = row.get("answer")
        answers = [answer] if isinstance(answer, str) else answer
        if not isinstance(answers, list) or not answers or not all(isinstance(text, str) for text in answers):
            raise malformed(path, number, "`answer` must be a string or a list of one or more strings.")
        context, question = (text_field(path, number, row, field) for field in ("context", "question"))
        yield Example(task, f"{split}/{number}", context, question, tuple(answers))
