"""SQuAD 1.1 (Rajpurkar et al. 2016): a question on a paragraph, answered by a span of it.

Files: ``{train,dev}-v1.1.json``. The official test set is not public.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqan_core.example import Example
from mqan_training.readers.files import check_split, count_dropped, find_file, malformed, read_json
from mqan_training.readers.task import Download, Task

_FILE_OF_SPLIT = {"train": "train-v1.1.json", "validation": "dev-v1.1.json"}
_URL = "https://rajpurkar.github.io/SQuAD-explorer/dataset/"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the questions of a split with all their gold answers.

    An ``answer_start`` that does not point at its answer is left out of the example, and counted.
    """
    check_split("squad", split, _FILE_OF_SPLIT)
    path = find_file("squad", folder, _FILE_OF_SPLIT[split])
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise malformed(path, None, "expected an object with a list `data`.")
    for article_index, article in enumerate(content["data"]):
        try:
            for paragraph in article["paragraphs"]:
                for qa in paragraph["qas"]:
                    yield _example(paragraph["context"], qa, dropped)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise malformed(path, None, f"article {article_index}: missing or malformed field ({error!r}).") from error


def _example(context: str, qa: dict[str, Any], dropped: Counter[str] | None) -> Example:
    """Make the example of one question; the question's white space is normalised."""
    answers = tuple(str(answer["text"]) for answer in qa["answers"])
    start = qa["answers"][0]["answer_start"]
    if not isinstance(start, int) or not context.startswith(answers[0], start):
        count_dropped(dropped, "answer_start does not point at the answer")
        start = None
    return Example("squad", qa["id"], context, " ".join(qa["question"].split()), answers, answer_start=start)


TASK = Task(
    name="squad",
    folder="squad",
    splits=tuple(_FILE_OF_SPLIT),
    metric="nf1",
    read=read,
    sources=tuple(Download(_URL + name, name) for name in _FILE_OF_SPLIT.values()),
)
