"""The formats of Hugging Face's tasks, over the default model, as their official client speaks them and by hand."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

from mqan_serving.contract.errors import PlacedError
from mqan_serving.formats.hugging_face import MOST_ANSWERS, question_of

TOWER = "🗼 The tower is 330 m tall and was finished in 1889."
TICKET = "I was charged twice for my order last week and would like one of the payments back."
TEAMS = ["shipping", "billing", "technical support"]
ASKED = {"question": "When was it finished?", "context": TOWER}
UNANSWERABLE = {"question": "Who designed the tower?", "context": TOWER}
QA, ZERO = "question-answering", "zero-shot-classification"
NO_ANSWER = {"start": 0, "end": 0, "answer": ""}

Told = Any


@pytest.fixture(scope="module")
def rest(default_server: Any) -> Iterator[httpx2.Client]:
    """A client of a server of the default model."""
    with httpx2.Client(base_url=default_server.rest, trust_env=False, timeout=60) as client:
        yield client


def quote(rest: httpx2.Client, inputs: Any, **parameters: Any) -> Told:
    response = rest.post("/v1/hf/question-answering", json={"inputs": inputs, "parameters": parameters})
    assert response.status_code == 200, response.text
    return response.json()


def classify(rest: httpx2.Client, inputs: Any, **parameters: Any) -> Told:
    body = {"inputs": inputs, "parameters": {"candidate_labels": TEAMS, **parameters}}
    response = rest.post("/v1/hf/zero-shot-classification", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def own(rest: httpx2.Client, **body: Any) -> Told:
    response = rest.post("/v1/answer", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def client_at(rest: httpx2.Client, path: str) -> InferenceClient:
    return InferenceClient(model=f"{str(rest.base_url).rstrip('/')}{path}", token="any")


def test_an_answer_is_the_services_quotation_in_code_points(rest: httpx2.Client) -> None:
    told = quote(rest, ASKED)
    assert told.keys() == {"score", "start", "end", "answer"}
    assert told["answer"] == "1889" == TOWER[told["start"] : told["end"]]
    assert told["score"] == pytest.approx(own(rest, **ASKED, contiguous=True)["probability"], abs=1e-5)
    assert quote(rest, ASKED, handle_impossible_answer=True) == told


def test_what_the_text_does_not_say_is_empty_where_that_is_possible_else_the_best_quotation(
    rest: httpx2.Client,
) -> None:
    none = quote(rest, UNANSWERABLE, handle_impossible_answer=True)
    refused = own(rest, **UNANSWERABLE, contiguous=True)
    assert not refused["answered"]
    assert none == {**NO_ANSWER, "score": pytest.approx(refused["confidence"], abs=1e-5)}
    best = quote(rest, UNANSWERABLE)
    assert best["answer"] == TOWER[best["start"] : best["end"]] != ""
    assert best["score"] < none["score"]


def test_a_list_of_answers_begins_with_the_one_and_goes_down(rest: httpx2.Client) -> None:
    inputs = {"question": "Who wrote notes?", "context": "Ada Lovelace wrote notes. So did Luigi Menabrea, in 1842."}
    several = quote(rest, inputs, top_k=4)
    assert 1 < len(several) <= 4
    assert several[0] == quote(rest, inputs)
    assert [told["score"] for told in several] == sorted((told["score"] for told in several), reverse=True)
    assert all(told["answer"] == inputs["context"][told["start"] : told["end"]] for told in several)
    places = [set(range(told["start"], told["end"])) for told in several]
    assert sum(map(len, places)) == len(set().union(*places))
    with_none = quote(rest, inputs, top_k=MOST_ANSWERS, handle_impossible_answer=True)
    assert [told["answer"] for told in with_none].count("") == 1
    assert with_none[0] == several[0]
    assert quote(rest, UNANSWERABLE, top_k=2, handle_impossible_answer=True)[0]["answer"] == ""


def test_an_answer_is_as_long_as_asked_at_most(rest: httpx2.Client) -> None:
    inputs = {"question": "What about the tower?", "context": TOWER}
    assert quote(rest, inputs, max_answer_len=1)["answer"] in TOWER.split()
    long = {"question": "What happened?", "context": "Then " + "very " * 40 + "old walls fell."}
    assert len(quote(rest, long)["answer"].split()) <= 15


def test_a_text_without_a_word_has_no_quotation(rest: httpx2.Client) -> None:
    assert quote(rest, {"question": "Who?", "context": "..."}) == {**NO_ANSWER, "score": 0.0}
    assert quote(rest, {"question": "Who?", "context": "..."}, top_k=3) == [{**NO_ANSWER, "score": 0.0}]


def test_the_official_client_asks_questions(rest: httpx2.Client) -> None:
    client = client_at(rest, "/v1/hf/question-answering")
    ask: Callable[..., Any] = client.question_answering  # declared as giving one answer or a list
    answer = ask(**ASKED)
    assert (answer.answer, TOWER[answer.start : answer.end]) == ("1889", "1889")
    none = ask(**UNANSWERABLE, handle_impossible_answer=True, align_to_words=True, doc_stride=64)
    assert (none.answer, none.start, none.end) == ("", 0, 0)
    several = ask(**ASKED, top_k=3, handle_impossible_answer=True)
    assert several[0].answer == "1889"
    with pytest.raises(HfHubHTTPError, match="max_answer_len is out of range"):
        ask(**ASKED, max_answer_len=100_000)


def test_labels_are_ranked_as_the_service_shares_them(rest: httpx2.Client) -> None:
    told = classify(rest, TICKET)
    assert list(told)[:3] == ["sequence", "labels", "scores"]
    assert told["sequence"] == TICKET
    assert told["labels"][0] == "billing"
    assert told["scores"] == sorted(told["scores"], reverse=True)
    assert sum(told["scores"]) == pytest.approx(1)
    choices = own(rest, context=TICKET, question="Which label fits the text?", choices=TEAMS)["choices"]
    assert dict(zip(told["labels"], told["scores"], strict=True)) == pytest.approx(
        {choice["label"]: choice["probability"] for choice in choices}, abs=1e-5
    )
    assert all(TICKET[span["start"] : span["end"]] == span["text"] for span in told["x_sources"])
    again = classify(rest, TICKET, candidate_labels="technical support, billing,shipping,")
    assert again["scores"] == pytest.approx(told["scores"], abs=1e-5)


def test_several_labels_are_judged_each_by_itself(rest: httpx2.Client) -> None:
    several = classify(rest, TICKET, multi_label=True)
    body = {"context": TICKET, "question": "Which label fits the text?", "choices": TEAMS, "multiple": True}
    judged = {choice["label"]: choice["probability"] for choice in own(rest, **body)["choices"]}
    assert dict(zip(several["labels"], several["scores"], strict=True)) == pytest.approx(judged, abs=1e-5)
    [alone] = classify(rest, TICKET, candidate_labels=["billing"])["scores"]
    assert alone < 1


def test_a_list_of_texts_is_answered_in_order(rest: httpx2.Client) -> None:
    texts = ["A delight from start to end.", TICKET, "A delight from start to end."]
    labels = ["positive", "negative"]
    told = classify(rest, texts, candidate_labels=labels)
    assert [one["sequence"] for one in told] == texts
    assert told[0]["labels"][0] == "positive"
    for text, one in zip(texts, told, strict=True):
        assert one["scores"] == pytest.approx(classify(rest, text, candidate_labels=labels)["scores"], abs=1e-4)


def test_a_template_becomes_a_question(rest: httpx2.Client) -> None:
    assert question_of("This text is about {}.") == 'Which of these completes "This text is about ..."?'
    assert question_of(" Which team? ") == "Which team?"
    for wrong in ("This is it.", "From {} to {}.", ""):
        with pytest.raises(PlacedError) as caught:
            question_of(wrong)
        assert caught.value.place == ("parameters", "hypothesis_template")
    told = classify(rest, TICKET, hypothesis_template="Which team should take this ticket?")
    choices = own(rest, context=TICKET, question="Which team should take this ticket?", choices=TEAMS)["choices"]
    assert told["scores"] == pytest.approx(sorted((c["probability"] for c in choices), reverse=True), abs=1e-5)


@pytest.mark.parametrize(
    ("path", "body", "code", "said"),
    [
        *((QA, {}, "missing_field", "inputs"), (QA, {"inputs": "Who?"}, "wrong_type", "inputs")),
        (QA, {"inputs": {"question": "Who?"}}, "missing_field", "inputs.context"),
        (QA, {"inputs": {**ASKED, "context": " "}}, "empty_context", "inputs.context: The context"),
        (QA, {"inputs": ASKED, "parameters": {"topk": 1}}, "unknown_field", "topk"),
        (QA, {"inputs": ASKED, "parameters": {"a b": 1}}, "unknown_field", "parameters"),
        (QA, {"inputs": ASKED, "parameters": []}, "wrong_type", "parameters"),
        (QA, {"inputs": ASKED, "parameters": {"top_k": 22}}, "option_out_of_range", "21"),
        (QA, {"inputs": ASKED, "parameters": {"top_k": True}}, "wrong_type", "parameters.top_k"),
        (QA, {"inputs": ASKED, "parameters": {"handle_impossible_answer": 1}}, "wrong_type", "boolean"),
        (ZERO, {"inputs": TICKET}, "missing_field", "parameters.candidate_labels"),
        (
            ZERO,
            {"inputs": TICKET, "parameters": {"candidate_labels": []}},
            "invalid_input",
            "parameters.candidate_labels",
        ),
        (ZERO, {"inputs": [TICKET, " "], "parameters": {"candidate_labels": "a,b"}}, "empty_context", "inputs.1: "),
        (
            ZERO,
            {"inputs": TICKET, "parameters": {"candidate_labels": ["a", "a"]}},
            "duplicate_choice",
            "parameters.candidate_labels: ",
        ),
        (
            ZERO,
            {"inputs": TICKET, "parameters": {"candidate_labels": ["a", " "]}},
            "empty_choice",
            "parameters.candidate_labels: ",
        ),
        (ZERO, {"inputs": {"text": TICKET}, "parameters": {"candidate_labels": "a"}}, "wrong_type", "inputs"),
    ],
)
def test_what_is_wrong_is_said_as_hugging_face_says_it(
    rest: httpx2.Client, path: str, body: Any, code: str, said: str
) -> None:
    response = rest.post(f"/v1/hf/{path}", json=body)
    assert response.status_code == 422
    told = response.json()
    assert told.keys() == {"error", "error_type"}
    assert told["error_type"] == code
    assert said in told["error"]


def test_labels_that_many_texts_share_are_not_read_without_bound(rest: httpx2.Client) -> None:
    parameters = {"candidate_labels": ["a" * 6_000, "b"]}
    body = {"inputs": ["A text."] * 200, "parameters": parameters}
    response = rest.post("/v1/hf/zero-shot-classification", json=body)
    assert response.status_code == 413
    assert "The labels of all texts together have 1200200 characters" in response.text
