"""The words of a text that decide for a label, by how the model scores each of them for it.

The likeliest runs of words are taken: those whose logits, measured from ``_LEAST_LOGIT``, have the largest sum, so that
a doubtful word between two that decide is among them. Each has the mean probability of its words.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer.types import AnswerSpan, Place, Source
from mqan_core.ask.request import Request

MOST_SPANS: Final = 3
LEAST_WORDS: Final = 2  # of a span, where the text has as many
_LEAST_ATTENTION: Final = 1e-6
_MANY_TIMES: Final = 14.0
_LEAST_LOGIT: Final = -1.25  # of a word that makes a run likelier: a span too long costs a reader less than a wrong one
_LEAST_SHARE: Final = 0.2  # of the sum of the best span's logits, that another one has to have

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceVectors:
    """Vectors of labels and words whose product is the logit of a word of the context deciding for a label."""

    labels_LE: Floats
    words_CE: Floats

    def logits(self, label: int) -> Floats:
        """Return the logit of each word deciding for a label, [C]."""
        logits_C: Floats = self.words_CE @ self.labels_LE[label]
        return logits_C


def logits_of_attention(shares_C: Floats) -> Floats:
    """Return logits by how a decision divided its attention, of a model that was not taught which words decide, [C].

    They are over 0 for a word with many times its share.
    """
    held_C = np.maximum(shares_C.astype(np.float64), _LEAST_ATTENTION)
    logits_C: Floats = np.log(held_C * len(held_C) / _MANY_TIMES)
    return logits_C


def find_evidence(logits_C: Floats, request: Request) -> tuple[Place, ...]:
    """Return the spans of the context that decide, at most ``MOST_SPANS`` in the order of the text, at least one."""
    left = logits_C.astype(np.float64) - _LEAST_LOGIT
    found: list[tuple[float, slice]] = []
    while len(found) < MOST_SPANS:
        total, words = _best_run(left)
        if found and total <= max(0.0, _LEAST_SHARE * found[0][0]):
            break
        found.append((total, words))
        left[words] = -np.inf
    tokens, places = request.context_tokens, []
    for words in _joined([_widened(logits_C, _trimmed(request, words)) for _, words in found]):
        start, end = tokens[words.start].start, tokens[words.stop - 1].end
        span = AnswerSpan(Source.CONTEXT, start, end, request.context[start:end])
        places.append(Place(span, float(np.mean(1 / (1 + np.exp(-logits_C[words].astype(np.float64)))))))
    return tuple(places)


def _best_run(logits_C: Floats) -> tuple[float, slice]:
    """Return the run of words with the largest sum, the first of several (Kadane's algorithm)."""
    best, best_run, total, start = -np.inf, slice(0, 1), -np.inf, 0
    for i, logit in enumerate(logits_C.tolist()):
        if total <= 0:
            total, start = logit, i
        else:
            total += logit
        if total > best:
            best, best_run = total, slice(start, i + 1)
    return best, best_run


def _trimmed(request: Request, words: slice) -> slice:
    """Leave out what is no word at the ends of a run that has words."""
    tokens = request.context_tokens
    told = [i for i in range(words.start, words.stop) if any(map(str.isalnum, tokens[i].word))]
    return slice(told[0], told[-1] + 1) if told else words


def _widened(logits_C: Floats, words: slice) -> slice:
    start, stop = words.start, words.stop
    while stop - start < min(LEAST_WORDS, len(logits_C)):
        before = logits_C[start - 1] if start else -np.inf
        after = logits_C[stop] if stop < len(logits_C) else -np.inf
        start, stop = (start - 1, stop) if before > after else (start, stop + 1)
    return slice(start, stop)


def _joined(runs: list[slice]) -> list[slice]:
    joined: list[slice] = []
    for run in sorted(runs, key=lambda run: run.start):
        if joined and run.start <= joined[-1].stop:
            joined[-1] = slice(joined[-1].start, max(joined[-1].stop, run.stop))
        else:
            joined.append(run)
    return joined
