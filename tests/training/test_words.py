"""Batches of the paper's network: what can be trained on, padding and targets."""

from mqan_core.example import Choice, Example
from mqan_training.words import prepare_words


def test_only_free_answers_within_the_limits_are_trained_on() -> None:
    def kept(context: str, question: str, *answers: str, choices: tuple[Choice, ...] = ()) -> bool:
        return prepare_words(Example("t", "0", context, question, answers, choices=choices), 6, 2) is not None

    assert kept("a b c d e f", "q", "a b")
    assert not kept("a b c d e f g", "q", "a")
    assert not kept("a", "q", "x y z")
    assert not kept(" \n", "q", "a")
    assert not kept("a", " ", "a")
    assert not kept("a", "q", "")
    assert not kept("a", "q")
    assert not kept("a", "q", "a", choices=(Choice("a"),))
