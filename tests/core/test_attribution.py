"""A trace of the decoding loop becomes an answer, and a question becomes a request."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mqan_core.answer.trace import NUM_PLAIN_FIELDS, TraceField, attribute
from mqan_core.answer.types import Answer, Source, Span
from mqan_core.ask.request import read_request
from mqan_core.text.vocab import END_ID, Vocabulary

VOCABULARY = Vocabulary([" yes ", " no ", " the "], [])
CONTEXT = "The Tower\nis in  Paris, the CITY."
QUESTION = "Is Paris The city?"
REQUEST = read_request(VOCABULARY, CONTEXT, QUESTION)
END = {TraceField.SLOT: -1, TraceField.PIECE: END_ID, TraceField.PROBABILITY: 0.5}


def step(**values: float) -> dict[TraceField, float]:
    given = {TraceField[name.upper()]: value for name, value in values.items()}
    return {TraceField.PROBABILITY: 0.5, TraceField.GAMMA: 0.25, TraceField.LAMBDA: 0.75, **given}


def from_context(position: int) -> dict[TraceField, float]:
    slot = int(REQUEST.slots.context[position])
    return step(slot=slot, from_context=0.5, context_position=position)


def from_question(position: int) -> dict[TraceField, float]:
    slot = int(REQUEST.slots.question[position])
    return step(slot=slot, from_question=0.5, question_position=position)


def generated(piece: str) -> dict[TraceField, float]:
    return step(slot=-1, piece=VOCABULARY.pieces.index(piece), from_vocabulary=0.5)


def answer_of(*steps: dict[TraceField, float], max_answer_tokens: int = 10) -> Answer:
    trace = np.zeros((len(steps), NUM_PLAIN_FIELDS), np.float32)
    for row, values in zip(trace, steps, strict=True):
        for field, value in values.items():
            row[field] = value
    return attribute(trace, REQUEST, VOCABULARY, max_answer_tokens)


def test_each_source() -> None:
    answer = answer_of(from_context(0), generated(" no "), from_question(1), END)
    assert answer.text == "The no Paris"
    assert [token.source for token in answer.tokens] == [Source.CONTEXT, Source.VOCABULARY, Source.QUESTION]
    assert [token.span for token in answer.tokens] == [Span(0, 3), None, Span(3, 8)]
    assert [span.text for span in answer.spans] == ["The", "Paris"]
    assert (answer.probability, answer.truncated) == (0.5**4, False)


def test_masses_are_equation_13() -> None:
    (token,) = answer_of(from_context(1), END).tokens
    assert (token.masses.vocabulary, token.masses.context, token.masses.question) == (0.25, 0.5625, 0.1875)


def test_a_word_that_could_be_copied_may_be_generated() -> None:
    slot = REQUEST.slots.pieces.index(" the ")
    (token,) = answer_of(step(slot=slot, from_vocabulary=0.4, from_context=0.1), END).tokens
    assert (token.text, token.source, token.span) == ("the", Source.VOCABULARY, None)


@given(st.lists(st.integers(0, REQUEST.num_context_tokens - 1), max_size=12), st.integers(1, 12), st.booleans())
def test_the_limit_cuts_and_says_so(positions: list[int], limit: int, ends: bool) -> None:
    steps = [from_context(position) for position in positions]
    answer = answer_of(*steps, *([END] if ends else []), max_answer_tokens=limit)
    assert len(answer.tokens) == min(len(positions), limit)
    assert answer.truncated == (not ends or len(positions) > limit)
    num_factors = len(answer.tokens) + (not answer.truncated)
    assert math.isclose(answer.probability, 0.5**num_factors)
    for token, position in zip(answer.tokens, positions, strict=False):
        read = REQUEST.context_tokens[position]
        assert token.span == Span(read.start, read.end)
        assert token.text == CONTEXT[read.start : read.end]


def test_an_invisible_character_is_not_read_and_is_quoted() -> None:
    context = "Frau In\u00adgrid Sol\u00adberg"
    request = read_request(VOCABULARY, context, "Who is Ingrid\u200b?")
    assert request.slots.words[1:3] == ["ingrid", "solberg"]
    assert request.slots.context[1] == request.slots.question[2], "both sources spell the same word"
    trace = np.zeros((2, NUM_PLAIN_FIELDS), np.float32)
    for row, values in zip(trace, (step(slot=2, from_context=0.5, context_position=2), END), strict=True):
        for field, value in values.items():
            row[field] = value
    answer = attribute(trace, request, VOCABULARY, 5)
    (token,) = answer.tokens
    assert (token.text, token.piece, token.span) == ("Sol\u00adberg", " Solberg ", Span(13, 21))
    assert answer.text == answer.spans[0].text == context[13:21]
