"""SQuAD with as many questions that the paragraph does not answer: each question is asked twice.

Once of its own paragraph, and once of the next paragraph of the same article, where the answer is "unanswerable". A
question whose answer also stands in the next paragraph is left out, and counted. Files and answers as in ``squad``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.metrics import UNANSWERABLE, normalize
from mqan_data.readers import squad
from mqan_data.readers.files import count_dropped
from mqan_data.readers.task import Task

_NAME = "squad_unanswerable"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield, paragraph by paragraph, its own questions and then those of the paragraph before it."""
    for article in squad.read_articles(_NAME, folder, split, dropped):
        if len(article) < 2:
            for _ in (question for questions in article for question in questions):
                count_dropped(dropped, "the article has one paragraph only")
            continue
        own = [
            [question for question in questions if _can_pair(question, article[(place + 1) % len(article)], dropped)]
            for place, questions in enumerate(article)
        ]
        for place, questions in enumerate(article):
            context = questions[0].context
            yield from own[place]
            for question in own[place - 1]:
                yield Example(_NAME, f"{question.id}/next", context, question.question, (UNANSWERABLE,))


def _can_pair(question: Example, questions: list[Example], dropped: Counter[str] | None) -> bool:
    text = f" {normalize(questions[0].context)} "
    if any(f" {normalize(answer)} " in text for answer in question.answers):
        count_dropped(dropped, "the next paragraph holds the answer, too")
        return False
    return True


TASK = Task(
    name=_NAME,
    folder="squad",
    splits=squad.TASK.splits,
    metric="unanswerable_f1",
    read=read,
    sources=squad.TASK.sources,
)
