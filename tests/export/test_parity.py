"""What the comparison of a bundle with its checkpoint lets pass, by answers made up for it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mqan_core.answer.types import Answer, AnswerToken, ChoiceProbability, Masses, Source, Span, compose
from mqan_core.example import Example
from mqan_export import parity
from mqan_export.parity import (
    Parity,
    ParityError,
    agreement,
    answer_difference,
    check_parity,
    check_places,
    most_ties,
)

CONTEXT = "yes no yes no"
MIXED = Masses(0.5, 0.1, 0.4)
Compare = Callable[[Sequence[Answer], Sequence[Answer]], Parity]


def say(word: str, probability: float, start: int | None = None, masses: Masses = MIXED) -> Answer:
    """Make an answer of one word, copied from the context or generated."""
    source, span = (Source.VOCABULARY, None) if start is None else (Source.CONTEXT, Span(start, start + len(word)))
    token = AnswerToken(word, f" {word} ", probability, source, masses, span)
    return compose([token], probability, False, CONTEXT, "")


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compares torch's answers with those of a bundle, which it gives in batches and alone."""

    def check(torch_answers: Sequence[Answer], others: Sequence[Answer]) -> Parity:
        engine, rows = _set_up(monkeypatch, others)
        answers = iter(torch_answers)
        return check_parity(lambda batch, _: [next(answers) for _ in batch], engine, rows)[0]

    return check


def _set_up(monkeypatch: pytest.MonkeyPatch, answers: Sequence[Answer]) -> tuple[Any, list[Example]]:
    rows = [Example("t", str(i), CONTEXT, "?", ()) for i in range(len(answers))]
    read = [(row, SimpleNamespace(request=i)) for i, row in enumerate(rows)]
    monkeypatch.setattr(parity, "readable", lambda *_: read)
    engine = SimpleNamespace(max_answer_tokens=5, answer=lambda batch, _: [answers[row.request] for row in batch])
    return engine, rows


def test_a_tie_counts_once_an_example(compare: Compare) -> None:
    report = compare([say("yes", 0.3)] * 2, [say("no", 0.3), say("yes", 0.3)])
    assert (report.num_examples, report.num_ties) == (2, 1)


def choose(label: str, probability: float) -> Answer:
    """Make an answer that is a label: its first word has the label's probability, the others have 1."""
    first, *others = label.split()
    tokens = [say(first, probability).tokens[0], *(say(word, 1.0).tokens[0] for word in others)]
    chosen = ChoiceProbability(label, probability, probability, probability)
    return replace(compose(tokens, probability, False, CONTEXT, ""), choices=(chosen,))


def test_labels_that_begin_alike_are_as_likely_as_they_are_as_a_whole(compare: Compare) -> None:
    assert compare([choose("account opening", 0.31)], [choose("account closing", 0.31)]).num_ties == 1
    with pytest.raises(ParityError, match="torch answers 'account opening', the bundle 'account closing'"):
        compare([choose("account opening", 0.61)], [choose("account closing", 0.61)])


def test_two_words_that_are_both_sure_are_no_tie(compare: Compare) -> None:
    with pytest.raises(ParityError, match="example 0: torch answers 'yes', the bundle 'no'"):
        compare([say("yes", 0.999)] * 30, [say("no", 0.999)] * 30)


def test_many_ties_are_no_ties(compare: Compare) -> None:
    assert [most_ties(number) for number in (1, 199, 200, 500)] == [1, 1, 2, 5]
    with pytest.raises(ParityError, match="2 of 30 answers differ where two ways are equally likely, at most 1 may"):
        compare([say("yes", 0.3)] * 30, [say("no", 0.3)] * 2 + [say("yes", 0.3)] * 28)


def test_what_is_not_finite_differs() -> None:
    left = say("yes", 0.3)
    for wrong in (math.nan, math.inf):
        assert answer_difference(left, replace(left, probability=wrong)) == math.inf
        assert answer_difference(left, replace(left, refusal=wrong)) == math.inf
        assert answer_difference(left, say("yes", 0.3, masses=Masses(0.5, 0.1, wrong))) == math.inf


def test_a_number_that_is_none_fails(compare: Compare) -> None:
    with pytest.raises(ParityError, match="largest difference of a probability: inf"):
        compare([say("yes", math.nan)], [say("yes", math.nan)])


def test_words_have_to_be_from_the_same_place(compare: Compare) -> None:
    few = Masses(0.01, 0.01, 0.98)
    with pytest.raises(ParityError, match="torch takes 'yes' from .*vocabulary.*, the bundle from .*context"):
        compare([say("yes", 0.9, masses=few)], [say("yes", 0.9, 0, few)])
    same = say("yes", 0.4, 0)
    assert not check_places("0", same, [same])
    assert check_places("0", same, [same, say("yes", 0.4, 7)])
    assert check_places("0", same, [say("yes", 0.4)])
    with pytest.raises(ParityError, match="2 of 2 answers differ"):
        compare([same] * 2, [say("yes", 0.4, 7)] * 2)


def test_answers_that_torch_is_sure_of_have_to_be_equal_with_8_bit_products(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Parity(20, 0, 0, 0, 0.0)
    sure, unsure, other = say("yes", 0.9), say("yes", 0.5), say("no", 0.9)
    for torch_answers, answers, share in (
        ([sure] * 20, [sure] * 17 + [other] * 3, 0.85),
        ([sure] + [unsure] * 19, [other] * 20, 0.0),
    ):
        engine, rows = _set_up(monkeypatch, answers)
        assert agreement(report, torch_answers, engine, rows).int8_agreement == pytest.approx(share)
    engine, rows = _set_up(monkeypatch, [sure] * 16 + [other] * 4)
    with pytest.raises(ParityError, match="4 of the 20 answers .* are others, at least 85% have to be equal"):
        agreement(report, [sure] * 20, engine, rows)
    engine, rows = _set_up(monkeypatch, [replace(sure, refusal=math.nan)])
    with pytest.raises(ParityError, match="example 0: with 8-bit products a probability is not a number from 0 to 1"):
        agreement(report, [sure], engine, rows)
