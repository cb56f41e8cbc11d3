"""A paragraph within a long text: it stays whole, and what is quoted from elsewhere does not count as found."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mqan_core.answer.types import Answer, AnswerSpan, Source
from mqan_core.example import Example
from mqan_evaluation.answerers import Answerer
from mqan_evaluation.field_sections import LENGTH, long_section, within_others
from mqan_evaluation.sections import Measuring

PARAGRAPHS = [f"Paragraph {i} says {i}. " + "It goes on. " * (5 + i % 7) for i in range(400)]


def test_the_paragraph_stays_whole_at_a_random_place() -> None:
    example = Example("squad", "7", PARAGRAPHS[7], "What does it say?", ("7",), answer_start=17)
    places = set()
    for seed in range(20):
        placed = within_others(example, PARAGRAPHS, 5_000, np.random.default_rng(seed))
        assert placed.context.count(PARAGRAPHS[7]) == 1
        assert 4_800 <= len(placed.context) <= 5_000
        assert placed.answer_start is None
        places.add(placed.context.index(PARAGRAPHS[7]))
    assert len(places) > 15


class Quoting(Answerer):
    title, where, sources = "quoting", "here", ()

    def __init__(self, is_right: bool) -> None:
        self._is_right = is_right

    def answer(self, asked: Sequence[Example]) -> list[Answer | None]:
        return [self._quote(example) for example in asked]

    def _quote(self, ask: Example) -> Answer:
        text = ask.question.removeprefix("Which number is in ")
        own = ask.context.index(f"{text} says")
        start = own if self._is_right or len(ask.context) < LENGTH / 2 else ask.context.index("goes")
        quoted = AnswerSpan(Source.CONTEXT, start, start + 4, ask.context[start : start + 4])
        number = text.removeprefix("Paragraph ")
        return Answer(number, 0.9, (), (quoted,), False)


@pytest.mark.parametrize(("is_right", "share"), [(True, 100.0), (False, 0.0)])
def test_what_is_quoted_from_elsewhere_is_not_found(
    monkeypatch: pytest.MonkeyPatch, is_right: bool, share: float
) -> None:
    examples = [
        Example("squad", str(i), text, f"Which number is in Paragraph {i}", (str(i),))
        for i, text in enumerate(PARAGRAPHS)
    ]
    monkeypatch.setattr("mqan_evaluation.field_sections.validation_examples", lambda *_: examples)
    measuring = Measuring(Quoting(is_right), Path(), limit=10)
    alone, within = long_section(measuring).rows
    assert alone["examples"] == within["examples"] == 10
    assert alone["exact"] == within["exact"] == 100
    assert (alone["right ones quoted from the paragraph"], within["right ones quoted from the paragraph"]) == (
        100,
        share,
    )
    assert within["refused"] == 0
    assert max(len(answer["context"]) for answer in measuring.answers) <= LENGTH
