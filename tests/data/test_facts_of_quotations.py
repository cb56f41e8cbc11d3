"""Questions of fact about paragraphs."""

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.facts import FactsSource, another_value, as_fact

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


class _Rows:
    name = "rows"

    def __len__(self) -> int:
        return len(_ROWS)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        return _ROWS[index]


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
    assert _answers(0, "Is it true that the bridge was not built in 1702?") == {("no",)}
    assert _answers(0, "Is it wrong that the bridge was built in 1720?") == {("yes",)}
    assert _answers(1, "Did Johannes Kepler leave Prague?") == {("yes",)}
    assert _answers(1, "Did Ada Byron leave Prague?") == {("no",)}
    assert _answers(1, "Did Johannes Kepler leave Paris?") == {()}


def test_the_evidence_is_the_sentence_of_the_right_answer() -> None:
    for example in _facts(0):
        if not example.answers:
            assert example.evidence is None
            continue
        [(start, end)] = example.evidence or ()
        assert _TEXT[start:end].startswith("The bridge was built")
        assert _TEXT[start:end].endswith("1720.")


def test_every_kind_of_question_is_asked_with_two_choices() -> None:
    drawn = [FactsSource(_Rows()).draw(seed % 3, np.random.default_rng(seed)) for seed in range(300)]
    assert {example.task for example in drawn} == {"rows_facts"}
    asked = [example for example in drawn if example.choices]
    assert len(asked) > 280
    assert all(len(example.choices) == 2 and example.answer_start is None for example in asked)
    answers = [example.answers[0].lower() if example.answers else "" for example in asked]
    assert all(answers.count(word) > 30 for word in ("yes", "no", ""))


def test_another_value_is_no_part_of_the_answer_or_the_question_and_does_not_stand_beside_it() -> None:
    text = "Ann Hill and Bob Lee met Carl May (Charles May) in Rome on 3 May 1990; 12 of 30 guests paid 5%."

    def values(question: str, answer: str) -> set[str | None]:
        example = Example("t", "0", text, question, (answer,), text.index(answer))
        return {another_value(example, np.random.default_rng(seed)) for seed in range(40)}

    assert values("Who met Carl May?", "Ann Hill") == {"Rome"}
    assert values("How many guests paid?", "12") == {"30"}
    assert values("When did they meet?", "3 May 1990") == {None}
    assert values("What did they pay?", "5%") == {None}


def test_what_has_choices_or_no_answer_is_no_fact() -> None:
    refused = Example("rows", "0", _TEXT, "Who died?", ())
    choice = Example("rows", "0", _TEXT, "Is it old?", ("yes",), choices=(Choice("yes"), Choice("no")))
    for example in (refused, choice):
        assert as_fact(example, _OTHER, np.random.default_rng(1)) is None
