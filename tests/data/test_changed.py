"""Questions that are changed so that their texts do not answer them."""

import numpy as np
import pytest

from mqan_core.example import Choice, Example
from mqan_data.changed import ChangedSource, without_answer

_TEXT = "In 1611 Johannes Kepler left Prague. Kepler moved to Graz in 1612. Tycho Brahe had died there before him."
_OTHER = "The letters of Marie Curie are kept in Paris."


class _Rows:
    name = "rows"

    def __len__(self) -> int:
        return 2

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        if index == 0:
            return Example("rows", "0", _TEXT, "When did Kepler move to Graz?", ("1612",), _TEXT.index("1612"))
        return Example("rows", "1", _OTHER, "where are they kept?", ("Paris",), _OTHER.index("Paris"))


def _draws(index: int) -> list[Example]:
    return [ChangedSource(_Rows()).draw(index, np.random.default_rng(seed)) for seed in range(200)]


def test_some_questions_are_changed_and_then_have_no_answer() -> None:
    drawn = _draws(0)
    changed = [example for example in drawn if not example.answers]
    assert 0.4 < len(changed) / len(drawn) < 0.8
    for example in drawn:
        assert (example.task, example.context) == ("rows_changed", _TEXT)
        assert bool(example.answers) == (example.question == "When did Kepler move to Graz?")
        assert (example.answer_start is None) == (not example.answers)
    names = " ".join(example.question for example in changed)
    assert "Brahe" in names  # of its own text
    assert "Paris" in names  # of another


def test_a_question_without_a_name_stays() -> None:
    assert all(example.answers == ("Paris",) for example in _draws(1))


def test_the_answer_is_no_name_to_ask_by() -> None:
    example = Example("rows", "0", "Ada met Bob.", "Whom did Ada meet?", ("Bob",), 8)
    assert without_answer(example, "Ada met Bob.", np.random.default_rng(1)) is None


def test_a_question_that_is_changed_is_not_answered_after_all() -> None:
    text = (
        "The palace Mirabell (Altenau) is old. Later Altenau and Belvedere were one. The bank Electra bought "
        "Mirabell in 1986. They say that Electra sold Belvedere."
    )
    example = Example("rows", "0", text, "When was the palace Mirabell bought?", ("1986",), text.index("1986"))
    asked = [without_answer(example, text, np.random.default_rng(seed)) for seed in range(50)]
    # not Altenau, another name for what is asked, nor Electra, which the sentence with the answer names
    assert {changed.question for changed in asked if changed} == {"When was the palace Belvedere bought?"}


@pytest.mark.parametrize(
    "example",
    [
        Example("rows", "0", _TEXT, "Did Kepler stay?", ("yes",), choices=(Choice("yes"), Choice("no"))),
        Example("rows", "0", _TEXT, "Where did Kepler die?", ()),
    ],
)
def test_choices_and_refusals_stay(example: Example) -> None:
    class One(_Rows):
        def draw(self, index: int, rng: np.random.Generator) -> Example:
            return example

    drawn = [ChangedSource(One()).draw(0, np.random.default_rng(seed)) for seed in range(50)]
    assert {(e.question, e.answers) for e in drawn} == {(example.question, example.answers)}
