"""SQuAD 1.1 (Rajpurkar et al. 2016): a question on a paragraph, answered by a span of it.

Files: ``{train,dev}-v1.1.json``. The official test set is not public.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqan_core.example import Example
from mqan_data.readers.files import check_split, count_dropped, find_file, malformed, read_json
from mqan_data.readers.task import Task, downloads

_FILE_OF_SPLIT = {"train": "train-v1.1.json", "validation": "dev-v1.1.json"}
_URL = "https://rajpurkar.github.io/SQuAD-explorer/dataset/"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the questions of a split with all their gold answers.

    An ``answer_start`` that does not point at its answer is left out of the example, and counted.
    """
    for article in read_articles("squad", folder, split, dropped):
        for questions in article:
            yield from questions


def read_articles(
    task: str, folder: Path, split: str, dropped: Counter[str] | None = None
) -> Iterator[list[list[Example]]]:
    """Yield the articles of a split: for each of its paragraphs that has questions, these, as examples of a task."""
    check_split(task, split, _FILE_OF_SPLIT)
    path = find_file(task, folder, _FILE_OF_SPLIT[split])
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise malformed(path, None, "expected an object with a list `data`.")
    where = ""
    try:
        for article_index, article in enumerate(content["data"]):
            where = f"article {article_index}"
            paragraphs: list[list[Example]] = []
            for paragraph_index, paragraph in enumerate(article["paragraphs"]):
                questions = []
                for question_index, qa in enumerate(paragraph["qas"]):
                    where = f"article {article_index}, paragraph {paragraph_index}, question {question_index}"
                    questions.append(_example(task, paragraph["context"], qa, dropped))
                if questions:
                    paragraphs.append(questions)
            yield paragraphs
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise malformed(path, None, f"{where}: missing or malformed field ({error!r}).") from error


def _example(task: str, context: str, qa: dict[str, Any], dropped: Counter[str] | None) -> Example:
    """Make the example of one question; the question's white space is normalised."""
    answers = tuple(str(answer["text"]) for answer in qa["answers"])
    start = qa["answers"][0]["answer_start"]
    if not isinstance(start, int) or not context.startswith(answers[0], start):
        count_dropped(dropped, "answer_start does not point at the answer (the example stays, without it)")
        start = None
    return Example(task, qa["id"], context, " ".join(qa["question"].split()), answers, answer_start=start)


TASK = Task(
    name="squad",
    folder="squad",
    splits=tuple(_FILE_OF_SPLIT),
    metric="nf1",
    read=read,
    sources=downloads(
        _URL,
        {
            "train-v1.1.json": "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
            "dev-v1.1.json": "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
        },
    ),
)
