"""Sentences that mislead leave the answer right."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from mqan_core.example import Choice, Example
from mqan_data.adversarial import (
    AdversarialSource,
    changed_question,
    false_answer,
    statement,
    with_distractor,
)

_TEXTS = (
    "In 1611 Johannes Kepler lost his post in Prague. Kepler moved to Graz in 1612, where he taught mathematics. He "
    "stayed there for 14 years.",
    "The river Rhone rises in the Swiss Alps. Its first large lake is Lake Geneva, which is 310 metres deep. It meets "
    "the sea near Arles.",
    "Ada Lovelace met Charles Babbage in 1833. Later Lovelace wrote notes on his Analytical Engine.",
    "Trams have run in Gothenburg since 1879. They were drawn by horses until the city of Gothenburg bought the lines.",
)
_ASKED = (
    (0, "When did Kepler move to Graz?", "1612"),
    (1, "What is the first large lake of the Rhone?", "Lake Geneva"),
    (2, "Who did Lovelace meet in 1833?", "Charles Babbage"),
    (3, "In what city have Trams run since 1879?", "Gothenburg"),
)


@dataclass(frozen=True)
class _Rows:
    """A source of the questions above."""

    name: str = "rows"

    def __len__(self) -> int:
        return len(_ASKED)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        text, question, answer = _ASKED[index]
        start = _TEXTS[text].index(answer)
        return Example("rows", str(index), _TEXTS[text], question, (answer, answer.upper()), start)


def _draws(index: int, number: int = 200) -> list[Example]:
    source = AdversarialSource(_Rows())
    return [source.draw(index, np.random.default_rng(seed)) for seed in range(number)]


@pytest.mark.parametrize("index", range(len(_ASKED)))
def test_the_answer_stands_where_it_says_and_one_sentence_is_new(index: int) -> None:
    text, question, answer = _ASKED[index]
    places = set()
    for example in _draws(index):
        assert example.question == question
        assert example.answers == (answer, answer.upper())
        assert example.answer_start is not None
        assert example.context.startswith(answer, example.answer_start)
        places.add(example.context.find(_TEXTS[text][:20]))
        if example.context == _TEXTS[text]:
            continue
        at = next(at for at in range(len(example.context)) if example.context[at] != _TEXTS[text][at : at + 1])
        rest = _TEXTS[text]
        new = len(example.context) - len(rest)
        cuts = [cut for cut in range(at + 1) if example.context[:cut] + example.context[cut + new :] == rest]
        assert cuts
        added = example.context[cuts[-1] : cuts[-1] + new].strip()
        assert example.context.count(answer) == _TEXTS[text].count(answer)
        assert len(added.split()) >= 4
    assert len(places) > 1  # at the front, and elsewhere


def test_most_of_these_questions_are_made_harder_by_the_same_seed_alike() -> None:
    assert _draws(0, 20) == _draws(0, 20)
    assert AdversarialSource(_Rows()).name == "rows_adversarial" == _draws(0, 1)[0].task
    hardened = [example.context != _TEXTS[_ASKED[index][0]] for index in range(4) for example in _draws(index, 50)]
    assert sum(hardened) > 100


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("When did Kepler move to Graz?", "Kepler did move to Graz in X."),
        ("When was the bridge over the Rhone built?", "The bridge over the Rhone was built in X."),
        ("Who was the mayor of Turin?", "X was the mayor of Turin."),
        ("In which city did Ada Lovelace live?", "Ada Lovelace did live in X."),
        ("How many trams did Gothenburg buy in 1900?", "Gothenburg did buy X trams in 1900."),
        ("How many people were killed?", "X people were killed."),
        ("What did Tesla invent in 1890?", "Tesla did invent X in 1890."),
        ("Who invented the engine?", "X invented the engine."),
        ("After the war, who was the mayor of Turin?", "After the war, X was the mayor of Turin."),
        ("The river Rhone meets the sea near what town?", "The river Rhone meets the sea near X."),
        ("Why did OPEC block deliveries?", None),
        ("how come", None),
        ("?", None),
    ],
)
def test_questions_become_statements(question: str, said: str | None) -> None:
    assert statement(question, "X") == said


def test_a_changed_question_asks_something_else() -> None:
    for seed in range(50):
        changed = changed_question(
            "When did Kepler first visit Graz after 1612?", _TEXTS[1:], np.random.default_rng(seed)
        )
        assert changed is not None
        assert not {"Kepler", "Graz", "1612", "first"} & set(changed.rstrip("?").split())
        assert changed.startswith("When did ")
    assert changed_question("what is it?", _TEXTS, np.random.default_rng(0)) is None


def test_a_false_answer_is_of_the_type_and_not_right() -> None:
    rng = np.random.default_rng(0)
    year = Example("a", "1", _TEXTS[0], "When?", ("1612",), 60)
    name = replace(year, answers=("Lake Geneva",))
    for _ in range(50):
        number = false_answer(year, ["Prague"], rng)
        assert number is not None
        assert number.isdigit()
        assert number != "1612"
        assert false_answer(name, ["1612", "geneva", "Lake Geneva", "Prague"], rng) == "Prague"
    assert false_answer(name, ["1612", "the lake", "Lake Geneva in Bern"], rng) is None


@pytest.mark.parametrize(("written", "digits"), [("28", (1, 2)), ("100", (2, 3)), ("08", (2,)), ("007", (3,))])
def test_a_number_has_zeros_in_front_only_where_the_other_has(written: str, digits: tuple[int, ...]) -> None:
    for seed in range(200):
        example = Example("a", "1", f"It has {written} rooms.", "How many?", (written,), 7)
        other = false_answer(example, [], np.random.default_rng(seed))
        assert other is not None
        assert other.startswith("0") <= written.startswith("0")
        assert len(other) in digits


def test_questions_without_a_quotation_stay() -> None:
    rows = _Rows()
    others = [rows.draw(index, np.random.default_rng(0)) for index in range(1, 4)]
    example = rows.draw(0, np.random.default_rng(0))
    choices = (Choice("1612"), Choice("1613"))
    for other in (replace(example, answers=()), replace(example, answer_start=None), replace(example, choices=choices)):
        assert with_distractor(other, others, np.random.default_rng(0)) is None
