"""Ask what a model was not trained on: classes by other names, questions in other words, inference by no training.

The paper's zero-shot experiments (McCann et al. 2018, section 4.3), for ``mqan evaluate --zero-shot``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mqan_core.example import Example
from mqan_training.data.dataset import rename_classes
from mqan_training.data.readers import sst

CLASSES: Final[Mapping[str, tuple[str, ...]]] = {"sst": sst.LABELS, "product_reviews": sst.LABELS}
"""The tasks whose question is also asked in other words, and the classes it offers, in order."""

REPHRASINGS: Final = (
    "Would you call this review {0} or {1}?",
    "Does the author sound {0} or {1}?",
    "What is the sentiment here, {0} or {1}?",
    "{0} or {1}: which word describes this review better?",
    "Is the verdict of the person who wrote this {0} or {1}?",
)
"""Other ways to put the question of ``CLASSES``, with a place for each class."""

NEW_NAMES: Final = (("angry", "happy"), ("unsupportive", "supportive"), ("furious", "thrilled"))
"""Names for the two sentiments that no recipe here trains on."""

INFERENCE: Final = ("snli", "multinli", "sick", "rte", "xnli")
"""Tasks that need no training of their own to be asked: their questions offer the labels."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Another way to ask the question of a task with classes.

    Attributes:
        classes: the classes as the task's own question has them, in order.
        names: what they are called here, in the same order.
        order: place i of the question offers class ``order[i]``.
        rephrasing: the question with a place for each class; None for the task's own question.
    """

    classes: tuple[str, ...]
    names: tuple[str, ...]
    order: tuple[int, ...]
    rephrasing: str | None = None

    def __str__(self) -> str:
        offered = [self.names[i] for i in self.order]
        return " or ".join(offered) if self.rephrasing is None else self.rephrasing.format(*offered)

    def apply(self, example: Example) -> Example:
        """Return the example asked this way."""
        reworded = [rename_classes(example.question, a, self.classes, self.names, self.order) for a in example.answers]
        question = reworded[0][0] if self.rephrasing is None else str(self)
        return replace(example, question=question, answers=tuple(answer for _, answer in reworded))


def wordings(task: str, *, zero_shot: bool, renamings: Sequence[tuple[str, ...]] = ()) -> list[Wording]:
    """Return the ways to ask a task's question beside its own; none for a task without ``CLASSES``.

    Args:
        task: name of the task.
        zero_shot: whether to reorder the classes, to take ``NEW_NAMES`` for them, and to rephrase the question.
        renamings: more names for the classes, as ``read_renamings`` returns them.
    """
    classes = CLASSES.get(task)
    if classes is None:
        return []
    own, reversed_order = tuple(range(len(classes))), tuple(reversed(range(len(classes))))
    named = [*(NEW_NAMES if zero_shot else ()), *renamings]
    found = [Wording(classes, names, order) for names in dict.fromkeys(named) for order in (own, reversed_order)]
    if zero_shot:
        found.insert(0, Wording(classes, classes, reversed_order))
        found += [Wording(classes, classes, own, rephrasing) for rephrasing in REPHRASINGS]
    return found


def read_renamings(given: Sequence[str], tasks: Sequence[str]) -> list[tuple[str, ...]]:
    """Read names for classes such as ``awful,lovely``.

    Args:
        given: comma-separated names, in the order of the classes in the task's own question.
        tasks: the tasks that will be scored.

    Raises:
        ValueError: none of the tasks has classes to rename, or the names are not one new name for each class.
    """
    renamed = [task for task in tasks if task in CLASSES]
    if given and not renamed:
        raise ValueError(f"--rename is for {' and '.join(CLASSES)}; to be scored are {', '.join(tasks)}")
    renamings = []
    for text in given:
        names = tuple(name.strip() for name in text.split(","))
        for task in renamed:
            classes = CLASSES[task]
            if len(names) != len(classes) or len(set(names)) != len(names) or not all(names):
                raise ValueError(
                    f"--rename {text}: expected {len(classes)} different names with a comma between them, "
                    f"for the classes {','.join(classes)} of {task} in this order"
                )
            if set(names) == set(classes):
                raise ValueError(f"--rename {text}: these are the own names of the classes of {task}; give others")
        renamings.append(names)
    return renamings
