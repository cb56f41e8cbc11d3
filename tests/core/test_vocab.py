"""Vocabulary lookups, and the per-request numbers of pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqan_core.text.vocab import END, END_ID, Vocabulary, number_slots

VOCABULARY = Vocabulary([" yes ", " no ", "? "], ["yes", "no", "paris"])

pieces = st.lists(st.sampled_from([" yes ", " no ", "? ", " unseen ", " other ", "'", " s "]), max_size=30)


def test_lookups() -> None:
    assert VOCABULARY.num_generated == 4
    assert VOCABULARY.pieces[END_ID] == END
    assert VOCABULARY.piece_id(" yes ") == 1
    assert VOCABULARY.piece_id("yes") is None
    assert VOCABULARY.word_row("paris") == 2
    assert VOCABULARY.word_row(" paris ") is None


@pytest.mark.parametrize(
    ("pieces", "words"),
    [([" a ", " a "], []), ([], ["a", "a"]), ([END], [])],
)
def test_duplicates_are_refused(pieces: list[str], words: list[str]) -> None:
    with pytest.raises(ValueError, match="duplicates"):
        Vocabulary(pieces, words)


@given(pieces, pieces)
def test_slots_restore_the_pieces(context: list[str], question: list[str]) -> None:
    slots = number_slots(VOCABULARY, context, question)
    assert [slots.pieces[slot] for slot in slots.context] == context
    assert [slots.pieces[slot] for slot in slots.question] == question
    assert len(set(slots.pieces)) == len(slots.pieces)
    assert list(slots.pieces) == list(dict.fromkeys(context + question)), "numbered in order of appearance"


@given(pieces, pieces)
def test_slots_know_what_can_be_generated(context: list[str], question: list[str]) -> None:
    slots = number_slots(VOCABULARY, context, question)
    assert slots.generator_ids.shape == (len(slots.pieces),)
    for piece, generator_id in zip(slots.pieces, slots.generator_ids.tolist(), strict=True):
        known = VOCABULARY.piece_id(piece)
        assert generator_id == (VOCABULARY.num_generated if known is None else known)
