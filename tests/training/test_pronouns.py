"""Questions about what a pronoun stands for: where the pronoun is put, and what is offered beside the answer."""

import json
from pathlib import Path

import pytest

from mqan_core.example import Example
from mqan_training.data.readers.registry import task_named

# What makes names and nouns known: each often enough in the middle of a sentence.
FILLER = (
    "Then Anna and Boris saw Anna with Boris. Near Anna sat Boris. " + 6 * "They put the lamp in the box by the lamps. "
)
NAMES = "Anna met Boris at the old mill. Boris wanted to go home at once."
NOUNS = "They put the lamp into the box because the lamp was too large for anyone to carry."


def read(folder: Path, *paragraphs: str, split: str = "train") -> list[Example]:
    """Read the questions about pronouns of SQuAD paragraphs, with a question that is of no account on each."""
    asked = [{"id": "q", "question": "Who?", "answers": [{"text": "Then", "answer_start": 0}]}]
    written = [{"context": f"Then {paragraph}", "qas": asked} for paragraph in (FILLER, *paragraphs)]
    (folder / "squad").mkdir(exist_ok=True)
    name = {"train": "train-v1.1.json", "validation": "dev-v1.1.json"}[split]
    (folder / "squad" / name).write_text(json.dumps({"data": [{"paragraphs": written}]}))
    return list(task_named("squad_pronouns").read(folder / "squad", split))


def test_a_name_that_the_next_sentence_repeats_becomes_a_pronoun(tmp_path: Path) -> None:
    (example,) = read(tmp_path, NAMES)
    said, pronoun_and_rest = example.context.split(". ", 1)
    assert said == "Then Anna met Boris at the old mill"
    assert pronoun_and_rest.split(" ", 1) in [
        [pronoun, "wanted to go home at once."] for pronoun in ("He", "She", "It")
    ]
    assert example.answers == ("Boris",)
    who = "What" if pronoun_and_rest.startswith("It") else "Who"
    assert example.question in {
        f"{who} wanted to go home at once? {choices}?" for choices in ("Anna or Boris", "Boris or Anna")
    }
    assert (example.task, example.id) == ("squad_pronouns", "train/1/0")


def test_a_noun_that_a_sentence_repeats_becomes_it(tmp_path: Path) -> None:
    (example,) = read(tmp_path, NOUNS)
    assert example.context == ("Then They put the lamp into the box because it was too large for anyone to carry.")
    assert example.question in {
        f"What was too large for anyone to carry? {choices}?" for choices in ("lamp or box", "box or lamp")
    }
    assert example.answers == ("lamp",)


@pytest.mark.parametrize(
    ("paragraph", "why"),
    [
        ("Anna met no one at the old mill. Anna wanted to go home at once.", "nothing else to choose"),
        ("Anna met Boris at the old mill. Everyone there loved Boris more than ever.", "not before a verb"),
        ("Anna met Boris at the mill. The brother of Boris wanted to go home at once.", "not the subject"),
        ("Anna met Boris at the old mill. Cyril wanted to go home at once.", "not said again"),
        ("Anna met Boris at the old mill. Boris wanted.", "no clause behind it"),
        ("Anna met Boris at the mill" + 45 * " once more" + ". Boris wanted to go home.", "too long"),
        ("They put the lamp into the box because a part of the lamp was too large.", "not the subject"),
        ("They put the lamp into a red crate because the lamp was too large.", "no other noun"),
        ("They put the lamp by the lamps because the lamp was too large.", "one word in both numbers"),
    ],
)
def test_what_makes_no_question(tmp_path: Path, paragraph: str, why: str) -> None:
    assert read(tmp_path, paragraph) == [], why


def test_the_answer_stands_first_as_often_as_last_and_always_at_the_same_place(tmp_path: Path) -> None:
    paragraphs = [f"Anna met Boris {number} times. Boris wanted to go home at once." for number in range(200)]
    found = read(tmp_path, *paragraphs)
    assert len(found) == 200
    num_first = sum(example.question.endswith("Boris or Anna?") for example in found)
    assert 70 < num_first < 130  # four standard deviations of a fair coin
    assert read(tmp_path, *paragraphs) == found


def test_a_question_is_asked_once_though_two_windows_hold_it(tmp_path: Path) -> None:
    found = read(tmp_path, NOUNS, NOUNS + " That was all.", NAMES + " " + NOUNS)
    assert len({example.id for example in found}) == len(found)
    assert [example.answers for example in found] == [("lamp",), ("lamp",), ("Boris",), ("lamp",)]


def test_other_splits_are_read_too(tmp_path: Path) -> None:
    assert [example.id for example in read(tmp_path, NAMES, split="validation")] == ["validation/1/0"]
