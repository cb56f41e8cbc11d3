"""From the trace of greedy decoding to an answer with its sources.

The trace is what the decoding step records of each choice. Training (in torch) and serving (in onnxruntime) write the
same trace, and this is the one place that reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class StreamedWord:
    """A word of an answer that is not whole yet; nothing takes it back."""

    token: AnswerToken
    delta: str  # what it appends to the answer's text, with what stands between it and the word before it


class WordStream:
    def __init__(self, context: str, question: str) -> None:
        self._context = context
        self._question = question
        self._tokens: list[AnswerToken] = []
        self._num_chars = 0  # of the text, up to the last word

    def add(self, tokens: Sequence[AnswerToken]) -> list[StreamedWord]:
        """Return the next words of an answer that is not whole yet."""
        self._tokens += tokens
        text = compose(self._tokens, 1.0, False, self._context, self._question).text
        return self._cut(text, tokens)

    def end(self, answer: Answer) -> list[StreamedWord]:
        return self._cut(answer.text, answer.tokens[len(self._tokens) :])

    def _cut(self, text: str, tokens: Sequence[AnswerToken]) -> list[StreamedWord]:
        words = []
        for token in tokens:
            end = text.index(token.text, self._num_chars) + len(token.text)
            words.append(StreamedWord(token, text[self._num_chars : end]))
            self._num_chars = end
        return words
