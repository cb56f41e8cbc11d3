"""Gold answers come back as they went, and where they do not, the example and the reason are named."""

from pathlib import Path

import pytest

import mqan_core.answer.types
from mqan_core.example import Example
from mqan_data.tasks import Task, task_named, tasks
from mqan_training.roundtrip import WAYS, Loss, RoundTrip, round_trip

CONTEXT = "The cat sat. The Old\n Harbour (1923) was closed."
QUESTION = "Was the harbour open or closed?"


def task(metric: str) -> Task:
    return Task(name="t", folder="t", format="jsonl", files={}, metric=metric)


def example(answer: str, *others: str, context: str = CONTEXT, name: str = "1") -> Example:
    return Example("t", name, context, QUESTION, (answer, *others))


@pytest.mark.parametrize("metric", ["em", "nf1", "bleu", "avg_rouge", "corpus_f1"])
def test_ordinary_answers_come_back(metric: str) -> None:
    answers = [
        "The Old\n Harbour (1923)",
        "it's 12 %, isn't it?",
        'naïve "x-ray" -- Ελλάδα; no',
        "a, b ,c  d",
        "It is unanswerable",
    ]
    trip = round_trip(task(metric), [example(answer, "another") for answer in answers])
    assert (trip.num_examples, trip.losses) == (5, [])
    assert [trip.scores[way][metric] for way in WAYS] == pytest.approx([100, 100])
    assert trip.longest_answer == 11
    assert trip.is_within(0)


def test_an_answer_that_the_metric_cannot_see_is_named() -> None:
    trip = round_trip(task("nf1"), [example("cat", name="1"), example(".", name="2")])
    reason = (
        "nf1 does not give 100 to the gold answer itself, of which nothing is left without articles and punctuation"
    )
    assert trip.losses == [Loss("2", way, ".", ".", reason) for way in WAYS]
    assert trip.num_lost == 1
    assert trip.is_within(0.5)
    assert not trip.is_within(0.49)


def test_a_blank_context_is_named() -> None:
    trip = round_trip(task("em"), [example("cat"), example("cat", context=" \n", name="2")])
    assert trip.scores["copied"] == {"em": 50}
    assert [(loss.id, loss.text, loss.reason) for loss in trip.losses] == [
        ("2", "", "The context is empty or white space only.")
    ] * 2


@pytest.mark.parametrize("metric", ["em", "nf1", "bleu", "avg_rouge", "corpus_f1"])
def test_a_fault_on_the_way_is_found(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqan_core.answer.types, "detokenize", lambda pieces: "".join(pieces).replace(" ", ""))
    trip = round_trip(task(metric), [example("maybe sat down or not")])
    assert [(loss.way, loss.text, loss.reason) for loss in trip.losses] == [
        (way, "maybesatdownornot", "the text that comes back is another one") for way in WAYS
    ]
    assert not trip.is_within(0.99)


def test_a_low_score_without_a_named_example_is_not_well() -> None:
    scores = {"copied": {"bleu": 100.0}, "generated": {"bleu": 99.0}}
    assert not RoundTrip(10, 5, scores, []).is_within(1)
    assert not RoundTrip(10, 5, scores, [Loss("1", "copied", "a", "b", "")]).is_within(1)
    assert RoundTrip(10, 5, scores, [Loss("1", "generated", "a", "b", "")]).is_within(0.1)


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    sorted(
        {name for name, task in tasks().items() if "validation" in task.splits} - {"cnn_dailymail", "ontonotes", "snli"}
    ),
)
def test_all_validation_answers_come_back(data_folder: Path, name: str) -> None:
    trained = task_named(name)
    trip = round_trip(trained, trained.read(data_folder / trained.folder, "validation"))
    assert trip.losses == []
    assert trip.is_within(0)
