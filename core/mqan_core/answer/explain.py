"""The words looked at for each word of an answer (equations 8 and 13 of McCann et al. 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer.quotations import QuotationScores, start_shares
from mqan_core.answer.trace import TraceField
from mqan_core.answer.types import Candidate, Source, Span, StepExplanation
from mqan_core.ask.request import Request
from mqan_core.text.tokens import Token
from mqan_core.text.vocab import END_ID, REFUSAL_ID, Vocabulary

MOST_CANDIDATES: Final = 5
MOST_WEIGHTS: Final = 50  # of a text at a step, which bounds how large an explanation gets
LEAST_WEIGHT: Final = 0.001  # of a word's part in a step, below which it is left out

Weights = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Pointers:
    """Where a step pointed: lambda alpha^C and (1 - lambda) alpha^Q of the words, which together sum to 1."""

    context_C: Weights
    question_Q: Weights


def explain_words(
    pointers: Sequence[Pointers], trace: npt.NDArray[np.float32], request: Request, vocabulary: Vocabulary
) -> tuple[StepExplanation, ...]:
    """Return what was looked at when each word of a free answer, and its end, was chosen.

    A weight is the part of equation 13 that pointing at a word gives: with gamma, the part of the vocabulary, all
    weights of a step sum to 1. Of the vocabulary's words only the one that was chosen is among the candidates.
    """
    return tuple(
        _explain(step, where, request, vocabulary) for step, where in zip(trace.tolist(), pointers, strict=False)
    )


def explain_choice(attention_C: Weights, request: Request) -> tuple[StepExplanation, ...]:
    """Return what was looked at when a label was chosen, which takes one step: its attention over the context."""
    return (StepExplanation(_placed(attention_C, request.context_tokens), (), ()),)


def explain_quotation(scores: QuotationScores, request: Request, *, refuses: bool) -> tuple[StepExplanation, ...]:
    """Return how likely each word of the context is the first of a quotation, which is chosen in one step.

    That there is none is a candidate without a text where the question ``refuses``.
    """
    starts_C, refusal = start_shares(scores)
    tokens = request.context_tokens
    best = np.argsort(-starts_C, kind="stable")[:MOST_CANDIDATES].tolist()
    candidates = [Candidate(tokens[i].piece.strip(), float(starts_C[i]), Source.CONTEXT) for i in best]
    if refuses:
        candidates.append(Candidate("", refusal, Source.VOCABULARY))
    candidates.sort(key=lambda candidate: -candidate.probability)
    likely = tuple(each for each in candidates[:MOST_CANDIDATES] if each.probability >= LEAST_WEIGHT)
    return (StepExplanation(_placed(starts_C, tokens), (), likely),)


def _explain(step: list[float], pointers: Pointers, request: Request, vocabulary: Vocabulary) -> StepExplanation:
    copied = 1 - step[TraceField.GAMMA]
    context_C, question_Q = pointers.context_C * copied, pointers.question_Q * copied
    num_slots = len(request.slots.pieces)
    in_context = np.bincount(request.slots.context, context_C, num_slots)
    in_question = np.bincount(request.slots.question[: len(question_Q)], question_Q, num_slots)
    chosen = int(step[TraceField.SLOT])
    parts = (TraceField.FROM_CONTEXT, TraceField.FROM_QUESTION, TraceField.FROM_VOCABULARY)
    source = max(zip(parts, Source, strict=True), key=lambda pair: step[pair[0]])[1]
    candidates = [Candidate(_said(step, request, vocabulary), step[TraceField.PROBABILITY], source)]
    total = in_context + in_question
    for slot in np.argsort(-total, kind="stable")[: MOST_CANDIDATES + 1].tolist():
        if slot != chosen and total[slot] >= LEAST_WEIGHT:
            source = Source.CONTEXT if in_context[slot] >= in_question[slot] else Source.QUESTION
            candidates.append(Candidate(request.slots.pieces[slot].strip(), float(total[slot]), source))
    candidates.sort(key=lambda candidate: -candidate.probability)
    return StepExplanation(
        _placed(context_C, request.context_tokens),
        _placed(question_Q, request.question_tokens),
        tuple(candidates[:MOST_CANDIDATES]),
    )


def _said(step: list[float], request: Request, vocabulary: Vocabulary) -> str:
    slot, piece = int(step[TraceField.SLOT]), int(step[TraceField.PIECE])
    if slot >= 0:
        return request.slots.pieces[slot].strip()
    return "" if piece == END_ID or (vocabulary.refuses and piece == REFUSAL_ID) else vocabulary.pieces[piece].strip()


def _placed(weights_T: Weights, tokens: Sequence[Token]) -> tuple[tuple[Span, float], ...]:
    found = [
        (Span(token.start, token.end), float(weight))
        for token, weight in zip(tokens, weights_T.tolist(), strict=False)
        if weight >= LEAST_WEIGHT
    ]
    return tuple(sorted(found, key=lambda pair: -pair[1])[:MOST_WEIGHTS])
