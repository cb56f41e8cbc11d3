"""Questions that a text does not answer although it speaks of what they ask, after SQuAD 2.0 (Rajpurkar et al. 2018).

Half of the questions are changed in their names, numbers or words of the opposite sense, so that they ask something
else; their answer is that there is none. Their words still stand in the text, so that a reader must compare the facts
and not only the words. The other half stay as they are.
"""

import re
from dataclasses import replace

import numpy as np

from mqan_core.example import Example
from mqan_data.adversarial import SENTENCE_GAP, changed_question, words_of_names
from mqan_data.source import DerivedSource

_CHANGED = 0.6  # share of rows that are tried; some hold nothing that could be changed
_OWN_NAMES = 0.25  # share of those that take names of the same text
_IN_BRACKETS = re.compile(r"([^.,;:!?()\n]*)\(([^()\n]*)\)")  # with what stands before them


class ChangedSource(DerivedSource):
    """The rows of a source, some asked for what their texts do not say."""

    suffix = "_changed"

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        example = replace(self._source.draw(index, rng), task=self.name)
        if not example.answers or example.choices or rng.random() >= _CHANGED:
            return example
        names_from = example.context
        if rng.random() >= _OWN_NAMES:
            names_from = self._source.draw(int(rng.integers(len(self))), rng).context
        return without_answer(example, names_from, rng) or example


def without_answer(example: Example, names_from: str, rng: np.random.Generator) -> Example | None:
    """Return an example whose question is changed so that its text does not answer it; None where nothing can be.

    Names of the text ``names_from`` take the place of the question's. Those that are known to fit the answer are not
    used: of the answer, of a sentence that holds it, and other names for what the question names.
    """
    holding = [
        part for part in SENTENCE_GAP.split(example.context) if any(answer in part for answer in example.answers)
    ]
    known = " ".join((*example.answers, *holding, *_other_names(example)))
    question = changed_question(example.question, [names_from], rng, known=known)
    if question is None:
        return None
    return replace(example, question=question, answers=(), answer_start=None)


def _other_names(example: Example) -> list[str]:
    """Return the question, and what its text puts in brackets beside a name of it, or before brackets that hold one."""
    asked = words_of_names(example.question)
    beside = (f"{before} {within}" for before, within in _IN_BRACKETS.findall(example.context))
    return [example.question, *(names for names in beside if not asked.isdisjoint(words_of_names(names)))]
