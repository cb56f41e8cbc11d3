"""Words that are told before the answer is whole: none is taken back, and their deltas are the answer's text."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqan_core.answer.decide import count_decided, decide
from mqan_core.answer.trace import TraceField, WordStream, read_words
from mqan_core.answer.types import Answer, AnswerToken, Masses, Source, Span, compose
from mqan_core.ask.request import Request, read_request
from mqan_core.text.tokens import read_tokens
from mqan_core.text.vocab import END_ID, REFUSAL_ID, Vocabulary

VOCABULARY = Vocabulary([" yes ", ", ", ". "], refuses=True)
REQUEST = read_request(VOCABULARY, "one  two,\nthree\u00ad four. 🗼 one", "what is one?")
MASSES = Masses(0.5, 0.25, 0.25)


def trace_of(places: list[int]) -> np.ndarray:
    """Return a trace that copies words of the context."""
    trace = np.zeros((len(places), len(TraceField)), np.float32)
    for step, place in zip(trace, places, strict=True):
        step[TraceField.PROBABILITY] = 0.9
        step[TraceField.SLOT], step[TraceField.CONTEXT_POSITION] = REQUEST.slots.context[place], place
        step[TraceField.LAMBDA], step[TraceField.FROM_CONTEXT] = 1, 0.9
    return trace


def ended(trace: np.ndarray) -> np.ndarray:
    """Return a trace that ends after its words."""
    end = np.zeros((1, len(TraceField)), np.float32)
    end[0, TraceField.SLOT], end[0, TraceField.PIECE], end[0, TraceField.PROBABILITY] = -1, END_ID, 0.9
    return np.concatenate([trace, end])


def check_prefixes(trace: np.ndarray, answer: Answer) -> None:
    """Check what is told after each step of an answer."""
    told = 0
    for num_steps in range(1, len(trace) + 1):
        decided = count_decided(trace[:num_steps])
        assert told <= decided <= num_steps
        told = decided
    assert tuple(read_words(trace[:told], REQUEST, VOCABULARY)) == answer.tokens[:told]


@given(places=st.lists(st.integers(0, 2), min_size=1, max_size=40), ends=st.booleans())
def test_no_word_that_is_told_is_taken_back_however_an_answer_repeats_itself(places: list[int], ends: bool) -> None:
    trace = trace_of(places)
    whole = ended(trace) if ends else trace
    check_prefixes(trace, decide(whole, (), REQUEST, VOCABULARY, len(places)))


@pytest.mark.parametrize("period", [1, 2, 3, 8])
def test_a_loop_is_told_once(period: int) -> None:
    places = [*range(3), *(list(range(period)) * 6)]
    trace = trace_of([place % REQUEST.num_context_tokens for place in places])
    answer = decide(trace, (), REQUEST, VOCABULARY, len(places))
    assert answer.truncated
    check_prefixes(trace, answer)


def test_words_that_repeat_nothing_are_told_at_once() -> None:
    trace = trace_of([0, 1, 2, 3, 1, 4])
    assert [count_decided(trace[:n]) for n in range(1, 5)] == [1, 2, 3, 4]
    assert count_decided(trace[:5]) == 4, "the second word may be the first of a repetition"
    assert count_decided(trace) == 6, "it was none"


def test_of_a_refusal_nothing_is_told() -> None:
    trace = np.zeros((1, len(TraceField)), np.float32)
    trace[0, TraceField.SLOT], trace[0, TraceField.PIECE] = -1, REFUSAL_ID
    assert count_decided(trace) == count_decided(trace[:0]) == 0


def tokens_of(request: Request, chance: random.Random, number: int) -> list[AnswerToken]:
    """Return tokens at random: runs of the context, words of the question, words of the model's own."""
    tokens: list[AnswerToken] = []
    while len(tokens) < number:
        kind = chance.choice(list(Source))
        if kind is Source.VOCABULARY:
            piece = chance.choice(VOCABULARY.pieces[-3:])
            tokens.append(AnswerToken(piece.strip(), piece, 0.5, kind, MASSES, None))
            continue
        text = request.context if kind is Source.CONTEXT else request.question
        read = read_tokens(text)
        first = chance.randrange(len(read))
        for token in read[first : first + chance.randint(1, 4)]:
            span = Span(token.start, token.end)
            tokens.append(AnswerToken(text[token.start : token.end], token.piece, 0.5, kind, MASSES, span))
    return tokens


@pytest.mark.parametrize("seed", range(50))
def test_deltas_are_the_text_however_many_words_come_together(seed: int) -> None:
    chance = random.Random(seed)
    tokens = tokens_of(REQUEST, chance, chance.randint(1, 20))
    answer = compose(tokens, 0.5, False, REQUEST.context, REQUEST.question)
    stream = WordStream(REQUEST.context, REQUEST.question)
    words, first = [], 0
    while first < len(tokens) and chance.random() < 0.8:
        last = first + chance.randint(0, 3)
        words += stream.add(tokens[first:last])
        first = min(last, len(tokens))
    words += stream.end(answer)
    assert [word.token for word in words] == tokens
    assert "".join(word.delta for word in words) == answer.text
