"""SQuAD and QA-SRL with two answers to choose from, as MWSC asks: ``Who was thanked? Joan or Susan?``

The other answer is one to another question on the same context, of the same kind if there is one (both have digits or
neither, both are capitalised or neither). Which it is and which of the two comes first depends on the example's id
alone. An example whose context has no other answer is left out, and counted. Files as in ``squad`` and ``qasrl``.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.metrics import normalize
from mqan_training.data.readers import qasrl, squad
from mqan_training.data.readers.files import count_dropped
from mqan_training.data.readers.task import Task


def _choices_of(task: Task, read_as: Callable[..., Iterator[Example]]) -> Task:
    """Return the task that offers two answers to the questions of another one."""
    name = f"{task.name}_choices"

    def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
        for _, examples in groupby(read_as(name, folder, split, dropped), lambda example: example.context):
            questions = list(examples)
            for example in questions:
                other = _other_answer(example, questions)
                if other is None:
                    count_dropped(dropped, "no other answer on its context")
                    continue
                yield _offer(example, other)

    return Task(name, task.folder, task.splits, "em", read, sources=task.sources)


def _other_answer(example: Example, questions: list[Example]) -> str | None:
    """Return an answer to another question that shares no word with any of the example's own."""
    words = {word for answer in example.answers for word in normalize(answer).split()}
    answers = [question.answers[0] for question in questions]
    others = [answer for answer in answers if words.isdisjoint(normalize(answer).split() or words)]
    of_its_kind = [answer for answer in others if _kind(answer) == _kind(example.answers[0])]
    return random.Random(example.id).choice(of_its_kind or others) if others else None  # noqa: S311


def _kind(answer: str) -> tuple[bool, bool]:
    return any(character.isdigit() for character in answer), answer[:1].isupper()


def _offer(example: Example, other: str) -> Example:
    """Put the two answers behind the question."""
    first, second = random.Random(f"order of {example.id}").sample([example.answers[0], other], 2)  # noqa: S311
    question = f"{example.question} {first} or {second}?"
    return replace(example, question=question, answers=example.answers[:1], answer_start=None)


TASKS = tuple(_choices_of(module.TASK, module.read_as) for module in (squad, qasrl))
