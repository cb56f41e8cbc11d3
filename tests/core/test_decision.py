"""Repetitions that would never end, and where answers are cut."""

import numpy as np
import pytest

from mqan_core.answer.decide import decide, find_repeats
from mqan_core.answer.trace import TraceField
from mqan_core.ask.request import read_request
from mqan_core.text.vocab import END_ID, Vocabulary

VOCABULARY = Vocabulary([" yes "], refuses=True)
REQUEST = read_request(VOCABULARY, "one two three four five six", "what?")


def trace_of(*places: int, probability: float = 0.9) -> np.ndarray:
    """Return a trace that copies words of the context; -1 ends it."""
    trace = np.zeros((len(places), len(TraceField)), np.float32)
    for step, place in zip(trace, places, strict=True):
        step[TraceField.PROBABILITY] = probability
        step[TraceField.SLOT], step[TraceField.CONTEXT_POSITION] = place, max(place, 0)
        step[TraceField.PIECE] = END_ID
        step[TraceField.LAMBDA], step[TraceField.FROM_CONTEXT] = 1, probability if place >= 0 else 0
    return trace


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ((0, 1, 2, 3), None),
        ((0, 0, 0), None),
        ((0, 0, 0, 0), slice(1, 4)),
        ((3, 0, 0, 0, 0, 0), slice(2, 5)),
        ((5, 0, 1, 0, 1, 0, 1, 0, 1, 2), slice(3, 9)),
        ((0, 1, 0, 1, 0, 1, 2, 0, 1), None),
        ((0, 1, 2) * 4, slice(3, 12)),
        (tuple(range(6)) * 3, None),
    ],
)
def test_repeats_are_found_where_they_begin(places: tuple[int, ...], expected: slice | None) -> None:
    assert find_repeats(trace_of(*places)) == expected


def test_the_same_word_from_other_places_is_no_repetition() -> None:
    trace = trace_of(0, 0, 0, 0)
    trace[:, TraceField.CONTEXT_POSITION] = range(4)
    assert find_repeats(trace) is None


@pytest.mark.parametrize("probability", [0.99, 0.5, 0.2])
def test_a_loop_is_cut_and_never_sure(probability: float) -> None:
    answer = decide(trace_of(3, *[1] * 40, probability=probability), (), REQUEST, VOCABULARY, 60)
    assert (answer.text, answer.truncated) == ("four two", True)
    assert answer.probability <= min(0.5, 1 - probability + 1e-6)


def test_when_a_loop_is_noticed_changes_nothing() -> None:
    answers = {decide(trace_of(3, *[1] * n), (), REQUEST, VOCABULARY, 60) for n in (4, 5, 9, 30)}
    assert len(answers) == 1


def test_steps_behind_the_end_and_beyond_the_limit_do_not_count() -> None:
    ended = decide(trace_of(0, 1, -1, 2, 2, 2, 2, 2), (), REQUEST, VOCABULARY, 60)
    assert (ended.text, ended.truncated) == ("one two", False)
    limited = decide(trace_of(0, 1, 2, 2, 2, 2, 2), (), REQUEST, VOCABULARY, 2)
    assert (limited.text, limited.truncated) == ("one two", True)
    assert limited == decide(trace_of(0, 1, 2), (), REQUEST, VOCABULARY, 2)
