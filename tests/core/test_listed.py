"""Labels that a question lists are found where they stand apart, and nowhere else."""

import random

import pytest

from mqan_core.ask.listed import find_listed
from mqan_core.ask.request import read_question
from mqan_core.text.vocab import Vocabulary
from tests.tables import cases
from tests.timing import is_within

VOCABULARY = Vocabulary(tuple("ab"), refuses=True)


@pytest.mark.parametrize(
    ("question", "rest", "labels"),
    cases("core/listed.jsonl"),
)
def test_a_list_that_stands_apart_is_found(question: str, rest: str, labels: list[str] | None) -> None:
    found = find_listed(question, 255)
    assert found is not None
    expected = ["red", "blue", "green"] if labels is None else labels
    assert [question[label.start : label.end] for label in found.labels] == expected
    assert question[: found.place.start] + question[found.place.end :] == rest


@pytest.mark.parametrize(
    "question",
    [
        *cases("core/not_listed.jsonl"),
        "How is it? " + "word " * 200 + "or not",
    ],
)
def test_what_is_no_list_apart_stays_as_it_is(question: str) -> None:
    assert find_listed(question, 255) is None


def test_more_labels_than_can_be_chosen_from_are_no_list() -> None:
    question = "Which? Choose from: " + ", ".join(f"label {i}" for i in range(12))
    assert find_listed(question, 12) is not None
    assert find_listed(question, 11) is None


def test_places_are_labels_whatever_stands_there() -> None:
    rng = random.Random(7)
    parts = ["Which", "Choose from", ":", " ", " ", ", ", " or ", "or ", "?", "? ", "(", ")", "/", "; ", "\n", "- "]
    parts += ["a)", "yes", "no", "red", "“blue”", "\u00ad", "\U0001f600", "Options", "--", '"', ". "]
    num_found = 0
    for _ in range(20_000):
        question = "".join(rng.choices(parts, k=rng.randint(1, 14)))
        found = find_listed(question, 255)
        if found is None:
            continue
        num_found += 1
        places = [found.place.start, *(edge for label in found.labels for edge in (label.start, label.end))]
        assert places == sorted(places), question
        assert places[-1] <= found.place.end <= len(question)
        assert all(question[label.start : label.end].strip() for label in found.labels)
        read = read_question(VOCABULARY, "some text", question)
        assert {choice.label for choice in read.choices} == {question[p.start : p.end] for p in found.labels}
    assert num_found > 40


@pytest.mark.parametrize(
    "question", ["(options: " * 2_000, "options: " + "a. " * 9_000, "x? " * 9_000, "? or " * 9_000]
)
def test_hostile_questions_take_no_time(question: str) -> None:
    def read() -> None:
        assert find_listed(question + " " * 100_000 + "a, b or c", 255) is None
        assert find_listed("Which one?" + "\n- a" * 30_000, 255) is None

    assert is_within(5, read)  # 0.1 s was seen


def test_a_question_is_read_without_its_list() -> None:
    question = "Options: red, green. Which colour?"
    request = read_question(VOCABULARY, "It is red.", question)
    assert [token.piece.strip() for token in request.question_tokens] == ["Which", "colour", "?"]
    assert [question[token.start : token.end] for token in request.question_tokens] == ["Which", "colour", "?"]
    assert [choice.label for choice in request.choices] == ["green", "red"]
    assert [question[place.start : place.end] for place in request.label_places] == ["green", "red"]
    assert [choice.label for choice in request.options.choices] == ["red", "green"]
    assert read_question(VOCABULARY, "It is red.", "Which colour?").options.choices == ()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("end", [", or", " or", ", and", ",;.", " and,"])
def test_what_joins_lines_is_trimmed_in_no_time_however_often_it_comes(end: str) -> None:
    question = f"Choose one of these options\n- a{end * 33}x\n- b{end * 33}\n- c"
    listed = find_listed(question, 255)
    assert listed is not None
    assert [question[label.start : label.end] for label in listed.labels] == [f"a{end * 33}x", "b", "c"]
