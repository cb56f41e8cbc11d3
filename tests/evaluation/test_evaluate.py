"""Scoring a bundle: every example counts, classes are renamed as asked, and scores are recorded in the bundle."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mqan_core.bundle import describe_files, open_bundle, write_manifest
from mqan_evaluation.card import default_card, errors_table, record_scores
from mqan_evaluation.evaluate import Result, answer_with_engine, evaluate_task, write_results
from mqan_evaluation.reliability import record_calibration
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


def test_wrong_answers_are_drawn_from_the_tasks_in_turn(result: Result) -> None:
    def of(task: str, answers: list[str | None], *, variant: str = "", trained_on: bool = True) -> Result:
        predictions = [
            {
                "context": f"{task} | {i}\n" + "long " * 99,
                "question": "q *?*",
                "answer": answer,
                "gold": ["right", "Fine!"],
            }
            for i, answer in enumerate(answers)
        ]
        return replace(result, task=task, variant=variant, trained_on=trained_on, predictions=predictions)

    results = [
        of("one", ["right", "wrong", "fine", None]),
        of("one", ["wrong"] * 9, variant="other names"),
        of("two", ["bad"] * 9),
        of("perfect", ["The right"]),
        of("foreign", ["bad"], trained_on=False),
    ]
    head, _, *rows = errors_table(results, 7).splitlines()
    assert head == "| task | text | question | answer | right |"
    assert [row.split(" | ")[0] for row in rows] == ["| one", "| two", "| one", "| two", "| two", "| two", "| two"]
    assert len(set(rows)) == 7
    for row in rows:
        assert r"\|" in row, "a bar of the text does not end its cell"
        assert r"q \*?\*" in row
        assert row.endswith(" | right |")
        assert len(row) < 260
    assert errors_table(results, 7).splitlines()[2:] == rows, "the same every time"


def test_scores_go_into_manifest_and_card(tiny_bundle: Path, result: Result, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, folder)
    done = {"command": "mqan evaluate --zero-shot", "where": "in onnxruntime on a CPU"}
    with pytest.raises(ValueError, match="has no <!-- scores -->"):
        record_scores(folder, [result], **done)
    marks = "<!-- scores -->\nold\n<!-- /scores -->\n<!-- errors -->\nold\n<!-- /errors -->\n"
    (folder / "README.md").write_text(f"# card\n{marks}end\n")
    bundle = open_bundle(tiny_bundle)
    write_manifest(folder, replace(bundle.manifest, files=describe_files(folder)))
    record_scores(folder, [result], **done)
    after = open_bundle(folder)  # verifies the new hashes
    assert after.manifest.scores["sst"] == result.scores
    card = (folder / "README.md").read_text()
    assert "old" not in card
    assert "with `mqan evaluate --zero-shot` on the whole validation sets, in onnxruntime on a CPU.\n" in card
    assert card.count("| sst |") >= 2, "its scores, and what it got wrong"
    assert card.endswith("end\n")


def test_a_default_card_takes_scores_and_calibration(tiny_bundle: Path, result: Result, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, folder)
    (folder / "README.md").write_text(default_card("tiny", "1"))
    write_manifest(folder, replace(open_bundle(tiny_bundle).manifest, files=describe_files(folder)))
    record_scores(folder, [result], command="mqan evaluate --rename bad,good", where="in onnxruntime on a GPU")
    record_calibration(folder, {}, [])
    card = (folder / "README.md").read_text()
    assert "with `mqan evaluate --rename bad,good` on the whole validation sets, in onnxruntime on a GPU.\n" in card
    assert "| task | answers | error before | after |" in card
    assert "Not measured." not in card


def test_a_task_without_examples_is_named(tiny_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "val.jsonl").touch()
    engine = Engine.open(tiny_bundle)
    with pytest.raises(ValueError, match="jsonl:mine, validation: its files give no examples"):
        evaluate_task(answer_with_engine(engine), engine.read, task_named("jsonl:mine"), tmp_path)
