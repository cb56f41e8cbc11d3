"""Noise changes how an example is written, not what is right."""

import re
from collections import Counter

import numpy as np
import pytest

from mqan_core.example import Choice, Example
from mqan_core.text.tokens import read_tokens
from mqan_data.noise import add_noise

_TEXT = (
    "Dear Ms Okonkwo, thanks for your letter of 3 May 2024; the shipment didn't arrive.\n\n"
    "Please call Grzegorz Brzeczyszczykiewicz on +48 601 234 567 before Friday, or write to "
    "claims@harbour-freight.example. The claim number is HF-20931, the amount 1,249.50 EUR & the deadline "
    "31 May 2024. Regards, Theodora Papadopoulos"
)
_ANSWERS = ("Grzegorz Brzeczyszczykiewicz", "+48 601 234 567", "HF-20931", "31 May 2024", "Theodora Papadopoulos")


def _example(answer: str) -> Example:
    question = "Which of the values in this letter is asked for?"
    return Example("mails", "1", _TEXT, question, (answer,), answer_start=_TEXT.index(answer))


def _draws(example: Example, number: int = 400) -> list[Example]:
    return [add_noise(example, np.random.default_rng(seed)) for seed in range(number)]


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", re.sub(r"&\w+;|<[^>]*>", "", text)).lower()


@pytest.mark.parametrize("answer", _ANSWERS)
def test_a_quotation_is_what_stands_at_its_place(answer: str) -> None:
    changed = 0
    for noisy in _draws(_example(answer)):
        start = noisy.answer_start
        assert start is not None
        assert noisy.context.startswith(noisy.answers[0], start)
        assert noisy.answers[0].strip() == noisy.answers[0] != ""
        assert sum(map(str.isdigit, noisy.answers[0])) == sum(map(str.isdigit, answer))
        assert abs(len(_letters(noisy.answers[0])) - len(_letters(answer))) <= 3
        assert "<" not in noisy.answers[0]
        assert "-\n" not in noisy.answers[0]
        changed += noisy.answers[0] != answer
    assert changed > (60 if answer.replace(" ", "").isalpha() else 5)  # digits are never mistyped


def test_every_kind_of_noise_is_drawn_in_the_text_and_in_the_question() -> None:
    kinds: Counter[str] = Counter()
    for noisy in _draws(_example("HF-20931"), 1500):
        text, question = noisy.context, noisy.question
        kinds["capitals"] += text.isupper()
        kinds["no capitals"] += text.islower()
        kinds["typos"] += sorted(_letters(text)) != sorted(_letters(_TEXT)) and not text.isupper()
        kinds["line breaks"] += text.count("\n") > 2 and "<" not in text
        kinds["hyphens"] += bool(re.search(r"[a-z]-\n[a-z]", text))
        kinds["html"] += "</" in text
        kinds["entities"] += "&nbsp;" in text or "&amp;" in text
        kinds["markdown"] += "**" in text or text.startswith(("> ", "# ", "- "))
        kinds["invisible"] += bool(re.search("[\u200b\u00ad\u200d\u2060\ufeff]", text))
        kinds["punctuation"] += text.count(",") < _TEXT.count(",")
        kinds["typos in question"] += sorted(_letters(question)) != sorted(_letters(_example("HF-20931").question))
        kinds["capitals in question"] += question.isupper()
        kinds["question without mark"] += not question.rstrip().endswith("?")
    assert len(+kinds) == 13
    assert min(kinds.values()) >= 10


def test_labels_refusals_and_yes_and_no_are_no_quotations() -> None:
    text = "There is no doubt, yes: another piano player can now announce it."
    choices = (Choice("letter", "Please call before Friday"), Choice("Theodora Papadopoulos"))
    for example in (
        Example("kinds", "1", _TEXT, "What is it?", ("letter",), choices=choices),
        Example("mails", "1", _TEXT, "Who is the buyer?", ()),
        Example("a", "1", text, "Is that sure?", ("yes",)),
        Example("a", "1", text, "Is that sure?", ("no",)),
    ):
        drawn = {(noisy.answers, noisy.choices) for noisy in _draws(example)}
        assert drawn == {(example.answers, example.choices)}


def test_a_choice_in_the_question_can_still_be_copied_from_it() -> None:
    example = Example("a", "1", _TEXT, "Is the tone of this positive, negative or neutral?", ("negative",))
    for noisy in _draws(example):
        assert noisy.answers == ("negative",)
        assert "negative" in noisy.question.lower()


def test_words_of_a_written_answer_can_still_be_copied() -> None:
    answer = "Theodora Papadopoulos wrote to Grzegorz Brzeczyszczykiewicz"
    example = Example("a", "1", _TEXT, "What happened?", (answer,))
    words = {token.key.strip() for token in read_tokens(answer)} & {t.key.strip() for t in read_tokens(_TEXT)}
    assert len(words) > 3
    for noisy in _draws(example):
        assert noisy.answers == (answer,)
        assert words <= {token.key.strip() for token in read_tokens(noisy.context)}


def test_the_values_of_a_list_are_what_stands_at_their_places() -> None:
    names = ("Grzegorz Brzeczyszczykiewicz", "Theodora Papadopoulos")
    example = Example("a", "1", _TEXT, "Which people are named?", (", ".join(names),))
    seen = set()
    for noisy in _draws(example):
        values = noisy.answers[0].split(", ")
        seen.add(noisy.answers[0])
        assert len(values) == len(names)
        for value, name in zip(values, names, strict=True):
            assert value in noisy.context
            assert [token.word.lower() for token in read_tokens(value)] == name.lower().split()
    assert len(seen) > 3


def test_other_right_answers_follow_where_they_stand() -> None:
    start = _TEXT.index("31 May 2024")
    example = Example("a", "1", _TEXT, "Until when?", ("31 May 2024", "May 2024", "the end of May"), start)
    for noisy in _draws(example):
        assert noisy.answers[1] in noisy.answers[0]
        assert noisy.answers[2] == "the end of May"


def test_where_spelling_is_asked_about_letters_stay() -> None:
    example = Example("cola", "1", _TEXT, "Is it well formed?", ("yes",), choices=(Choice("yes"), Choice("no")))
    hidden = re.compile("[\u200b\u00ad\u200d\u2060\ufeff]")
    for noisy in _draws(example):
        assert _letters(hidden.sub("", noisy.context)) == _letters(_TEXT)


def test_where_letters_are_asked_for_the_text_stays() -> None:
    example = Example("instruction_induction", "1", "cat", "Write the plural of the word.", ("cats",))
    drawn = _draws(example)
    assert {(noisy.context, noisy.answers) for noisy in drawn} == {("cat", ("cats",))}
    assert len({noisy.question for noisy in drawn}) > 1


def test_evidence_is_found_again_however_it_is_spelled() -> None:
    passage = "It closes late; it is never shut on Monday."
    text = f"The shop, which is old, opens at nine. {passage} Nobody knows why."
    start = text.index(passage)
    choices = (Choice("yes"), Choice("no"))
    evidence = ((start, start + len(passage)),)
    example = Example("x", "1", text, "Is it open?", ("yes",), choices=choices, evidence=evidence)
    changed = 0
    for seed in range(300):
        noisy = add_noise(example, np.random.default_rng(seed))
        ((first, last),) = noisy.evidence or ()
        changed += noisy.context != text
        plain = re.sub(r"[\u00ad\u200b-\u200d\u2060\ufeff]", "", noisy.context[first:last])
        found = re.sub(r"<[^>]*>|&\w+;|[\W_]", "", plain).lower()
        assert abs(len(found) - len(re.sub(r"\W", "", passage))) <= 3, (noisy.context, found)
        assert any(part in found for part in ("clo", "late", "never")), (noisy.context, found)
    assert changed > 100
