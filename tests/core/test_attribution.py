"""A trace of the decoding loop becomes an answer, and a question becomes a request."""

import numpy as np
import pytest

from mqan_core.answer.trace import NUM_PLAIN_FIELDS, TraceField, attribute
from mqan_core.answer.types import Answer, Source, Span
from mqan_core.ask.request import read_request
from mqan_core.text.vocab import END, END_ID, Vocabulary

VOCABULARY = Vocabulary([" yes ", " no ", " the "], [])
CONTEXT = "The Tower\nis in  Paris, the CITY."
QUESTION = "Is Paris The city?"
REQUEST = read_request(VOCABULARY, CONTEXT, QUESTION)
LAST = {TraceField.SLOT: -1, TraceField.PIECE: END_ID, TraceField.PROBABILITY: 0.5}


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
    answer = answer_of(from_context(0), generated(" no "), from_question(1), LAST)
    assert answer.text == "The no Paris"
    assert [token.source for token in answer.tokens] == [Source.CONTEXT, Source.VOCABULARY, Source.QUESTION]
    assert [token.span for token in answer.tokens] == [Span(0, 3), None, Span(3, 8)]
    assert [span.text for span in answer.spans] == ["The", "Paris"]
    assert (answer.probability, answer.truncated) == (0.5**4, False)


def test_masses_are_equation_13() -> None:
    (token,) = answer_of(from_context(1), LAST).tokens
    assert (token.masses.vocabulary, token.masses.context, token.masses.question) == (0.25, 0.5625, 0.1875)


def test_a_word_that_could_be_copied_may_be_generated() -> None:
    slot = REQUEST.slots.pieces.index(" the ")
    (token,) = answer_of(step(slot=slot, from_vocabulary=0.4, from_context=0.1), LAST).tokens
    assert (token.text, token.source, token.span) == ("the", Source.VOCABULARY, None)


@pytest.mark.parametrize(("pieces", "words"), [([" a ", " a "], []), ([], ["a", "a"]), ([END], [])])
def test_a_vocabulary_refuses_duplicates(pieces: list[str], words: list[str]) -> None:
    with pytest.raises(ValueError, match="duplicates"):
        Vocabulary(pieces, words)
