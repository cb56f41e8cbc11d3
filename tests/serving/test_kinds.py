"""What a question can ask, over REST and gRPC alike, with a small bundle whose network answers at random."""

import math
import random
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from mqan_client import Answer, Choice, Client, InvalidRequestError, Source, StreamedWord
from mqan_core.answer.evidence import MOST_SPANS
from tests.answering import LABELS, WORDS, make_text

CONTEXT = "The old harbour was closed in 1923 because storms had torn its walls. Ada wrote notes."
QUESTION = "Who wrote notes?"


def ask(clients: tuple[Client, Client, str], context: str = CONTEXT, question: str = QUESTION, **asked: Any) -> Answer:
    """Ask over both, at once and word by word; the answers are the same."""
    rest, rpc, _ = clients
    answer = rest.answer(context, question, **asked)
    assert rpc.answer(context, question, **asked) == answer
    streamed = list(rest.answer_stream(context, question, **asked))
    assert list(rpc.answer_stream(context, question, **asked)) == streamed
    *words, last = streamed
    assert last == answer
    assert tuple(word.token for word in words if isinstance(word, StreamedWord)) == answer.tokens
    if answer.tokens:  # of several labels there are none
        assert "".join(word.delta for word in words if isinstance(word, StreamedWord)) == answer.text
    return answer


def test_a_free_answer_says_whether_there_is_one(clients: Any) -> None:
    for i in range(8):
        answer = ask(clients, make_text(random.Random(i), 12))
        assert bool(answer.text) == answer.answered
        if answer.answered:
            assert answer.confidence == answer.probability
            withheld = ask(clients, make_text(random.Random(i), 12), min_probability=1.0)
            assert (withheld.answered, withheld.text, withheld.spans) == (False, "", ())
        assert (answer.choices, answer.chosen, answer.expected, answer.windows) == ((), (), None, 1)


def test_one_of_the_choices_is_the_answer_whatever_their_order(clients: Any) -> None:
    chance = random.Random(3)
    for _ in range(30):
        labels = chance.sample(LABELS, chance.randint(1, len(LABELS)))
        text = make_text(chance, chance.choice((1, 30, 200)))
        answer = ask(clients, text, choices=labels)
        assert [choice.label for choice in answer.choices] == labels
        assert sum(choice.probability for choice in answer.choices) == pytest.approx(1, abs=1e-6)
        assert answer.text in labels
        assert answer.chosen == (answer.text,)
        assert answer.confidence == max(choice.probability for choice in answer.choices)
        assert answer.probability == pytest.approx(answer.confidence)
        for choice in answer.choices:
            assert bool(choice.evidence) == (choice.label == answer.text)
            spans = [place.span for place in choice.evidence]
            assert len(spans) <= MOST_SPANS
            assert all(left.end <= right.start for left, right in pairwise(spans))
            assert all(text[span.start : span.end] == span.text for span in spans)
        turned = ask(clients, text, choices=labels[::-1])
        assert turned.text == answer.text
        assert [c.probability for c in turned.choices[::-1]] == pytest.approx(
            [c.probability for c in answer.choices], abs=1e-5
        )


@pytest.mark.parametrize(
    "asked", [{"yes_no": True}, {"choices": LABELS, "none": True}, {"choices": LABELS, "min_probability": 0.1}]
)
def test_where_none_may_be_the_answer_it_is_one_of_the_outcomes(clients: Any, asked: dict[str, Any]) -> None:
    chance = random.Random(4)
    for _ in range(8):
        answer = ask(clients, make_text(chance, 20), **asked)
        assert sum(choice.probability for choice in answer.choices) + answer.none == pytest.approx(1, abs=1e-6)
        assert answer.confidence == pytest.approx(answer.probability if answer.answered else answer.none)
        assert answer.answered == (max(choice.probability for choice in answer.choices) >= answer.none)


def test_labels_that_the_question_lists_are_choices(clients: Any) -> None:
    rng, num_answered = random.Random(3), 0
    for _ in range(20):
        text = make_text(rng, 25)
        labels = list({" ".join(rng.choices(WORDS, k=rng.randint(1, 3))) for _ in range(rng.randint(3, 9))})
        question = f"Who is it? Choose from: {', '.join(labels)}."
        answer = ask(clients, text, question)
        assert [choice.label for choice in answer.choices] == labels
        other = ask(clients, text, f"Choose from: {', '.join(labels[::-1])}. Who is it?")
        found = {c.label: c.probability for c in answer.choices}
        assert {c.label: c.probability for c in other.choices} == pytest.approx(found, abs=1e-12)
        assert ask(clients, text, "Who is it?", choices=labels).text == answer.text
        if answer.answered:
            num_answered += 1
            [span] = answer.spans
            assert (span.source, question[span.start : span.end]) == ("question", answer.text)
            assert all(question[t.span.start : t.span.end] == t.text for t in answer.tokens if t.span)
    assert num_answered > 5


def test_descriptions_are_read(clients: Any) -> None:
    plain = ask(clients, choices=["negative", "positive"])
    told = ask(clients, choices=[Choice("negative", "storms had torn its walls"), "positive"])
    assert [c.label for c in told.choices] == ["negative", "positive"]
    assert told.choices[0].probability != pytest.approx(plain.choices[0].probability, abs=1e-4)


def test_several_choices_are_judged_each_by_itself(clients: Any) -> None:
    for i in range(6):
        answer = ask(clients, make_text(random.Random(i), 20), choices=LABELS, multiple=True)
        holds = tuple(choice.label for choice in answer.choices if choice.probability > 0.5)
        assert answer.chosen == holds
        assert answer.answered == bool(holds)
        assert answer.text == ", ".join(holds)
        shares = [choice.probability for choice in answer.choices]
        assert answer.probability == pytest.approx(math.prod(max(share, 1 - share) for share in shares))


def test_yes_or_no_and_a_scale(clients: Any) -> None:
    answer = ask(clients, yes_no=True)
    assert [choice.label for choice in answer.choices] == ["yes", "no"]
    levels = ["negative", "no", "positive"]
    rated = ask(clients, scale=levels)
    assert [choice.label for choice in rated.choices] == levels
    assert rated.expected == pytest.approx(sum(i * c.probability for i, c in enumerate(rated.choices, start=1)))


def test_with_the_context_alone_no_word_is_invented(clients: Any) -> None:
    for i in range(8):
        for source in Source:
            answer = ask(clients, make_text(random.Random(i), 25), sources=[source])
            assert {token.source for token in answer.tokens} <= {source}


def test_what_is_too_unsure_is_no_answer(clients: Any) -> None:
    sure = ask(clients, choices=["negative", "positive"], min_probability=0.0)
    best = max(choice.probability for choice in sure.choices)
    unsure = ask(clients, choices=["negative", "positive"], min_probability=min(1.0, best + 1e-3))
    assert (unsure.answered, unsure.text, unsure.chosen) == (False, "", ())
    assert [c.probability for c in unsure.choices] == [c.probability for c in sure.choices]


def test_long_texts_say_how_many_windows_were_read(clients: Any) -> None:
    assert ask(clients, make_text(random.Random(0), 600)).windows > 1


def test_quotations_are_told_alike_over_both(clients: Any) -> None:
    chance, found = random.Random(5), set()
    for _ in range(10):
        text = make_text(chance, 40)
        one = ask(clients, text, contiguous=True, alternatives=3)
        assert len(one.spans) == one.answered
        every = ask(clients, text, all=True)
        assert bool(every.places) == every.answered
        for span in [p.span for p in every.places] + [s for a in one.alternatives for s in a.spans]:
            assert span.text == text[span.start : span.end]
        found |= {len(every.places), -len(one.alternatives)}
    assert max(found) > 1
    assert min(found) < -1


def test_steps_are_told_alike_over_both(clients: Any) -> None:
    chance, num_steps = random.Random(6), 0
    for _ in range(10):
        text = make_text(chance, 30)
        answer = ask(clients, text, explain=True)
        for token, step in zip(answer.tokens, answer.steps, strict=False):
            num_steps += 1
            assert token.text.lower() in {candidate.text for candidate in step.candidates}
            assert all(0 <= found.span.start < found.span.end <= len(text) for found in step.context)
            assert 0 < sum(found.weight for found in (*step.context, *step.question)) <= 1 + 1e-4
        [step] = ask(clients, text, choices=["yes", "no"], explain=True).steps
        assert step.context
        assert not step.candidates
        assert ask(clients, text).steps == ()
    assert num_steps > 10


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"contiguous": True, "sources": ["question"]}, "incompatible_options"),
        ({"all": True, "yes_no": True}, "incompatible_options"),
        ({"alternatives": 21}, "option_out_of_range"),
        ({"choices": ["a", "b"], "yes_no": True}, "incompatible_options"),
        ({"scale": ["a", "b"], "yes_no": True}, "incompatible_options"),
        ({"choices": ["a", "b"], "sources": ["context"]}, "incompatible_options"),
        ({"multiple": True}, "incompatible_options"),
        ({"multiple": True, "yes_no": True}, "incompatible_options"),
        ({"none": True}, "incompatible_options"),
        ({"none": True, "multiple": True, "choices": ["a", "b"]}, "incompatible_options"),
        ({"alternatives": 2, "sources": ["vocabulary"]}, "incompatible_options"),
        ({"choices": ["a", "b"], "contiguous": True}, "incompatible_options"),
        ({"choices": ["a", "b"], "alternatives": 1}, "incompatible_options"),
        ({"choices": ["a", "a"]}, "duplicate_choice"),
        ({"choices": ["not  now", "not now "]}, "duplicate_choice"),
        ({"choices": ["a\u200b", "A"]}, "duplicate_choice"),
        ({"scale": list("abcdefghijk")}, "wrong_number_of_choices"),
        ({"choices": [str(i) for i in range(256)]}, "wrong_number_of_choices"),
        ({"scale": ["a"]}, "wrong_number_of_choices"),
        ({"choices": ["a", " "]}, "empty_choice"),
        ({"choices": ["a", "b " * 300]}, "choices_too_long"),
        ({"choices": [f"{i} " * 100 for i in range(99)]}, "choices_too_long"),
        ({"min_probability": 1.5}, "option_out_of_range"),
    ],
)
def test_what_makes_no_sense_is_refused(clients: Any, asked: dict[str, Any], code: str) -> None:
    for client in clients[:2]:
        with pytest.raises(InvalidRequestError) as refused:
            client.answer(CONTEXT, QUESTION, **asked)
        assert refused.value.code == code


def test_a_probability_that_is_no_number_is_refused(clients: tuple[Client, Client, str]) -> None:
    for client, code in zip(clients[:2], ("invalid_input", "option_out_of_range"), strict=True):  # JSON has no such
        with pytest.raises(InvalidRequestError) as refused:
            client.answer(CONTEXT, QUESTION, min_probability=float("nan"))
        assert refused.value.code == code


def test_empty_lists_are_refused_over_rest(clients: Any) -> None:
    for name in ("choices", "scale"):
        body = {"context": CONTEXT, "question": QUESTION, name: []}
        response = httpx2.post(f"{clients[2]}/v1/answer", json=body, trust_env=False)
        assert (response.status_code, response.json()["code"]) == (422, "wrong_number_of_choices")


@pytest.mark.parametrize("name", ["choices", "scale", "sources"])
def test_a_long_list_is_refused_before_its_entries_are_read(clients: Any, name: str) -> None:
    """A wrong type in each of 500,000 entries took 12 seconds of the event loop, and a gigabyte."""
    body = {"context": CONTEXT, "question": QUESTION, name: [1] * 300}
    code = "wrong_type" if name == "sources" else "wrong_number_of_choices"
    response = httpx2.post(f"{clients[2]}/v1/answer", json=body, trust_env=False)
    assert (response.status_code, response.json()["code"]) == (422, code)
    assert f"{name} has 300 entries; at most" in response.json()["message"]
    many = {"context": CONTEXT, "questions": [{"question": QUESTION, name: [1] * 300}]}
    [text] = httpx2.post(f"{clients[2]}/v1/answers", json=many, trust_env=False).json()["texts"]
    assert text["answers"][0]["error"]["code"] == code


def test_many_questions_may_be_of_any_kind(clients: Any) -> None:
    questions = [
        {"id": "free", "question": QUESTION},
        {"id": "choices", "question": QUESTION, "choices": LABELS},
        {"id": "yes", "question": QUESTION, "yes_no": True},
        {"id": "wrong", "question": QUESTION, "yes_no": True, "scale": ["a", "b"]},
    ]
    body = {"context": CONTEXT, "questions": questions}
    [of_text] = httpx2.post(f"{clients[2]}/v1/answers", json=body, trust_env=False).json()["texts"]
    free, choices, yes, wrong = of_text["answers"]
    assert free["answer"]["answer"] == ask(clients).text
    assert [c["label"] for c in choices["answer"]["choices"]] == LABELS
    alone = [choice.probability for choice in ask(clients, yes_no=True).choices]
    assert [choice["probability"] for choice in yes["answer"]["choices"]] == pytest.approx(alone, abs=1e-5)
    assert wrong["error"]["code"] == "incompatible_options"


def test_citations_are_those_that_the_client_makes(clients: tuple[Client, Client, str]) -> None:
    url = clients[2]
    for asked in ({}, {"contiguous": True}, {"all": True}, {"choices": LABELS}, {"choices": LABELS, "multiple": True}):
        body = {"context": CONTEXT, "question": QUESTION, "citations": True, **asked}
        document = httpx2.post(f"{url}/v1/answer", json=body).json()
        answer = clients[0].answer(CONTEXT, QUESTION, **asked)
        assert document["citations"] == answer.citations()
        for found in document["citations"]:
            assert CONTEXT[found["start_char_index"] : found["end_char_index"]] == found["cited_text"]
        plain = httpx2.post(f"{url}/v1/answer", json={**body, "citations": False}).json()
        assert {**plain, "citations": document["citations"]} == document


def test_citations_of_several_texts_name_each(clients: tuple[Client, Client, str]) -> None:
    question = {
        "question": QUESTION,
        "choices": LABELS,
        "citations": True,
    }  # labels always have words that spoke for them
    texts = [
        {"id": "first", "context": "Ada wrote notes.", "questions": [question]},
        {"context": "The walls.", "questions": [question, QUESTION]},
    ]
    response = httpx2.post(f"{clients[2]}/v1/answers", json={"texts": texts}).json()
    answers = [[item["answer"] for item in text["answers"]] for text in response["texts"]]
    for index, title in ((0, "first"), (1, None)):
        for found in answers[index][0]["citations"]:
            assert (found["document_index"], found["document_title"]) == (index, title)
    assert any(answers[index][0]["citations"] for index in (0, 1))
    assert "citations" not in answers[1][1]
