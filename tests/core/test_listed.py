"""Labels that a question lists are found where they stand apart, and nowhere else."""

import random

import pytest

from mqan_core.ask.listed import find_listed
from mqan_core.ask.request import read_question
from mqan_core.text.vocab import Vocabulary
from tests.timing import is_within

VOCABULARY = Vocabulary(tuple("ab"), refuses=True)


@pytest.mark.parametrize(
    ("question", "rest", "labels"),
    [
        ("Which team: billing, shipping or sales?", "Which team", ["billing", "shipping", "sales"]),
        ("Which topic fits: travel, law, cooking?", "Which topic fits", ["travel", "law", "cooking"]),
        ("Which topic fits: travel; law, tax; cooking?", "Which topic fits", ["travel", "law, tax", "cooking"]),
        ("What time: 10:00 or 11:00?", "What time", ["10:00", "11:00"]),
        ("Which amount: $1,000 or $2,500?", "Which amount", ["$1,000", "$2,500"]),
        ("Which city: Paris, France or London, UK?", "Which city", ["Paris, France", "London, UK"]),
        ("Which country: U.S. or U.K.?", "Which country", ["U.S.", "U.K."]),
        ("What is it? Choose from: a Corp. or an Inc.", "What is it? ", ["a Corp.", "an Inc."]),
        ("Which plan: A. or B.?", "Which plan", ["A.", "B"]),
        ("Which unit: km/h or mph?", "Which unit", ["km/h", "mph"]),
        ("Which verb fits: is, was or were?", "Which verb fits", ["is", "was", "were"]),
        ("Which state: IN, OR or WA?", "Which state", ["IN", "OR", "WA"]),
        (
            "What fits: Basic ($10/mo, 1 user) or Pro (9 users)?",
            "What fits",
            ["Basic ($10/mo, 1 user)", "Pro (9 users)"],
        ),
        ("What is it? Choose from: a plan, a wish, or a fact.", "What is it? ", ["a plan", "a wish", "a fact"]),
        ("What is it? Choose from why or how to pay.", "What is it? ", ["why", "how to pay"]),
        (
            "What? Choose from: tax, visa or mastercard, cash or card",
            "What? ",
            ["tax", "visa or mastercard", "cash", "card"],
        ),
        ("What? Choose from: a lake, film or school or college.", "What? ", ["a lake", "film", "school or college"]),
        ("Which: red or blue or green?", "Which", ["red", "blue", "green"]),
        ("What? Choose from: a lake or river, film, firm", "What? ", ["a lake or river", "film", "firm"]),
        ("What is it? Options: red; dark blue; green", "What is it? ", ["red", "dark blue", "green"]),
        ("What is it? Options: red, blue, and green.", "What is it? ", ["red", "blue", "green"]),
        ("What is it? The options are: red, blue and green.", "What is it? ", ["red", "blue", "green"]),
        ("What? Options: art, food and hot drinks.", "What? ", ["art", "food and hot drinks"]),
        ('What? Options: ["red", "blue"]', "What? ", ["red", "blue"]),
        ("What? (Options: red, blue)", "What? (", ["red", "blue"]),
        ("What? Select one of the following: red, blue.", "What? ", ["red", "blue"]),
        ("Options: red, so-so | green | blue. Which?", " Which?", ["red, so-so", "green", "blue"]),
        ("Which colour? Pick one: 'red' or “blue”.", "Which colour? ", ["red", "blue"]),
        ('Which: "yes, definitely" or "no"?', "Which", ["yes, definitely", "no"]),
        ("What? Choose from: “so, so”, 'red or blue', \"c\".", "What? ", ["so, so", "red or blue", "c"]),
        ('What? Options: ["a, b", "c"]', "What? ", ["a, b", "c"]),
        ('Which screen: 5", 6" or 7"?', "Which screen", ["5", "6", "7"]),
        ("Which years: the '90s, the '80s' end or none?", "Which years", ["the '90s", "the '80s' end", "none"]),
        ("Your choices are red and green, or blue.\nWhich?", "Which?", ["red and green", "blue"]),
        ("Options: a, b or c.\r\nWhich?", "\nWhich?", ["a", "b", "c"]),
        ("Choose from: red or blue. which one is it?", " which one is it?", ["red", "blue"]),
        ("About? Options: law, laws / film, music / art", "About? ", ["law, laws", "film, music", "art"]),
        ("Whose? Choose from: Ada Sp. z o.o or Bo Ltd.", "Whose? ", ["Ada Sp. z o.o", "Bo Ltd."]),
        ("Whose? Choose from: St. Mary or Dr. Bo. Be brief.", "Whose?  Be brief.", ["St. Mary", "Dr. Bo"]),
        ("How is the mood? happy or angry", "How is the mood?", ["happy", "angry"]),
        (
            "Who could not lift the trophy? the man or his son?",
            "Who could not lift the trophy?",
            ["the man", "his son"],
        ),
        ("Which one?\n- red\n- dark blue", "Which one?", ["red", "dark blue"]),
        ("What is it?\nOptions:\n A) red\n B) what you like \n", "What is it?\nOptions:", ["red", "what you like"]),
        ("Answer in a word.\nLabels:\n1. red,\n2. blue, or\n3. green\nAnswer:", "Answer in a word.\nLabels:", None),
        ("Is it open on Monday, yes or no?", "Is it open on Monday", ["yes", "no"]),
        ("Is it open? (yes/no)", "Is it open?", ["yes", "no"]),
        ("Is it open [Yes/No]?", "Is it open", ["Yes", "No"]),
        ("Is it open? Please answer Yes or No.", "Is it open?", ["Yes", "No"]),
        ("Is it open? Choose from: unknown, yes or no.", "Is it open? ", ["unknown", "yes", "no"]),
    ],
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
        "What is the price of the lamp (EUR or USD)?",
        "What is the address (street, city, postcode)?",
        "Extract these fields: name, date, amount.",
        "Extract these:\n- name\n- date\n- amount",
        "What is the due date?\nRules:\n- Answer with a date only\n- If it is not there say unknown",
        "Answer the following questions:\n1. Who sent it?\n2. Which is it?",
        "Who called?\nJ. Smith\nK. Jones",
        "Which of these?\nJ. Smith\nL. Jones",
        "Which of these are mentioned: Anna, Bob, Carol?",
        "Which topics? Choose all that apply: billing, shipping.",
        "What do these abbreviations stand for: SLA, NDA or MSA?",
        "What do they all cost: bread, milk, eggs?",
        'Who said: "to be or not to be"?',
        "Is this true: the lamp is broken or missing?",
        "Subject: Re: invoice, overdue, urgent. What is broken?",
        "Context: mail, chat or call. What does he want?",
        "What is the order number? No spaces or dashes.",
        "Why did it fail? One or two words.",
        "What happened? The app crashes or freezes.",
        "How many came? 10 or more?",
        "Who said yes or no?",
        "Did the customer say yes or no?",
        "Which fields are yes/no?",
        "The options are clear, he says. Which ones? No.",
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
