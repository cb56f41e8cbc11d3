"""Scoring a bundle: every example counts, and answers belong to their examples."""

import csv
import json
from pathlib import Path

import pytest

from mqan_evaluation.evaluate import Result, answer_with_engine, evaluate_task, write_results
from mqan_runtime.engine import Engine
from mqan_training.data.readers.registry import task_named

ROWS = [(1, "A film of rare charm."), (0, "Dull and far too long!"), (1, "   "), (1, "I'd see it again. " * 30)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "sst").mkdir()
    with (folder / "sst" / "dev_binary_sent.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("label", "sentence"), *ROWS])
    return folder


@pytest.fixture(scope="module")
def result(tiny_bundle: Path, data: Path) -> Result:
    engine = Engine.open(tiny_bundle)
    return evaluate_task(answer_with_engine(engine), engine.read, task_named("sst"), data)


def test_every_example_is_scored_and_unreadable_ones_are_named(result: Result) -> None:
    assert result.num_examples == len(ROWS)
    assert result.unreadable == ["validation/2"]
    assert result.predictions[2]["answer"] is None
    assert result.scores["em"] in (0, 25, 50, 75)
    assert sum(result.source_mix.values()) == pytest.approx(1)


def test_answers_belong_to_their_examples(tiny_bundle: Path, result: Result) -> None:
    """Batches are formed by length; the answers must come back in the order of the file."""
    engine = Engine.open(tiny_bundle)
    for (_, sentence), record in zip(ROWS, result.predictions, strict=True):
        if record["answer"] is not None:
            request = engine.read(sentence, "Is this review negative or positive?")
            assert engine.answer([request], [engine.max_answer_tokens])[0].text == record["answer"]


def test_results_are_written_in_full(result: Result, tmp_path: Path) -> None:
    write_results(tmp_path, [result])
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics[0]["scores"] == result.scores
    rows = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"validation/{i}" for i in range(len(ROWS))]


def test_a_task_without_examples_is_named(tiny_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "val.jsonl").touch()
    engine = Engine.open(tiny_bundle)
    with pytest.raises(ValueError, match="jsonl:mine, validation: its files give no examples"):
        evaluate_task(answer_with_engine(engine), engine.read, task_named("jsonl:mine"), tmp_path)
