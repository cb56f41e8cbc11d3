"""Questions whose answers no dataset gives: which of these labels, out of all sets, fits this text?

A model that learns only the label sets of its datasets forgets what the pretrained encoder knew of all others. So some
texts are offered labels of any set, and the targets are the probabilities of a teacher (distillation, Hinton et al.
2015), see ``mqan_training.teacher``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from mqan_core.example import Choice, Example
from mqan_training.data.questions import wordings
from mqan_training.data.questions.asked import number_of_choices, one_of, shuffled, some_of
from mqan_training.data.shapes.dataset_file import LabelsPart, readable

TAUGHT: Final = "taught"  # name of the source
_LONGEST = 700  # characters of a text; what is said of a label is said early, and short texts are cheap
_OF_ONE_SET = 0.45  # share of questions whose labels are those of one set
_NEAR = 40  # labels that are nearest to a text, of which half of a mixed question's are drawn

Similarity = Callable[[Sequence[str], Sequence[str]], npt.NDArray[np.float32]]
"""Texts and labels to the similarity of each pair, [texts, labels]."""


@dataclass(frozen=True, slots=True)
class LabelNames:
    """What one label set is called and holds; each label with its synonyms."""

    kind: str
    kinds: str
    names: tuple[tuple[str, ...], ...]


class TaughtSource:
    """Questions with the probabilities of a teacher.

    Args:
        examples: each with ``teacher``.
    """

    name = TAUGHT

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._examples)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        """Return a question with its choices in random order."""
        example = self._examples[index]
        order = rng.permutation(len(example.choices))
        return replace(
            example,
            choices=tuple(example.choices[i] for i in order),
            teacher=tuple(example.teacher[i] for i in order),
        )


def names_of(part: LabelsPart) -> LabelNames:
    """Return the names of a label set."""
    names = tuple((readable(key, label.name), *label.synonyms) for key, label in part.labels.items())
    return LabelNames(part.kind, part.kinds or f"{part.kind}s", names)


def label_questions(
    texts: Sequence[str], sets: Sequence[LabelNames], similarity: Similarity, rng: np.random.Generator
) -> list[Example]:
    """Return a question about each text, with labels of one set or of all; nobody knows the answers.

    Args:
        texts: that are read.
        sets: label sets; at least one.
        similarity: tells which labels are near a text, so that some of those offered are worth a thought.
        rng: where chance comes from.
    """
    every = tuple(dict.fromkeys(names[0] for some in sets for names in some.names))
    near_TL = similarity(texts, every)
    examples = []
    for i, text in enumerate(texts):
        asked = one_of(rng, sets)
        if rng.random() < _OF_ONE_SET:
            number = number_of_choices(rng, len(asked.names))
            labels = [one_of(rng, names) for names in some_of(rng, asked.names, number)]
        else:
            number = number_of_choices(rng, len(every))
            near = [every[int(place)] for place in np.argsort(-near_TL[i])[:_NEAR]]
            labels = some_of(rng, near, (number + 1) // 2)
            labels += some_of(rng, every, number // 2)
        labels = shuffled(rng, list(dict.fromkeys(labels)))
        if len(labels) < 2:
            continue
        question = one_of(rng, wordings.CHOOSE).format(kind=asked.kind, kinds=asked.kinds)
        examples.append(Example(TAUGHT, str(i), text, question, (), choices=tuple(map(Choice, labels))))
    return examples


def drawn_texts(examples: Mapping[str, Callable[[], Example]], number: int, rng: np.random.Generator) -> list[str]:
    """Return so many different texts of drawn questions, by name of their sources, as far as they are short."""
    names, texts = list(examples), dict[str, None]()
    for _ in range(20 * number):
        if len(texts) == number:
            break
        text = examples[one_of(rng, names)]().context
        if 0 < len(text.strip()) <= _LONGEST:
            texts[text] = None
    return list(texts)
