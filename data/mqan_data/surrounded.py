"""Texts between other texts, as a reader meets them in the windows of a long document.

Datasets give one paragraph with each question. In a long document a window holds several, most of them about something
else, and the windows without the answer have to say so (shared normalisation, Clark and Gardner 2018).
"""

from dataclasses import replace

import numpy as np

from mqan_core.example import Example
from mqan_data.questions.asked import one_of
from mqan_data.source import DerivedSource

_SURROUNDED = 0.8  # share of the rows; the others stay, so that a short text is still met
_MISSING = 0.2  # share of the surrounded rows whose own text is left out
_MOST_OTHERS = 3
_MOST = 1_600  # characters of a context: about a window
_GAPS = (" ", "\n", "\n\n")


class SurroundedSource(DerivedSource):
    """The rows of a source, most between texts of other rows, some of these without their own, and so unanswerable."""

    suffix = "_surrounded"

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        example = replace(self._source.draw(index, rng), task=self.name)
        if example.choices or rng.random() >= _SURROUNDED:
            return example
        drawn = [
            self._source.draw(int(rng.integers(len(self))), rng) for _ in range(int(rng.integers(1, _MOST_OTHERS + 1)))
        ]
        others = list(dict.fromkeys(other.context for other in drawn if other.context != example.context))
        is_missing = bool(example.answers) and rng.random() < _MISSING
        return surrounded(example, others, is_missing=is_missing, rng=rng)


def surrounded(example: Example, others: list[str], *, is_missing: bool, rng: np.random.Generator) -> Example:
    """Return an example with other texts around its own, as many as have room; a quotation moves with its text.

    Where the own text ``is_missing``, there is no answer. Texts that hold an answer by chance are left out then, too;
    without any other text the example stays as it is.
    """
    if is_missing:
        others = [other for other in others if not any(a.casefold() in other.casefold() for a in example.answers)]
    gap = one_of(rng, _GAPS)
    room = _MOST - (0 if is_missing else len(example.context))
    kept: list[str] = []
    for other in others:
        needed = len(other) + len(gap)
        if needed <= room:
            kept.append(other)
            room -= needed
    if not kept:
        return example
    if is_missing:
        return replace(example, context=gap.join(kept), answers=(), answer_start=None)
    place = int(rng.integers(len(kept) + 1))
    before = "".join(other + gap for other in kept[:place])
    behind = "".join(gap + other for other in kept[place:])
    start = None if example.answer_start is None else example.answer_start + len(before)
    return replace(example, context=before + example.context + behind, answer_start=start)
