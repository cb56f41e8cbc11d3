"""Texts between other texts."""

from dataclasses import replace

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.surrounded import SurroundedSource, surrounded

OWN = Example("rows", "1", "The bridge was opened in 1932.", "When was the bridge opened?", ("1932",), 25)
OTHERS = ["Cats sleep for most of the day.", "The treaty of 1932 was signed in Rome.", "A kilo of rice feeds ten."]


class Rows:
    name = "rows"

    def __len__(self) -> int:
        return 1 + len(OTHERS)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        return (
            OWN if index == 0 else replace(OWN, id=str(index), context=OTHERS[index - 1], answers=(), answer_start=None)
        )


def test_the_quotation_moves_with_its_text() -> None:
    drawn = [SurroundedSource(Rows()).draw(0, np.random.default_rng(seed)) for seed in range(300)]
    assert {example.task for example in drawn} == {"rows_surrounded"}
    answered = [example for example in drawn if example.answers]
    for example in answered:
        assert example.answer_start is not None
        assert example.context[example.answer_start :].startswith("1932")
        assert OWN.context in example.context
        assert example.context.index(OWN.context) + 25 == example.answer_start
    starts = {example.context.startswith(OWN.context) for example in answered}
    ends = {example.context.endswith(OWN.context) for example in answered}
    assert starts == ends == {True, False}
    missing = [example for example in drawn if not example.answers]
    assert 20 < len(missing) < 80  # a fifth of four fifths
    for example in missing:
        assert example.answer_start is None
        assert "1932" not in example.context
        assert example.context


def test_only_what_has_room_is_put_around() -> None:
    rng = np.random.default_rng(0)
    long = "x " * 790
    example = surrounded(OWN, [long, OTHERS[0]], is_missing=False, rng=rng)
    assert long not in example.context
    assert OTHERS[0] in example.context
    assert surrounded(OWN, [], is_missing=True, rng=rng) == OWN
    assert surrounded(OWN, ["x" * 2_000], is_missing=False, rng=rng) == OWN


def test_choices_stay_as_they_are() -> None:
    chosen = replace(OWN, answers=("new",), answer_start=None, choices=(Choice("new"), Choice("old")))

    class Chosen(Rows):
        def draw(self, index: int, rng: np.random.Generator) -> Example:
            return chosen

    drawn = [SurroundedSource(Chosen()).draw(0, np.random.default_rng(seed)) for seed in range(20)]
    assert {example.context for example in drawn} == {OWN.context}
