"""A checkpoint and a bundle as what answers: the same decisions, in any batch, whatever the order of the choices."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqan_core.answer.finish import several
from mqan_core.answer.types import Answer, ChoiceProbability
from mqan_core.example import Choice, Example
from mqan_evaluation.answerers import Answerer, EngineAnswerer, TorchAnswerer, answer_all

LABELS = tuple(map(Choice, ("joy", "fear", "anger or rage")))


def ask(context: str, question: str, choices: tuple[Choice, ...] = (), multiple: bool = False) -> Example:
    return Example("t", "1", context, question, (), choices=choices, multiple=multiple)


ASKED = [
    ask("The dog came at me.", "What was felt?", LABELS),
    ask("It is 12.", "What is it?"),
    ask("Ann met the old man near the harbour " * 20, "Who is it?"),
    ask("The dog came at me.", "What was felt?", LABELS, multiple=True),
    ask("The dog came at me.", "Is it fear?", (Choice("yes"), Choice("no"))),
]


def near(first: Answer | None, second: Answer | None, tolerance: float = 1e-4) -> bool:
    if first is None or second is None:
        return first is second
    numbers = [(a.probability, a.refusal, *(c.probability for c in a.choices)) for a in (first, second)]
    return (first.text, first.chosen) == (second.text, second.chosen) and all(
        abs(a - b) < tolerance for a, b in zip(*numbers, strict=True)
    )


def test_the_same_question_is_asked_once(tiny_answerer: TorchAnswerer) -> None:
    counts: list[int] = []
    answer_all(tiny_answerer, [ASKED[0]] * 40 + [ASKED[1]], counts.append)
    assert sum(counts) == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_one_thread_is_the_callers(threads: int) -> None:
    """An engine on a GPU answers on no other."""
    found: set[int] = set()

    class Watched(Answerer):
        title = where = ""
        sources = ()

        def answer(self, asked: Sequence[Example]) -> list[Answer | None]:
            found.add(threading.get_ident())
            return [None] * len(asked)

    answer_all(Watched(), [ask(f"text {i}", "What?") for i in range(100)], threads=threads)
    assert (found == {threading.get_ident()}) == (threads == 1)


def test_what_cannot_be_read_has_no_answer(tiny_answerer: TorchAnswerer) -> None:
    too_long = ask("text", "word " * 300)
    answers = answer_all(tiny_answerer, [ask("  ", "What?"), too_long, ASKED[1]])
    assert answers[:2] == [None, None]
    assert answers[2] is not None
    assert tiny_answerer.answer([too_long]) == [None]


def test_several_labels_are_those_that_beat_refusing() -> None:
    choices = (
        ChoiceProbability("a", 0.5, 0.625, 0.5 / 0.7),
        ChoiceProbability("b", 0.2, 0.25, 0.5 + 1e-9),
        ChoiceProbability("c", 0.1, 0.125, 0.1 / 0.3),
    )
    answer = several(Answer("a", 0.5, (), (), False, refusal=0.2, choices=choices))
    assert (answer.text, answer.chosen) == ("a, b", ("a", "b"))
    assert answer.probability == pytest.approx(0.5 / 0.7 * 0.5 * 0.2 / 0.3, rel=1e-6)


def test_a_checkpoint_is_opened_with_its_averaged_weights(small_checkpoint: Path, tiny_answerer: TorchAnswerer) -> None:
    opened = TorchAnswerer.open(small_checkpoint)
    assert opened.title == "tiny, step 1"
    assert opened.sources == ("clickbait", "isear_like")
    expected = answer_all(tiny_answerer, ASKED)
    assert all(near(a, b) for a, b in zip(answer_all(opened, ASKED), expected, strict=True))


def test_a_bundle_decides_as_its_checkpoint(small_checkpoint: Path, small_bundle: Path) -> None:
    bundle = EngineAnswerer.open(small_bundle, precision="float32")
    assert bundle.title == "small 1"
    assert bundle.sources == ("clickbait", "isear_like")
    opened = TorchAnswerer.open(small_checkpoint)
    closed = [one for one in ASKED if one.choices]  # vectors of word pieces are 8-bit in a bundle: 0.005 was seen
    pairs = zip(answer_all(bundle, closed), answer_all(opened, closed), strict=True)
    assert all(near(a, b, 1e-2) for a, b in pairs)
    free = ask("It is 12.", "What is it?")
    first, second = answer_all(bundle, [free])[0], answer_all(opened, [free])[0]
    assert first is not None
    assert second is not None
    assert first.refusal == pytest.approx(second.refusal, abs=2e-3)
    assert answer_all(bundle, [ask(" ", "What?")]) == [None]
