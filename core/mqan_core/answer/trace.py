"""From the trace of greedy decoding to an answer with its sources.

The trace is what the decoding step records of each choice. Training (in torch) and serving (in onnxruntime) write the
same trace, and this is the one place that reads it.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from mqan_core.answer.types import Answer, AnswerToken, Masses, Source, Span, compose
from mqan_core.ask.request import Request
from mqan_core.text.vocab import END_ID, Vocabulary


class TraceField(IntEnum):
    """Fields of one step of the trace; all float32, whole numbers exact."""

    SLOT = 0  # chosen slot, -1 when the word is no slot of the request
    PIECE = 1  # chosen generator id, meaningful when SLOT is -1
    PROBABILITY = 2  # p(w_t) of equation 13
    FROM_CONTEXT = 3  # the part of p(w_t) that each of its terms gave
    FROM_QUESTION = 4
    FROM_VOCABULARY = 5
    GAMMA = 6
    LAMBDA = 7
    CONTEXT_POSITION = 8  # position with the most pointer mass among those that hold the chosen slot
    QUESTION_POSITION = 9
    REFUSAL = 10  # p of the refusal, of a model that refuses


NUM_PLAIN_FIELDS = 10  # of a model that does not refuse


def attribute(
    trace: npt.NDArray[np.float32], request: Request, vocabulary: Vocabulary, max_answer_tokens: int
) -> Answer:
    """Turn one row's trace [steps, F] into an answer; steps after the end or the limit are ignored."""
    tokens: list[AnswerToken] = []
    probability = 1.0
    for step in trace.tolist():
        ended = step[TraceField.SLOT] < 0 and int(step[TraceField.PIECE]) == END_ID
        if ended or len(tokens) < max_answer_tokens:
            probability *= step[TraceField.PROBABILITY]
        if ended:
            return compose(tokens, probability, False, request.context, request.question)
        if len(tokens) == max_answer_tokens:
            break
        tokens.append(_token(step, request, vocabulary))
    return compose(tokens, probability, True, request.context, request.question)


def read_words(trace: npt.NDArray[np.float32], request: Request, vocabulary: Vocabulary) -> list[AnswerToken]:
    """Return the words that steps [steps, F] chose, none of which is the end or a refusal."""
    return [_token(step, request, vocabulary) for step in trace.tolist()]


def _token(step: list[float], request: Request, vocabulary: Vocabulary) -> AnswerToken:
    gamma, lambda_ = step[TraceField.GAMMA], step[TraceField.LAMBDA]
    masses = Masses((1 - gamma) * lambda_, (1 - gamma) * (1 - lambda_), gamma)
    parts = {
        Source.CONTEXT: step[TraceField.FROM_CONTEXT],
        Source.QUESTION: step[TraceField.FROM_QUESTION],
        Source.VOCABULARY: step[TraceField.FROM_VOCABULARY],
    }
    source = max(parts, key=lambda name: parts[name])
    probability = step[TraceField.PROBABILITY]
    if source is Source.VOCABULARY:
        slot = int(step[TraceField.SLOT])
        piece = request.slots.pieces[slot] if slot >= 0 else vocabulary.pieces[int(step[TraceField.PIECE])]
        return AnswerToken(piece.strip(), piece, probability, source, masses, None)
    if source is Source.CONTEXT:
        text, token = request.context, request.context_tokens[int(step[TraceField.CONTEXT_POSITION])]
    else:
        text, token = request.question, request.question_tokens[int(step[TraceField.QUESTION_POSITION])]
    copied = text[token.start : token.end]
    return AnswerToken(copied, token.piece, probability, source, masses, Span(token.start, token.end))
