"""Labels that a question lists are found where they stand apart, and nowhere else."""

import random

import pytest

from mqan_core.listed import find_listed
from mqan_core.request import read_listing
from mqan_core.vocab import Vocabulary

VOCABULARY = Vocabulary(tuple("ab"), refuses=True)


@pytest.mark.parametrize(
    ("question", "rest", "labels"),
    [
        ("Which team: billing, shipping or sales?", "Which team", ["billing", "shipping", "sales"]),
        ("Which topic fits: travel, law, cooking?", "Which topic fits", ["travel", "law", "cooking"]),
        ("What time: 10:00 or 11:00?", "What time", ["10:00", "11:00"]),
        ("What is it? Choose from: a plan, a wish, or a fact.", "What is it? ", ["a plan", "a wish", "a fact"]),
        ("What is it? Choose from why or how to pay.", "What is it? ", ["why", "how to pay"]),
        ("What is it? Options: red; dark blue; green", "What is it? ", ["red", "dark blue", "green"]),
        ("Options: red, so-so | green | blue. Which?", " Which?", ["red, so-so", "green", "blue"]),
        ("Which colour? Pick one: 'red' or “blue”.", "Which colour? ", ["red", "blue"]),
        ("Your choices are red and green, or blue.\nWhich?", "Which?", ["red and green", "blue"]),
        ("How is the mood? happy or angry", "How is the mood?", ["happy", "angry"]),
        ("How is the mood (happy, angry or sad)?", "How is the mood ", ["happy", "angry", "sad"]),
        ("How is the mood (happy/angry/sad)", "How is the mood ", ["happy", "angry", "sad"]),
        ("Whose (Victoria (Australia), Rome or Dover)?", "Whose ", ["Victoria (Australia)", "Rome", "Dover"]),
        ("About? Options: law, laws / film, music / art", "About? ", ["law, laws", "film, music", "art"]),
        ("Whose? Choose from: Ada Sp. z o.o or Bo Ltd.", "Whose? ", ["Ada Sp. z o.o", "Bo Ltd"]),
        ("Whose? Choose from: Ada or Bo. Be brief.", "Whose?  Be brief.", ["Ada", "Bo"]),
        ("Which one?\n- red\n- dark blue", "Which one?", ["red", "dark blue"]),
        ("Which one?\n\n A) red\n B) what you like \n", "Which one?", ["red", "what you like"]),
        ("Which one?\n1. red\n2. blue\n10. green", "Which one?", ["red", "blue", "green"]),
        ("Is it open on Monday, yes or no?", "Is it open on Monday", ["yes", "no"]),
        ("Is it open? (yes/no)", "Is it open? ", ["yes", "no"]),
        ("Is it open? Please answer Yes or No.", "Is it open?", ["Yes", "No"]),
    ],
)
def test_a_list_that_stands_apart_is_found(question: str, rest: str, labels: list[str]) -> None:
    found = find_listed(question, 255)
    assert found is not None
    assert [question[label.start : label.end] for label in found.labels] == labels
    assert question[: found.place.start] + question[found.place.end :] == rest


@pytest.mark.parametrize(
    "question",
    [
        "Is this about sports, politics or business?",
        "What did John or Mary buy?",
        "What is the e-mail address or phone number?",
        "Which options are named for dinner, lunch or breakfast?",
        "What are the possible answers to question 3, 4 or 5?",
        'Hypothesis: "He left, or not." -- entailment, neutral, or contradiction?',
        'Hypothesis: "Did he leave? " -- entailment, neutral, or contradiction?',
        "Who wrote: I came, I saw, I conquered?",
        "Note: what is the date, time and place?",
        "What is the date? I need it, please, quickly.",
        "What is the date? Answer in English or German.",
        "Was it him? He or she said so.",
        "What does this say: hello, world?",
        "What was the ratio (3/4)?",
        "How is it (good)?",
        "How is it? Choose from: good, good, bad.",
        "Choose from: good, bad.",
        "- red\n- blue",
        "Which one?\n- red",
        "When? - On Monday.\nOr not?",
        "How is it? " + "word " * 200 + "or not",
        ": a, b or c",
        "a, b or c)",
        "Which? :) or (or",
        "",
        " ",
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
    parts = [
        "Which",
        "Choose from",
        ":",
        " ",
        " ",
        ", ",
        " or ",
        "or ",
        "?",
        "? ",
        "(",
        ")",
        "/",
        "; ",
        "\n",
        "- ",
        "a)",
    ]
    parts += ["yes", "no", "red", "“blue”", "\u00ad", "\U0001f600", "Options", "--", '"', ". "]
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
        read = read_listing(VOCABULARY, "some text", question)
        assert {choice.label for choice in read.choices} == {question[p.start : p.end] for p in found.labels}
    assert num_found > 60


def test_a_question_is_read_without_its_list() -> None:
    question = "Options: red, green. Which colour?"
    request = read_listing(VOCABULARY, "It is red.", question)
    assert [token.piece.strip() for token in request.question_tokens] == ["Which", "colour", "?"]
    assert [question[token.start : token.end] for token in request.question_tokens] == ["Which", "colour", "?"]
    assert [choice.label for choice in request.choices] == ["green", "red"]
    assert [question[place.start : place.end] for place in request.label_places] == ["green", "red"]
    assert [choice.label for choice in request.listed] == ["red", "green"]
    assert read_listing(VOCABULARY, "It is red.", "Which colour?").listed == ()
