"""What counts as a right answer to a question of a user."""

import json
from pathlib import Path

import pytest

from mqan_core.example import Example
from mqan_data.files import DatasetError
from mqan_evaluation.answerers import Answerer, TorchAnswerer
from mqan_evaluation.cases import LABELS, case_section, is_right, read_cases
from mqan_evaluation.sections import Measuring
from tests.tables import cases


def case(*answers: str, kind: str = "field-question") -> Example:
    return Example(kind, "1", "text", "question", answers)


@pytest.mark.parametrize(
    ("said", "gold"),
    cases("evaluation/right_answers.jsonl"),
)
def test_these_are_right(said: str, gold: str) -> None:
    assert is_right(case("something else", gold), said)


@pytest.mark.parametrize(
    ("said", "gold"),
    cases("evaluation/wrong_answers.jsonl"),
)
def test_these_are_wrong(said: str, gold: str) -> None:
    assert not is_right(case(gold), said)


def test_a_label_has_nothing_beside_it() -> None:
    for kind in LABELS:
        assert is_right(case("a complaint", kind=kind), "Complaint")
        assert not is_right(case("happy", kind=kind), "it is happy")
        assert not is_right(case("happy", kind=kind), "not happy")


def test_a_refusal_is_right_exactly_where_there_is_no_answer() -> None:
    assert is_right(case(), None)
    assert not is_right(case(), "Exeter")
    assert not is_right(case("Exeter"), None)


def test_states_are_compared_as_states_and_queries_word_by_word() -> None:
    state = case("food: italian, price range: cheap; phone", kind="dialogue-state")
    assert is_right(state, "price range: cheap, food: Italian; phone")
    assert not is_right(state, "food: italian; phone")
    query = case("SELECT Year FROM table WHERE City = Oslo", kind="sql")
    assert is_right(query, "select year from table where city = oslo")
    assert not is_right(query, "select year from table where the city = oslo")


def test_a_file_is_read_and_its_kinds_are_counted(tmp_path: Path, tiny_answerer: TorchAnswerer) -> None:
    path = tmp_path / "cases.jsonl"
    rows = [
        {"id": "a", "kind": "x", "context": "It is 12.", "question": "What is it?", "answers": ["12"]},
        {"id": "b", "kind": "x", "context": "  ", "question": "What is it?", "answers": ["unanswerable"]},
        {"id": "c", "kind": "y", "context": "Ann met Bob.", "question": "Who?", "answers": []},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    examples = read_cases(path)
    assert [example.answers for example in examples] == [("12",), (), ()]
    answerer: Answerer = tiny_answerer
    measuring = Measuring(answerer, tmp_path)
    section = case_section(measuring, path)
    assert {row["kind"]: row["questions"] for row in section.rows} == {"x": 2, "y": 1, "all": 3}
    assert [answer["id"] for answer in measuring.answers] == ["a", "b", "c"]
    assert not measuring.answers[1]["right"]  # could not be read
    assert section.rows[-1]["right"] == sum(answer["right"] for answer in measuring.answers)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "jsonl:1: not JSON"),
        ('{"id": "a"}', "kind"),
        ('{"id": "a", "kind": "x", "context": "t", "question": "q", "answers": "12"}', "must be a list of texts"),
        ('{"id": 1, "kind": "x", "context": "t", "question": "q", "answers": []}', "`id` must be a string"),
        ("", "holds no cases"),
    ],
)
def test_a_malformed_file_is_refused(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises((DatasetError, ValueError), match=message):
        read_cases(path)
    with pytest.raises(ValueError, match="--cases"):
        read_cases(tmp_path / "none.jsonl")
