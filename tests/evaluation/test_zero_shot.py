"""Zero-shot scoring: the classes by other names, the question in other words, and tasks that were not trained on."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_core.bundle import open_bundle, write_manifest
from mqan_core.example import Example
from mqan_evaluation.evaluate import Result, differences
from mqan_evaluation.zero_shot import CLASSES, INFERENCE, NEW_NAMES, REPHRASINGS, Wording, read_renamings, wordings
from mqan_training.data.readers.registry import TASKS, task_named
from mqan_training.data.readers.sst import LABELS, QUESTION

NEGATIVE = Example("sst", "1", "Dull.", QUESTION, ("negative",))
SENTENCES = [(1, "A film of rare charm."), (0, "Dull and far too long!"), (1, "I'd see it again.")]
PAIRS = [("A man sleeps.", "Nobody is awake.", "neutral"), ("A dog runs.", "An animal moves.", "entailment")]


def test_renaming_changes_question_and_answer_together() -> None:
    renamed = Wording(LABELS, ("angry", "happy"), (1, 0)).apply(NEGATIVE)
    assert renamed.question == "Is this review happy or angry?"
    assert renamed.answers == ("angry",)
    assert renamed.context == NEGATIVE.context


@pytest.mark.parametrize("rephrasing", REPHRASINGS)
@pytest.mark.parametrize("label", LABELS)
def test_a_rephrased_question_offers_the_answer_once(rephrasing: str, label: str) -> None:
    asked = Wording(LABELS, LABELS, (0, 1), rephrasing).apply(replace(NEGATIVE, answers=(label,)))
    assert asked.question != QUESTION
    assert asked.answers == (label,)
    words = asked.question.replace("?", " ").replace(":", " ").replace(",", " ").split()
    assert [words.count(name) for name in LABELS] == [1, 1]
    assert words.index("negative") < words.index("positive")


def test_the_zero_shot_wordings_are_all_different() -> None:
    assert set(CLASSES) == {"sst", "product_reviews"}
    for task in CLASSES:
        shown = [str(wording) for wording in wordings(task, zero_shot=True)]
        assert len(set(shown)) == len(shown) == 1 + 2 * len(NEW_NAMES) + len(REPHRASINGS)
        assert {"positive or negative", "happy or angry", "angry or happy", "unsupportive or supportive"} <= set(shown)
        assert "Would you call this review negative or positive?" in shown
        assert QUESTION not in shown
    assert wordings("squad", zero_shot=True) == []
    assert wordings("sst", zero_shot=False) == []


def test_given_names_are_scored_in_both_orders_and_once() -> None:
    renamings = read_renamings(["awful, lovely", "angry,happy"], ["squad", "sst"])
    assert renamings == [("awful", "lovely"), ("angry", "happy")]
    assert [str(wording) for wording in wordings("sst", zero_shot=False, renamings=renamings)] == [
        "awful or lovely",
        "lovely or awful",
        "angry or happy",
        "happy or angry",
    ]
    with_ours = [str(wording) for wording in wordings("sst", zero_shot=True, renamings=renamings)]
    assert with_ours.count("angry or happy") == 1
    (wording, _, _, _) = wordings("sst", zero_shot=False, renamings=renamings)
    assert wording.apply(NEGATIVE).answers == ("awful",)


@pytest.mark.parametrize(
    ("names", "tasks", "message"),
    [
        ("awful", ["sst"], "--rename awful: expected 2 different names .* negative,positive of sst in this order"),
        ("awful,fine,lovely", ["sst"], "expected 2 different names"),
        ("awful,", ["sst"], "expected 2 different names"),
        ("same,same", ["product_reviews"], "expected 2 different names .* of product_reviews"),
        ("positive,negative", ["sst"], "are the own names of the classes of sst"),
        ("awful,lovely", ["squad", "woz"], "--rename is for sst and product_reviews; to be scored are squad, woz"),
    ],
)
def test_names_that_do_not_fit_are_refused(names: str, tasks: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_renamings([names], tasks)


def test_the_difference_is_to_the_tasks_own_wording() -> None:
    def result(task: str, variant: str, value: float) -> Result:
        return Result(task, variant, {"em": value, "other": 1.0}, {}, 10, [], 1.0, [])

    results = [result("sst", "", 80.0), result("sst", "angry or happy", 77.5), result("squad", "", 50.0)]
    results += [result("sst", "bad or good", 82.0), result("product_reviews", "bad or good", 60.0)]
    assert differences(results) == [None, -2.5, None, 2.0, None]


def test_inference_asks_with_its_labels() -> None:
    assert set(INFERENCE) <= set(TASKS)
    assert all("validation" in task_named(name).splits for name in INFERENCE)


@pytest.fixture(scope="module")
def trained_bundle(tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that says that it was trained on SST."""
    folder = tmp_path_factory.mktemp("zero-shot") / "bundle"
    shutil.copytree(tiny_bundle, folder)
    manifest = open_bundle(folder).manifest
    write_manifest(folder, replace(manifest, training={**manifest.training, "tasks": ["sst"]}))
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds SST and SNLI and no other task of inference."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "sst").mkdir()
    with (folder / "sst" / "dev_binary_sent.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("label", "sentence"), *SENTENCES])
    (folder / "snli").mkdir()
    keys = ("sentence1", "sentence2", "gold_label")
    lines = [json.dumps(dict(zip(keys, pair, strict=True))) + "\n" for pair in PAIRS]
    (folder / "snli" / "snli_1.0_dev.jsonl").write_text("".join(lines))
    return folder


def evaluate(bundle: Path, data: Path, *more: str) -> Any:
    return CliRunner().invoke(
        app, ["evaluate", "--bundle", str(bundle), "--data", str(data), "--threads", "1", *more], env={"COLUMNS": "160"}
    )


def test_zero_shot_scores_other_wordings_and_inference(trained_bundle: Path, data: Path, tmp_path: Path) -> None:
    output = tmp_path / "scores"
    result = evaluate(trained_bundle, data, "--zero-shot", "--rename", "awful,lovely", "--output", str(output))
    assert result.exit_code == 0, result.output
    metrics = json.loads((output / "metrics.json").read_text())
    by_name = {(record["task"], record["variant"]): record for record in metrics}
    assert len(by_name) == len(metrics) == 1 + (1 + 2 * len(NEW_NAMES) + 2 + len(REPHRASINGS)) + 1

    own, renamed = by_name["sst", ""], by_name["sst", "lovely or awful"]
    assert own["trained_on"] is True
    assert own["difference_to_trained_wording"] is None
    assert renamed["difference_to_trained_wording"] == renamed["scores"]["em"] - own["scores"]["em"]
    snli = by_name["snli", ""]
    assert (snli["trained_on"], snli["num_examples"]) == (False, len(PAIRS))

    asked = [json.loads(line) for line in (output / "predictions.jsonl").read_text().splitlines()]
    of_snli = [(row["context"], row["question"], row["gold"]) for row in asked if row["task"] == "snli"]
    assert of_snli[0] == (
        'Premise: "A man sleeps."',
        'Hypothesis: "Nobody is awake." -- entailment, neutral, or contradiction?',
        ["neutral"],
    )
    first = {row["variant"]: (row["question"], row["gold"]) for row in asked if row["id"] == "validation/0"}
    assert first["lovely or awful"] == ("Is this review lovely or awful?", ["lovely"])

    rows = {line.split("│")[1].strip() for line in result.stdout.splitlines() if line.startswith("│")}
    assert {"sst", "snli (not trained on)"} <= rows
    for name in ("multinli", "sick", "rte", "xnli"):
        assert f"{name}: skipped: found no " in result.stdout, "what is left out is said"
    page = (output / "report.html").read_text()
    assert "snli (not trained on)" in page
    assert f"{renamed['difference_to_trained_wording']:+.1f}" in page


def test_tasks_that_are_named_are_scored_alone(trained_bundle: Path, data: Path, tmp_path: Path) -> None:
    result = evaluate(trained_bundle, data, "--zero-shot", "--tasks", "snli", "--output", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert [record["task"] for record in json.loads((tmp_path / "metrics.json").read_text())] == ["snli"]
    assert "skipped" not in result.output
    missing = evaluate(trained_bundle, data, "--zero-shot", "--tasks", "rte")
    assert missing.exit_code == 1
    assert "mqan: rte: found no dev.tsv, RTE/dev.tsv or RTE.zip in" in missing.stderr


def test_a_bundle_that_names_no_tasks_gets_no_mark(tiny_bundle: Path, data: Path) -> None:
    result = evaluate(tiny_bundle, data, "--tasks", "snli")
    assert result.exit_code == 0, result.output
    assert "not trained on" not in result.output


def test_wrong_names_are_told_before_any_work(trained_bundle: Path, data: Path) -> None:
    result = evaluate(trained_bundle, data, "--rename", "awful")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "mqan: --rename awful: expected 2 different names" in result.stderr
