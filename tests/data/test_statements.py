"""Statements as questions and questions as statements: pairs that were read by hand."""

from pathlib import Path

import pytest

from mqan_data.questions.answered import statement_of
from mqan_data.questions.clauses import negated, question_of

_FILES = Path(__file__).parent / "statements"


def _pairs(name: str) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in (_FILES / name).read_text(encoding="utf-8").splitlines()]


def test_statements_become_the_questions_that_were_read_by_hand_or_none() -> None:
    pairs = _pairs("questions.tsv")
    made = [(question_of(statement), question) for statement, question in pairs]
    assert [pair for pair in made if pair[0] is not None and pair[0] != pair[1]] == []
    assert len(pairs) >= 500
    assert sum(question is not None for question, _ in made) >= 0.95 * len(pairs)


def test_statements_are_negated_as_they_were_by_hand() -> None:
    pairs = _pairs("negated.tsv")
    assert len(pairs) >= 40
    assert [(statement, negated(statement)) for statement, _ in pairs] == pairs


def test_questions_and_answers_become_the_statements_that_were_written_by_hand() -> None:
    rows = _pairs("answered.tsv")
    assert len(rows) >= 55
    assert [(q, a, statement_of(q, a) or "") for q, a, _ in rows] == rows


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "Is he here?",
        "What he said is true.",
        "Two men on a bench.",
        "A man walking his dog.",
        "Close the door.",
        'He said "no" and left.',
        "He left. She stayed.",
        "The man is reading and the woman is asleep.",
        "The children put their toys away.",
        "Ann, do not do that.",
    ],
)
def test_there_is_no_question_where_the_rules_are_not_sure(statement: str) -> None:
    assert question_of(statement) is None


@pytest.mark.parametrize("statement", ["Nobody came.", "All birds can fly.", "He did not come.", "Only Ann came."])
def test_what_is_denied_or_counted_is_not_negated(statement: str) -> None:
    assert negated(statement) is None


def test_a_statement_of_many_words_is_left_alone() -> None:
    assert question_of(f"The {'old ' * 70}man is here.") is not None
    assert question_of(f"The {'old ' * 100_000}man is here.") is None
