"""Questions with two answers to choose from: where the other answer comes from, and in which order they stand."""

import json
from collections import Counter
from pathlib import Path

import pytest

from mqan_core.example import Example
from mqan_training.data.readers.registry import task_named

FEST = "Ann Lee and Bo Ray met in Oslo in 1871, and the lamp was lit."
QUESTIONS = {  # of one sentence, with their answers
    "Who met Bo Ray?": ["Ann Lee", "Ann"],
    "Who met Ann?": ["Bo Ray"],
    "When did they meet?": ["in 1871"],
    "What was lit?": ["the lamp"],
    "Who met?": ["Ann Lee and Bo Ray"],
}


def read(name: str, folder: Path, dropped: Counter[str] | None = None) -> list[Example]:
    """Read the training split of a task below a data folder."""
    task = task_named(name)
    return list(task.read(folder / task.folder, "train", dropped))


@pytest.fixture
def squad(tmp_path: Path) -> Path:
    """A data folder with SQuAD: one paragraph with several questions, one with a single question."""
    asked = [
        {"id": question, "question": question, "answers": [{"text": a, "answer_start": FEST.index(a)} for a in answers]}
        for question, answers in QUESTIONS.items()
    ]
    alone = [{"id": "alone", "question": "Who sang?", "answers": [{"text": "Cy", "answer_start": 0}]}]
    paragraphs = [{"context": FEST, "qas": asked}, {"context": "Cy sang.", "qas": alone}]
    (tmp_path / "squad").mkdir()
    (tmp_path / "squad" / "train-v1.1.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return tmp_path


def other_answers(example: Example) -> tuple[str, str]:
    """Return what stands before and behind `or` at the end of a question."""
    first, second = example.question.rsplit("? ", 1)[1].removesuffix("?").split(" or ")
    return first, second


def test_a_choice_is_offered_with_an_answer_of_the_same_kind(squad: Path) -> None:
    dropped: Counter[str] = Counter()
    found = {example.id: example for example in read("squad_choices", squad, dropped)}
    assert set(found) == set(QUESTIONS)
    assert dropped == {"no other answer on its context": 1}
    assert {example.task for example in found.values()} == {"squad_choices"}
    assert {example.context for example in found.values()} == {FEST}
    assert found["Who met Bo Ray?"].answers == ("Ann Lee",)
    assert found["Who met Bo Ray?"].answer_start is None
    assert set(other_answers(found["Who met Bo Ray?"])) == {"Ann Lee", "Bo Ray"}
    assert set(other_answers(found["Who met Ann?"])) == {"Bo Ray", "Ann Lee"}
    for question, example in found.items():
        assert example.question.startswith(f"{question} ")


def test_the_other_answer_shares_no_word_with_the_answer(squad: Path) -> None:
    found = {example.id: example for example in read("squad_choices", squad)}
    both = other_answers(found["Who met?"])  # "Ann Lee" and "Bo Ray" are a part of the answer
    assert "Ann Lee and Bo Ray" in both
    assert {"in 1871", "the lamp"} & set(both)


def test_the_answer_stands_first_as_often_as_last_and_always_at_the_same_place(tmp_path: Path) -> None:
    (tmp_path / "qasrl").mkdir()
    rows = (
        f"S_{number}\t1\nAnn thanked Bo {number} times .\n1\tthanked\t2\n"
        "who\t_\t_\tthanked\t_\tsomeone\t_\t?\tAnn\nwho\twas\t_\tthanked\t_\t_\t_\t?\tBo\n\n"
        for number in range(200)
    )
    (tmp_path / "qasrl" / "wiki1.train.qa").write_text("".join(rows))
    found = read("qasrl_choices", tmp_path)
    assert len(found) == 400
    assert {example.question for example in found if example.answers == ("Ann",)} == {
        "who thanked someone? Ann or Bo?",
        "who thanked someone? Bo or Ann?",
    }
    num_first = sum(other_answers(example)[0] == example.answers[0] for example in found)
    assert 160 < num_first < 240  # four standard deviations of a fair coin
    assert read("qasrl_choices", tmp_path) == found
