"""Other ways to ask about labels: the answer stays right, and nothing else changes."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from mqan_core.example import Choice, Example
from mqan_data.formats.dataset_file import load_dataset
from mqan_evaluation.field_sections import LABELS, OWN, REPHRASINGS, Wording
from mqan_evaluation.label_sections import (
    MOST_NAMED,
    held_back_sets,
    labels_part,
    named_in_question,
    yes_or_no,
)

EXAMPLE = Example(
    "isear", "1", "The dog came.", "What was felt?", ("fear",), choices=tuple(map(Choice, ("joy", "fear", "anger")))
)


def test_every_set_is_held_back_and_asks_about_one_label() -> None:
    sets = held_back_sets()
    assert len(sets) == 7
    for name, label_set in sets.items():
        assert load_dataset(name).held_back
        assert labels_part(name).forms[0].yes_no
        assert len(label_set.questions) >= 3
        assert not set(label_set.questions) & set(labels_part(name).forms[0].questions)
        names = {label.casefold() for label in label_set.synonyms}
        assert not names & {synonym.casefold() for synonym in label_set.synonyms.values()}


def test_a_set_without_all_synonyms_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sets.yaml"
    path.write_text('isear: {questions: ["How?"], synonyms: {joy: happiness}}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="anger"):
        held_back_sets(path)


def test_labels_are_named_in_the_question_in_both_orders() -> None:
    first, second = named_in_question(EXAMPLE, np.random.default_rng(0))
    orders = [[e.question.index(label) for label in ("joy", "fear", "anger")] for e in (first, second)]
    assert np.argsort(orders[0]).tolist() == np.argsort(orders[1]).tolist()[::-1]
    assert first.choices == second.choices == ()
    assert first.answers == second.answers == ("fear",)


def test_of_many_labels_so_many_are_named_that_they_can_be_read() -> None:
    labels = [f"label <{i}>" for i in range(77)]
    example = dataclasses.replace(EXAMPLE, answers=("label <70>",), choices=tuple(map(Choice, labels)))
    first, second = named_in_question(example, np.random.default_rng(1))
    named = [[label for label in labels if label in e.question] for e in (first, second)]
    assert named[0] == named[1]
    assert len(named[0]) == MOST_NAMED
    assert "label <70>" in named[0]


def test_yes_and_no_are_about_a_right_and_a_wrong_label() -> None:
    rng = np.random.default_rng(0)
    true = yes_or_no(EXAMPLE, "Is it {label}?", True, rng)
    assert (true.question, true.answers) == ("Is it fear?", ("yes",))
    asked = {yes_or_no(EXAMPLE, "Is it {label}?", False, rng) for _ in range(30)}
    assert {e.question for e in asked} == {"Is it joy?", "Is it anger?"}
    assert {e.answers for e in asked} == {("no",)}


@pytest.mark.parametrize("rephrasing", REPHRASINGS)
@pytest.mark.parametrize("label", LABELS)
def test_a_rephrased_question_offers_the_answer_once(rephrasing: str, label: str) -> None:
    own = OWN.format(*LABELS)
    asked = Wording(question=rephrasing).apply(Example("sst", "1", "Dull.", own, (label,)))
    assert asked.question != own
    assert asked.answers == (label,)
    words = asked.question.replace("?", " ").replace(":", " ").replace(",", " ").split()
    assert [words.count(name) for name in LABELS] == [1, 1]
    assert words.index("negative") < words.index("positive")
