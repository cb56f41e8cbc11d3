"""Ask about classes by other names and in other words: the zero-shot experiments of McCann et al. (2018)."""

from dataclasses import dataclass, replace
from typing import Final

from mqan_core.example import Example
from mqan_training.data.dataset import rename_classes

REPHRASINGS: Final = (
    "Would you call this review {0} or {1}?",
    "Does the author sound {0} or {1}?",
    "What is the sentiment here, {0} or {1}?",
    "{0} or {1}: which word describes this review better?",
    "Is the verdict of the person who wrote this {0} or {1}?",
)
"""Other ways to ask for the sentiment, with a place for each class."""

NEW_NAMES: Final = (("angry", "happy"), ("unsupportive", "supportive"), ("furious", "thrilled"))
"""Other names for the two sentiments. The default model meets some of them, as moods of a writer in made texts."""


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

    def apply(self, example: Example) -> Example:
        """Return the example asked this way."""
        reworded = [rename_classes(example.question, a, self.classes, self.names, self.order) for a in example.answers]
        offered = [self.names[i] for i in self.order]
        question = reworded[0][0] if self.rephrasing is None else self.rephrasing.format(*offered)
        return replace(example, question=question, answers=tuple(answer for _, answer in reworded))
