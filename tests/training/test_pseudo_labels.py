"""Labels of a small encoder for sentences that have none: from sentences to a task that training reads."""

import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_training.data.readers.registry import task_named
from mqan_training.data.sentences import excerpt, phrases, sentences, splices
from mqan_training.errors import MissingVectorsError
from mqan_training.pseudo_labels import (
    FineTuning,
    PseudoLabels,
    WhatToLabel,
    pseudo_label,
    with_labels_of_sources,
)

GOOD, BAD = ["bright", "warm", "fine"], ["dull", "flat", "cold"]
TEST = "A bright film of friends , and warm"
REST = ["the", "film", "is", "a", "story", "of", "two", "old", "friends"]

WriteEncoder = Callable[..., Path]

how = FineTuning(epochs=20, rate=3e-3, seed=1)


def label(
    task: str,
    sources: Mapping[str, int],
    data: Path,
    encoder: Path,
    output: Path,
    *,
    tuned: FineTuning = how,
    min_probability: float = 0.8,
    **options: Any,
) -> PseudoLabels:
    what = WhatToLabel(sources, min_probability=min_probability, **options)
    return pseudo_label(task, what, data, encoder, output, tuned)


def sentence(rng: random.Random, word: str) -> str:
    """Return a sentence about a film that has the word in it."""
    words = [rng.choice(REST) for _ in range(9)]
    words[rng.randrange(9)] = word
    return " ".join([*words, "."])


def write_texts(data: Path, texts: list[tuple[str, str]]) -> None:
    """Write contexts and questions as the task jsonl:texts."""
    (data / "texts").mkdir(exist_ok=True)
    rows = [{"context": context, "question": question, "answer": "b"} for context, question in texts]
    for file in ("train", "val"):
        (data / "texts" / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def encoder(write_encoder: WriteEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("pseudo") / "encoder", [".", *GOOD, *BAD, *REST], num_layers=1)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """SST of our own in its official format, and contexts without labels."""
    rng = random.Random(0)
    folder = tmp_path / "data"
    (folder / "sst").mkdir(parents=True)
    for file, number in (("train", 200), ("dev", 40)):
        rows = [(i % 2, sentence(rng, rng.choice((BAD, GOOD)[i % 2]))) for i in range(number)]
        lines = [f"{label},{text}" for label, text in rows]
        (folder / "sst" / f"{file}_binary_sent.csv").write_text("\n".join(["label,sentence", *lines, ""]))
    contexts = [sentence(rng, rng.choice(GOOD + BAD)).capitalize() for _ in range(900)]
    (folder / "sst" / "test_binary_sent.csv").write_text(f'label,sentence\n1,"{TEST} ."\n')
    contexts.append(TEST.upper() + ".")  # the same sentence as another dataset spells it
    write_texts(folder, [(context, "?") for context in contexts])
    return folder


def test_sentences_are_cut_from_texts() -> None:
    long = " ".join(["word"] * 46)
    texts = ['It is a dull film. "Why is it so dull?" I do not know.<br />Too short. It is\na dull film.', long]
    assert list(sentences(texts)) == ["It is a dull film.", '"Why is it so dull?"', "I do not know."]


def test_phrases_are_runs_of_words_without_signs_around_them() -> None:
    texts = ["... a film , not bad !", "one two three four five six seven eight nine ten eleven"]
    found = phrases(texts, 20, random.Random(1))
    assert found == phrases(texts, 20, random.Random(1))
    assert len(set(found)) == 20
    assert all(any(phrase in text for text in texts) and phrase.strip("., !") == phrase != "" for phrase in found)
    assert {len(phrase.split()) for phrase in found} >= {1, 2, 3, 4}
    assert sorted(phrases(["not bad !"], 9, random.Random(1))) == ["bad", "not", "not bad"]
    assert phrases([], 9, random.Random(1)) == []


def test_a_fine_tuned_encoder_labels_phrases(encoder: Path, data: Path, tmp_path: Path) -> None:
    output = tmp_path / "labelled"
    report = label("sst", {"jsonl:texts": 300}, data, encoder, output, num_phrases=2000, min_probability=0.9)
    assert 1500 < report.num_read <= 2000  # phrases of both kinds may be the same
    assert sum(report.num_kept.values()) < report.num_read, "the encoder is not sure of phrases without a word for it"
    written = list(task_named(f"jsonl:{output}").read(output, "train"))
    # a run of all ten words of one of these sentences ends in its full stop, which is left out
    assert {len(example.context.split()) for example in written} == set(range(1, 10))
    own = [example.context for example in task_named("sst").read(data / "sst", "train")]
    theirs = [example.context.capitalize() for example in task_named("jsonl:texts").read(data / "texts", "train")]
    for texts in (own, theirs):
        assert sum(any(example.context in text for text in texts) for example in written) > len(written) // 3
    telling = [e for e in written if set(GOOD + BAD) & set(e.context.lower().split())]
    right = [e.answers == ("positive" if set(GOOD) & set(e.context.lower().split()) else "negative",) for e in telling]
    assert sum(right) > 0.95 * len(right) > 100
    with pytest.raises(ValueError, match=r"found 384 phrases that sst has not itself; 500 are held out"):
        label("sst", {"jsonl:texts": 300}, data, encoder, output, num_phrases=400)


def test_splices_go_over_from_text_to_text_at_a_word_that_both_have() -> None:
    texts = ["a dull and slow film of two friends", "This Film is warm and funny from its start", "of", " "]
    found = splices(texts, 30, random.Random(1))
    assert found == splices(texts, 30, random.Random(1))
    assert "a dull and funny from its start" in found
    assert "This film of two friends" in found, "case does not count"
    assert not set(found) & set(texts)
    neighbours = {pair for text in texts for pair in pairwise(text.lower().split())}
    assert all(4 <= len(text.split()) <= 45 and set(pairwise(text.lower().split())) <= neighbours for text in found)
    assert splices([" "], 9, random.Random(1)) == splices(["no word twice here"], 9, random.Random(1)) == []


def test_a_fine_tuned_encoder_labels_splices(encoder: Path, data: Path, tmp_path: Path) -> None:
    output = tmp_path / "labelled"
    others = [e.context for split in ("validation", "test") for e in task_named("sst").read(data / "sst", split)]
    report = label("sst", {}, data, encoder, output, num_splices=900, min_probability=0.9)
    assert 850 < report.num_read <= 900
    written = list(task_named(f"jsonl:{output}").read(output, "train"))
    assert not {example.context for example in written} & set(others)
    told = [(words & set(GOOD), words & set(BAD), e.answers) for e in written for words in [set(e.context.split())]]
    right = [answers == ("positive" if good else "negative",) for good, bad, answers in told if len(good | bad) == 1]
    assert sum(right) > 0.95 * len(right) > 100
    with pytest.raises(ValueError, match=r"found 300 splices that sst has not itself; 500 are held out"):
        label("sst", {}, data, encoder, output, num_splices=300)


def test_an_excerpt_is_a_run_of_sentences() -> None:
    parts = ["one two three", "four five", "six", "seven eight nine ten"]
    whole = " ".join(parts)
    rng = random.Random(1)
    found = [excerpt(parts, 6, rng) for _ in range(400)]
    assert all(text in whole and len(text.split()) <= 6 for text in found)
    starts = {text.split()[0] for text in found}
    assert starts == {"one", "four", "six", "seven"}
    assert found.count("one two three four five six") > 100  # from the first sentence on, as long as it may be
    assert found.count("six seven eight nine ten") > 180  # to the last
    assert {excerpt(parts, 1, rng) for _ in range(50)} == set(parts), "one sentence at least"
    assert excerpt(parts, 99, random.Random(2)).endswith("ten")


def test_the_class_of_a_source_is_weighed_by_bayes_rule() -> None:
    by_encoder = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]], np.float32)
    weighed = with_labels_of_sources(by_encoder, ["positive", "negative", "?"], ["negative", "positive"], 0.8)
    assert weighed == pytest.approx(np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]), abs=1e-6)


def write_reviews(data: Path, answer: str | None = None) -> None:
    """Write 300 reviews of four sentences with a class as the task jsonl:reviews; in one of four, nothing tells it."""
    rng = random.Random(3)
    (data / "reviews").mkdir()
    rows = []
    for number in range(300):
        is_good = number % 2 == 1
        words = rng.choices(["story"] if number < 75 else GOOD if is_good else BAD, k=4)
        context = " ".join(sentence(rng, word).replace(" .", ".").capitalize() for word in words)
        rows.append({"context": context, "question": "?", "answer": answer or ("negative", "positive")[is_good]})
    for file in ("train", "val"):
        (data / "reviews" / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_excerpts_are_labelled_with_the_class_of_their_text(encoder: Path, data: Path, tmp_path: Path) -> None:
    write_reviews(data)
    tuned = replace(how, beside={"jsonl:reviews": 200}, kept_in=tmp_path / "kept" / "encoder.pt")
    sources = {"jsonl:reviews": 800}
    answers = {}
    for name, accuracy in (("alone", None), ("both", 0.999)):
        folder = tmp_path / name
        report = label(
            "sst",
            sources,
            data,
            encoder,
            folder,
            tuned=tuned,
            excerpt_words=20,
            source_accuracy=accuracy,
            min_probability=0.6,
        )
        assert report.num_read > 700
        answers[name] = {e.context: e.answers[0] for e in task_named(f"jsonl:{folder}").read(folder, "train")}
    right = {}
    for review in task_named("jsonl:reviews").read(data / "reviews", "train"):
        right.update({context: review.answers[0] for context in answers["both"] if context in review.context})
    assert answers["both"] == right
    assert all(len(context.split()) <= 20 for context in right)
    wrong = [context for context, answer in answers["alone"].items() if answer != right.get(context, answer)]
    assert len(wrong) > 10
    assert not any(set(GOOD + BAD) & set(re.findall(r"\w+", context.lower())) for context in wrong), "told by no word"


def test_a_kept_encoder_is_read_and_not_made_again(
    encoder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = replace(how, kept_in=tmp_path / "encoder.pt")
    first = label("sst", {"jsonl:texts": 900}, data, encoder, tmp_path / "first", tuned=tuned)
    monkeypatch.setattr("mqan_training.pseudo_labels.fine_tune", lambda *_, **__: None)
    assert label("sst", {"jsonl:texts": 900}, data, encoder, tmp_path / "second", tuned=tuned) == first
    assert (tmp_path / "first" / "train.jsonl").read_bytes() == (tmp_path / "second" / "train.jsonl").read_bytes()
    tuned.kept_in.write_bytes(b"no weights")  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"encoder\.pt holds no weights of this encoder with 2 classes; give another"):
        label("sst", {"jsonl:texts": 900}, data, encoder, tmp_path / "third", tuned=tuned)


def test_an_encoder_kept_of_another_task_or_fine_tuning_is_refused(
    encoder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reviews(data)
    monkeypatch.setattr("mqan_training.pseudo_labels.fine_tune", lambda *_, **__: None)

    def label_with(task: str = "sst", encoder: Path = encoder, **changes: Any) -> None:
        tuned = replace(how, kept_in=tmp_path / "e.safetensors", **changes)
        label(task, {"jsonl:texts": 900}, data, encoder, tmp_path / "labelled", tuned=tuned, min_probability=0)

    label_with()
    label_with()
    for changes, difference in (
        ({"task": "jsonl:reviews"}, "task sst, not jsonl:reviews"),
        ({"epochs": 3, "rate": 0.1}, "epochs 20, not 3; rate 0.003, not 0.1"),
        ({"seed": 2}, "seed 1, not 2"),
        ({"beside": {"jsonl:reviews": 9}}, 'beside {}, not {"jsonl:reviews": 9}'),
    ):
        expected = f"e.safetensors keeps an encoder that was fine-tuned with {difference}: ask for the same, or name"
        with pytest.raises(ValueError, match=re.escape(expected)):
            label_with(**changes)
    other = shutil.copytree(encoder, tmp_path / "other")
    label_with(encoder=other)
    (other / "vocab.txt").write_text((other / "vocab.txt").read_text() + "more\n")
    with pytest.raises(ValueError, match=r"was fine-tuned with encoder [0-9a-f]{16}, not [0-9a-f]{16}: ask for"):
        label_with(encoder=other)
    subjects = data / "reviews" / "train.jsonl"
    subjects.write_text(subjects.read_text().replace("negative", "objective").replace("positive", "subjective"))
    with pytest.raises(ValueError, match=r'task sst, not .*; classes \["negative", "positive"\], not \["objective", "'):
        label_with("jsonl:reviews")

    save_file(load_file(tmp_path / "e.safetensors"), tmp_path / "e.safetensors")
    with pytest.raises(ValueError, match=r"e\.safetensors does not say what its encoder was fine-tuned on: delete it"):
        label_with()


def test_a_task_of_other_classes_beside_it_is_refused(encoder: Path, data: Path, tmp_path: Path) -> None:
    write_reviews(data, answer="maybe")
    tuned = replace(how, beside={"jsonl:reviews": 200})
    with pytest.raises(ValueError, match="jsonl:reviews has answers that are no classes of the task: maybe"):
        label("sst", {"jsonl:texts": 900}, data, encoder, tmp_path / "labelled", tuned=tuned)


def test_a_fine_tuned_encoder_labels_sentences(encoder: Path, data: Path, tmp_path: Path) -> None:
    output = tmp_path / "labelled"
    report = label("sst", {"jsonl:texts": 1000}, data, encoder, output)
    assert isinstance(report, PseudoLabels)
    assert report.accuracy == 1.0
    assert 700 < report.num_read <= 900
    assert TEST.upper() not in (output / "train.jsonl").read_text() + (output / "val.jsonl").read_text()
    written = list(task_named(f"jsonl:{output}").read(output, "train"))
    held_out = list(task_named(f"jsonl:{output}").read(output, "validation"))
    assert len(held_out) == 500
    assert len(written) + 500 == sum(report.num_kept.values()) > 700
    assert not {e.context for e in written} & {e.context for e in held_out}
    for example in written:
        assert example.question == "Is this review negative or positive?"
        is_good = bool(set(GOOD) & set(example.context.lower().split()))
        assert example.answers == ("positive" if is_good else "negative",)


def test_labels_that_are_too_few_are_refused(encoder: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="found 300 sentences that sst has not itself; 500 are held out"):
        label("sst", {"jsonl:texts": 300}, data, tmp_path / "before the encoder is read", tmp_path / "labelled")
    with pytest.raises(ValueError, match=r"of 510 sentences have a class of probability 1\.0 or more; 500 "):
        label("sst", {"jsonl:texts": 510}, data, encoder, tmp_path / "labelled", min_probability=1.0)
    assert not (tmp_path / "labelled").exists()


def test_a_task_that_asks_different_questions_is_refused(encoder: Path, data: Path, tmp_path: Path) -> None:
    write_texts(data, [("a", "Who?"), ("a", "What?")])
    with pytest.raises(ValueError, match="jsonl:texts asks 2 different questions"):
        label("jsonl:texts", {"sst": 10}, data, encoder, tmp_path / "labelled")


def test_a_task_of_too_many_answers_is_refused(encoder: Path, data: Path, tmp_path: Path) -> None:
    (data / "words").mkdir()
    rows = [json.dumps({"context": "a b c d", "question": "?", "answer": str(number)}) for number in range(21)]
    for file in ("train", "val"):
        (data / "words" / f"{file}.jsonl").write_text("\n".join(rows))
    with pytest.raises(ValueError, match="jsonl:words has 21 different answers; at most 20 can be classes"):
        label("jsonl:words", {"sst": 10}, data, encoder, tmp_path / "labelled")


def test_a_folder_without_an_encoder_is_refused(encoder: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(MissingVectorsError, match=f"{folder.name} holds no sentence encoder"):
            label("sst", {"jsonl:texts": 1000}, data, folder, tmp_path / "labelled")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], "say which sentences to label"),
        (["--from", "imdb"], "is not TASK=NUMBER"),
        (["--from", "imdb=0"], "TASK="),
        (["--from", "imdb=5", "--from", "imdb=7"], "a task is given twice"),
        (["--from", "imdb=5", "--beside", "imdb"], "imdb is not TASK=NUMBER"),
        (["--splices", "5", "--from", "imdb=5"], "splices are of the task's own texts"),
        (["--from", "imdb=5", "--phrases", "5", "--excerpts", "60"], "phrases are no excerpts"),
    ],
)
def test_sources_are_pairs(given: list[str], expected: str) -> None:
    result = CliRunner().invoke(app, ["pseudo-label", "out", *given], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert result.exit_code == 2
    assert expected in result.output


def test_a_recipe_reads_them_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Path("elsewhere") / task_named("jsonl:./runs/labels").folder == tmp_path / "runs" / "labels"
    assert task_named("jsonl:runs/labels").folder == "runs/labels"
