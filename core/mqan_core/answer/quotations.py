"""Unbroken quotations of the context, by how likely their first and last words are (Devlin et al. 2019, section 4.2).

The reader scores every word as the first of the answer and as the last, and that there is none. A quotation's
probability is that of its first word, among all words and no answer, times that of its last word, among the words from
the first on; one that a limit of tokens cuts short is as unlikely as its end. Where several places answer, the reader
may expect the last word at the end of the last of them. So where several are asked for, each ends before another likely
first word, if it may end there at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer.types import Answer, AnswerSpan, AnswerToken, Masses, Place, Source, Span, compose
from mqan_core.ask.options import Options
from mqan_core.ask.request import Request

LEAST_SHARE: Final = 0.2  # of the likeliest place's probability, that every other place has to have
LEAST_PROBABILITY: Final = 0.001  # of an alternative
_LEAST_END: Final = 0.1  # of the likeliest end's probability, that one before the next quotation has to have
_FIRST_WORDS: Final = 64  # that are looked at at least, the likeliest ones
_MOST_ENDS: Final = 128  # words from the first on, among which the last is
_FROM_CONTEXT: Final = Masses(1.0, 0.0, 0.0)

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class QuotationScores:
    """Scores of each word of the context as the first and the last of an answer, and of there being none."""

    start_C: Scores
    end_C: Scores
    null: float


@dataclass(frozen=True, slots=True)
class _Quotation:
    """Words ``first`` to ``last``, and how likely they are the first and the last."""

    first: int
    last: int
    start: float
    end: float

    @property
    def probability(self) -> float:
        return self.start * self.end


def quote(answer: Answer, scores: QuotationScores, options: Options, request: Request, longest: int) -> Answer:
    """Return what options about quotations, of at most ``longest`` words, make of a decided answer."""
    starts, refusal = start_shares(scores)
    likeliest = partial(_likeliest, starts, scores.end_C, request, longest)
    is_one = options.contiguous and not options.every
    found = list(likeliest(apart=not is_one))
    if options.quotes:
        if not found or (options.refuses and refusal > starts.max()):
            answer = Answer("", refusal, (), (), False, answered=False, refusal=refusal)
        elif options.every:
            least = max(options.least, LEAST_SHARE * found[0].probability)
            answer = replace(_joined(found, least, request), refusal=refusal)
        else:
            answer = replace(_composed(found[0], request), refusal=refusal)
    if not options.alternatives:
        return answer
    taken = {answer.text.casefold()}
    others: list[Answer] = []
    for quotation in likeliest(apart=True) if is_one else found:
        other = _composed(quotation, request)
        if quotation.probability >= LEAST_PROBABILITY and _is_new(other, answer, taken):
            taken.add(other.text.casefold())
            others.append(other)
    return replace(answer, alternatives=tuple(others[: options.alternatives]))


def start_shares(scores: QuotationScores) -> tuple[npt.NDArray[np.float64], float]:
    """Return how likely each word is the first of the answer, and that there is none; they sum to 1."""
    shares = _softmax(np.append(scores.start_C, scores.null).astype(np.float64))
    return shares[:-1], float(shares[-1])


def _softmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    exponents = np.exp(scores - scores.max())
    shares: npt.NDArray[np.float64] = exponents / exponents.sum()
    return shares


def _likeliest(
    starts: npt.NDArray[np.float64], end_C: Scores, request: Request, longest: int, *, apart: bool
) -> Iterator[_Quotation]:
    """Yield quotations with a letter or digit that do not overlap, the likeliest first; of equal ones the first.

    Those that are ``apart`` end before the next likely first word.
    """
    candidates: list[_Quotation] = []
    best = 0.0
    for place, first in enumerate(np.argsort(-starts, kind="stable").tolist()):
        if place >= _FIRST_WORDS and starts[first] < LEAST_SHARE * best:
            break
        ends = _softmax(end_C[first : first + max(longest, _MOST_ENDS)].astype(np.float64))[:longest]
        if apart:
            ends = _before_the_next(starts[first : first + longest], ends)
        likely = np.argsort(-ends, kind="stable")[:3].tolist()
        candidates += [_Quotation(first, first + i, float(starts[first]), float(ends[i])) for i in likely]
        best = max(best, candidates[-len(likely)].probability)
    kept: list[_Quotation] = []
    for quotation in sorted(candidates, key=lambda q: (-q.probability, q.first, q.last)):
        words = request.context_tokens[quotation.first : quotation.last + 1]
        is_apart = all(quotation.last < other.first or other.last < quotation.first for other in kept)
        if is_apart and any(c.isalnum() for t in words for c in t.key):
            kept.append(quotation)
            yield quotation


def _before_the_next(starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    for other in np.flatnonzero(starts[1:] >= LEAST_SHARE * starts[0]) + 1:
        if ends[:other].max() >= _LEAST_END * ends.max():
            return np.where(np.arange(len(ends)) < other, ends, 0.0)
    return ends


def _composed(quotation: _Quotation, request: Request) -> Answer:
    tokens = _tokens(quotation, request)
    return compose(tokens, quotation.probability, False, request.context, request.question)


def _tokens(quotation: _Quotation, request: Request) -> list[AnswerToken]:
    """Return the words; the first one's probability is that of the start, the last one's that of the end."""
    read = request.context_tokens[quotation.first : quotation.last + 1]
    shares = [1.0] * len(read)
    shares[0] *= quotation.start
    shares[-1] *= quotation.end
    return [
        AnswerToken(
            request.context[t.start : t.end], t.piece, share, Source.CONTEXT, _FROM_CONTEXT, Span(t.start, t.end)
        )
        for t, share in zip(read, shares, strict=True)
    ]


def _joined(found: Sequence[_Quotation], least: float, request: Request) -> Answer:
    held = [q for q in found if q.probability >= least] or list(found[:1])
    places, tokens, spans = [], [], []
    for quotation in sorted(held, key=lambda q: q.first):
        words = _tokens(quotation, request)
        start, end = request.context_tokens[quotation.first].start, request.context_tokens[quotation.last].end
        span = AnswerSpan(Source.CONTEXT, start, end, request.context[start:end])
        places.append(Place(span, quotation.probability))
        tokens += words
        spans.append(span)
    text = ", ".join(span.text for span in spans)
    return Answer(text, found[0].probability, tuple(tokens), tuple(spans), False, places=tuple(places))


def _is_new(other: Answer, answer: Answer, taken: set[str]) -> bool:
    return other.text.casefold() not in taken and not any(
        mine.source is Source.CONTEXT and mine.start < its.end and its.start < mine.end
        for mine in answer.spans
        for its in other.spans
    )
