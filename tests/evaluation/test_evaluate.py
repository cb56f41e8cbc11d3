"""Scoring the paper's network: every example counts, and answers belong to their examples."""

import csv
import json
from pathlib import Path

import pytest

from mqan_data.tasks import task_named
from mqan_evaluation.answerers import EngineAnswerer
from mqan_evaluation.decanlp_section import paper_section
from mqan_evaluation.field_sections import LABELS
from mqan_evaluation.sections import Measuring, Section
from mqan_evaluation.suite import Measured, write_suite
from mqan_runtime.engine import Engine

ROWS = [(1, "A film of rare charm."), (0, "Dull and far too long!"), (1, "   "), (1, "I'd see it again. " * 30)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "sst").mkdir()
    with (folder / "sst" / "dev_binary_sent.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("label", "sentence"), *ROWS])
    return folder


@pytest.fixture(scope="module")
def measuring(tiny_bundle: Path, data: Path) -> Measuring:
    return Measuring(EngineAnswerer.open(tiny_bundle), data)


@pytest.fixture(scope="module")
def section(measuring: Measuring) -> Section:
    return paper_section(measuring, [task_named("sst")], {"imdb": "has no validation split"})


def test_every_example_is_scored_and_unreadable_ones_are_named(section: Section, measuring: Measuring) -> None:
    (row,) = section.rows
    assert row["examples"] == len(ROWS)
    assert "answer" not in measuring.answers[2]
    is_right = [
        record.get("answer") == LABELS[label] for record, (label, _) in zip(measuring.answers, ROWS, strict=True)
    ]
    assert (row["metric"], row["score"]) == ("em", 25 * sum(is_right))
    assert sum(float(row[source] or 0) for source in ("vocabulary", "context", "question")) == pytest.approx(100, abs=1)
    assert section.notes == [
        "sst: 1 examples have no text to ask about: ['validation/2']",
        "imdb: skipped: has no validation split",
    ]


@pytest.mark.usefixtures("section")  # which asks
def test_answers_belong_to_their_examples(tiny_bundle: Path, measuring: Measuring) -> None:
    """Batches are formed by length; the answers must come back in the order of the file."""
    engine = Engine.open(tiny_bundle)
    for (_, sentence), record in zip(ROWS, measuring.answers, strict=True):
        if record["is_read"]:
            request = engine.read(sentence, "Is this review negative or positive?")
            answer = engine.answer([request], [engine.max_answer_tokens])[0]
            assert answer.text == record["answer"]
            assert [token.source.value for token in answer.tokens] == record["sources"]


def test_results_are_written_in_full(section: Section, measuring: Measuring, tmp_path: Path) -> None:
    write_suite(tmp_path, Measured("tiny", "here", None, 1, [section]), measuring.answers)
    suite = json.loads((tmp_path / "suite.json").read_text())
    assert suite["sections"][0]["rows"] == list(section.rows)
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"validation/{i}" for i in range(len(ROWS))]
