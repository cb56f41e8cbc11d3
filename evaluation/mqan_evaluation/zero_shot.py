"""Ask about classes by other names and in other words: the zero-shot experiments of McCann et al. (2018)."""

from dataclasses import dataclass, replace
from typing import Final

from mqan_core.example import Example

LABELS: Final = ("negative", "positive")
"""The classes of SST, as it names them."""

OWN: Final = "Is this review {0} or {1}?"
"""The question of SST, with a place for each class."""

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
    """Another way to ask for the sentiment of a review.

    Attributes:
        names: what negative and positive are called.
        in_reverse: whether the question names positive first.
        question: with a place for each class.
    """

    names: tuple[str, str] = LABELS
    in_reverse: bool = False
    question: str = OWN

    @property
    def offered(self) -> tuple[str, ...]:
        """The names in the order of the question."""
        return self.names[::-1] if self.in_reverse else self.names

    def apply(self, example: Example) -> Example:
        """Return an example of SST asked this way."""
        called = dict(zip(LABELS, self.names, strict=True))
        question = self.question.format(*self.offered)
        return replace(example, question=question, answers=tuple(called[answer] for answer in example.answers))
