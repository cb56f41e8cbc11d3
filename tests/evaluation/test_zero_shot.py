"""The classes by other names, and the question in other words."""

from dataclasses import replace

import pytest

from mqan_core.example import Example
from mqan_evaluation.field_sections import LABELS, OWN, REPHRASINGS, Wording

QUESTION = OWN.format(*LABELS)
NEGATIVE = Example("sst", "1", "Dull.", QUESTION, ("negative",))


def test_renaming_changes_question_and_answer_together() -> None:
    assert Wording().apply(NEGATIVE) == NEGATIVE
    renamed = Wording(("angry", "happy"), in_reverse=True).apply(NEGATIVE)
    assert renamed.question == "Is this review happy or angry?"
    assert renamed.answers == ("angry",)
    assert renamed.context == NEGATIVE.context


@pytest.mark.parametrize("rephrasing", REPHRASINGS)
@pytest.mark.parametrize("label", LABELS)
def test_a_rephrased_question_offers_the_answer_once(rephrasing: str, label: str) -> None:
    asked = Wording(question=rephrasing).apply(replace(NEGATIVE, answers=(label,)))
    assert asked.question != QUESTION
    assert asked.answers == (label,)
    words = asked.question.replace("?", " ").replace(":", " ").replace(",", " ").split()
    assert [words.count(name) for name in LABELS] == [1, 1]
    assert words.index("negative") < words.index("positive")
