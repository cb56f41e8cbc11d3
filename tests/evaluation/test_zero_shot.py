"""The classes by other names, and the question in other words."""

from dataclasses import replace

import pytest

from mqan_core.example import Example
from mqan_evaluation.field_sections import LABELS, OWN, REPHRASINGS, Wording

QUESTION = OWN.format(*LABELS)
NEGATIVE = Example("sst", "1", "Dull.", QUESTION, ("negative",))


@pytest.mark.parametrize("rephrasing", REPHRASINGS)
@pytest.mark.parametrize("label", LABELS)
def test_a_rephrased_question_offers_the_answer_once(rephrasing: str, label: str) -> None:
    asked = Wording(question=rephrasing).apply(replace(NEGATIVE, answers=(label,)))
    assert asked.question != QUESTION
    assert asked.answers == (label,)
    words = asked.question.replace("?", " ").replace(":", " ").replace(",", " ").split()
    assert [words.count(name) for name in LABELS] == [1, 1]
    assert words.index("negative") < words.index("positive")
