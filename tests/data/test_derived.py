"""Sources that change the questions and texts of another: what is right stays right, or becomes no answer."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mqan_core.example import Choice, Example
from mqan_data.derived import (
    DERIVED,
    DerivedSource,
    another_value,
    as_fact,
    changed_question,
    surrounded,
    without_answer,
)


class Rows:
    name = "rows"

    def __init__(self, *examples: Example) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        return self.examples[index]


# --- sentences that mislead

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


_ROWS_ASKED = Rows(
    *(
        Example("rows", str(index), _TEXTS[text], question, (answer, answer.upper()), _TEXTS[text].index(answer))
        for index, (text, question, answer) in enumerate(_ASKED)
    )
)


def _draws(index: int, number: int = 200) -> list[Example]:
    source = DerivedSource(_ROWS_ASKED, "adversarial")
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
    assert DerivedSource(_ROWS_ASKED, "adversarial").name == "rows_adversarial" == _draws(0, 1)[0].task
    hardened = [example.context != _TEXTS[_ASKED[index][0]] for index in range(4) for example in _draws(index, 50)]
    assert sum(hardened) > 100


def test_a_changed_question_asks_something_else() -> None:
    for seed in range(50):
        changed = changed_question(
            "When did Kepler first visit Graz after 1612?", _TEXTS[1:], np.random.default_rng(seed)
        )
        assert changed is not None
        assert not {"Kepler", "Graz", "1612", "first"} & set(changed.rstrip("?").split())
        assert changed.startswith("When did ")
    assert changed_question("what is it?", _TEXTS, np.random.default_rng(0)) is None


@pytest.mark.parametrize(("number", "digits"), [("28", (1, 2)), ("100", (2, 3)), ("08", (2,)), ("007", (3,))])
def test_a_number_has_zeros_in_front_only_where_the_other_has(number: str, digits: tuple[int, ...]) -> None:
    for seed in range(200):
        other = (changed_question(number, [], np.random.default_rng(seed)) or "").strip()
        assert other.startswith("0") <= number.startswith("0")
        assert len(other) in digits


# --- questions that are changed

_KEPLER = "In 1611 Johannes Kepler left Prague. Kepler moved to Graz in 1612. Tycho Brahe had died there before him."
_CURIE = "The letters of Marie Curie are kept in Paris."


_ROWS_CHANGED = Rows(
    Example("rows", "0", _KEPLER, "When did Kepler move to Graz?", ("1612",), _KEPLER.index("1612")),
    Example("rows", "1", _CURIE, "where are they kept?", ("Paris",), _CURIE.index("Paris")),
)


def _changed(index: int) -> list[Example]:
    return [DerivedSource(_ROWS_CHANGED, "changed").draw(index, np.random.default_rng(seed)) for seed in range(200)]


def test_some_questions_are_changed_and_then_have_no_answer() -> None:
    drawn = _changed(0)
    changed = [example for example in drawn if not example.answers]
    assert 0.4 < len(changed) / len(drawn) < 0.8
    for example in drawn:
        assert (example.task, example.context) == ("rows_changed", _KEPLER)
        assert bool(example.answers) == (example.question == "When did Kepler move to Graz?")
        assert (example.answer_start is None) == (not example.answers)
    names = " ".join(example.question for example in changed)
    assert "Brahe" in names  # of its own text
    assert "Paris" in names  # of another


def test_a_question_without_a_name_stays() -> None:
    assert all(example.answers == ("Paris",) for example in _changed(1))


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


# --- texts between others

OWN = Example("rows", "1", "The bridge was opened in 1932.", "When was the bridge opened?", ("1932",), 25)
OTHERS = ["Cats sleep for most of the day.", "The treaty of 1932 was signed in Rome.", "A kilo of rice feeds ten."]


OTHER_ROWS = [replace(OWN, context=other, answers=(), answer_start=None) for other in OTHERS]


def test_the_quotation_moves_with_its_text() -> None:
    drawn = [
        DerivedSource(Rows(OWN, *OTHER_ROWS), "surrounded").draw(0, np.random.default_rng(seed)) for seed in range(300)
    ]
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


# --- questions of fact

_TEXT = (
    "The abbey is old. In 1611 Johannes Kepler left Prague after a fire. The bridge was built in 1702 by Erik Lund, "
    "and the mill was sold to Ada Byron in 1720."
)
_OTHER = "The letters of Marie Curie are kept in Paris."
_ROWS = (
    Example("rows", "0", _TEXT, "When was the bridge built?", ("1702",), _TEXT.index("1702")),
    Example("rows", "1", _TEXT, "Who left Prague?", ("Johannes Kepler",), _TEXT.index("Johannes")),
    Example("rows", "2", _OTHER, "Why are they kept?", ("letters",), _OTHER.index("letters")),
)


@cache
def _facts(number: int, seeds: int = 300) -> list[Example]:
    drawn = [as_fact(_ROWS[number], _OTHER, np.random.default_rng(seed)) for seed in range(seeds)]
    return [example for example in drawn if example is not None]


def _answers(number: int, question: str) -> set[tuple[str, ...]]:
    found = {
        tuple(a.lower() for a in e.answers) for e in _facts(number) if e.question == question and e.context == _TEXT
    }
    assert found, question
    return found


def test_right_answers_are_true_and_other_values_of_the_text_false() -> None:
    assert _answers(0, "Was the bridge built in 1702?") == {("yes",)}
    assert _answers(0, "Was the bridge built in 1611?") == {("no",)}
    assert _answers(0, "Is it true that the bridge was built in 1702?") == {("yes",)}
    assert _answers(0, "Is it true that the bridge was not built in 1611?") == {("yes",)}
    assert _answers(0, "Is it false that the bridge was not built in 1702?") == {("yes",)}
    assert _answers(1, "Did Johannes Kepler leave Prague?") == {("yes",)}
    assert _answers(1, "Did Ada Byron leave Prague?") == {("no",)}
    assert () in _answers(1, "Did Johannes Kepler leave Paris?")


def test_the_evidence_is_the_sentence_of_the_right_answer() -> None:
    for example in _facts(0):
        if example.evidence is None:
            assert not {answer.lower() for answer in example.answers} & {"yes", "no", "true", "false"}
            continue
        [(start, end)] = example.evidence or ()
        assert _TEXT[start:end].startswith("The bridge was built")
        assert _TEXT[start:end].endswith("1720.")


def test_facts_are_affirmed_denied_and_left_open() -> None:
    drawn = [DerivedSource(Rows(*_ROWS), "facts").draw(seed % 3, np.random.default_rng(seed)) for seed in range(300)]
    assert {example.task for example in drawn} == {"rows_facts"}
    asked = [example for example in drawn if len(example.choices) == 2]
    assert all(example.answer_start is None for example in asked)
    answers = [example.answers[0].lower() if example.answers else "" for example in asked]
    assert all(answers.count(word) > 20 for word in ("yes", "no", ""))


def test_another_value_is_no_part_of_the_answer_or_the_question_and_does_not_stand_beside_it() -> None:
    text = "Ann Hill and Bob Lee met Carl May (Charles May) in Rome on 3 May 1990; 12 of 30 guests paid 5%."

    def values(question: str, answer: str) -> set[str | None]:
        example = Example("t", "0", text, question, (answer,), text.index(answer))
        return {another_value(example, text, np.random.default_rng(seed)) for seed in range(40)}

    assert values("Who met Carl May?", "Ann Hill") == {"Rome"}
    assert values("How many guests paid?", "12") == {"30"}
    assert values("When did they meet?", "3 May 1990") == {None}
    assert values("What did they pay?", "5%") == {None}


# --- what no source changes


@pytest.mark.parametrize("way", DERIVED)
def test_choices_and_refusals_stay(way: str) -> None:
    chosen = Example("rows", "0", _TEXT, "Is it old?", ("yes",), choices=(Choice("yes"), Choice("no")))
    refused = Example("rows", "1", _TEXT, "Where did Kepler die?", ())
    given = Rows(chosen, *(() if way == "surrounded" else (refused,)))
    for index, example in enumerate(given.examples):
        drawn = [DerivedSource(given, way).draw(index, np.random.default_rng(seed)) for seed in range(50)]
        assert {(e.context, e.question, e.answers) for e in drawn} == {(_TEXT, example.question, example.answers)}
