"""The official files as rows, the splits, QNLI, scores, batches and recipes."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mqan_baselines.formats import Row, _ranking
from mqan_baselines.recipes import load_recipe
from mqan_baselines.scores import score, score_rankings, score_task
from mqan_baselines.splits import draw, endless_batches, mini_batches
from mqan_baselines.tasks import TASKS, baseline_task
from mqan_core.example import Example
from mqan_data.files import MissingFileError
from mqan_training.batch import sorted_batches

_PAIR = {"sentence1": "a", "sentence2": "b"}


@pytest.mark.parametrize(
    ("task", "counts"),
    [("sst-2", 120), ("sst-1", 120), ("cola", 24), ("rte", 48), ("mrpc", 48), ("sick", 48), ("sts-b", 48)],
)
def test_a_training_row_is_in_one_split(baseline_data: Path, task: str, counts: int) -> None:
    train, tune = (baseline_task(task).rows(baseline_data, split) for split in ("train", "tune"))
    assert len(train) + len(tune) == counts
    assert train
    assert not {row.texts[0] for row in train} & {row.texts[0] for row in tune}
    both = baseline_task(task).rows(baseline_data, "train", "tune")
    assert [row for row in both if row in train] == train
    assert [row for row in both if row not in train] == tune


def test_without_a_development_file_a_tenth_is_for_the_report(baseline_data: Path) -> None:
    splits = [baseline_task("subj").rows(baseline_data, split) for split in ("train", "tune", "test")]
    assert sum(map(len, splits)) == 160
    assert all(splits)
    texts = [{row.texts for row in rows} for rows in splits]
    assert sum(map(len, texts)) == len(set().union(*texts))


def test_entailment_is_class_0_in_all_inference(baseline_data: Path) -> None:
    inference = [TASKS[name] for name in ("mnli", "rte", "wnli", "qnli", "snli", "sick")]
    assert {task.labels[0] for task in inference} == {"entailment"}
    row = baseline_task("rte").rows(baseline_data, "test")[0]
    assert row.gold == 0
    assert len(row.texts) == 2


def test_a_pair_without_gold_label_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "multinli").mkdir()
    rows = [_PAIR | {"gold_label": label} for label in ("-", "neutral")]
    (tmp_path / "multinli" / "multinli_1.0_dev_matched.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert baseline_task("mnli").rows(tmp_path, "test") == [Row(("a", "b"), 1)]


def test_a_missing_file_and_an_unknown_task_are_told(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"found no .*stsb-en-dev\.csv"):
        baseline_task("sts-b").rows(tmp_path, "test")
    with pytest.raises(ValueError, match="did you mean mrpc"):
        baseline_task("mprc")


@pytest.mark.data
def test_all_tasks_are_at_hand_in_their_official_numbers(data_folder: Path) -> None:
    numbers = {"sst-1": 1101, "sst-2": 872, "imdb": 5000, "books": 200, "cola": 1042, "mrpc": 1725, "rte": 277}
    for name, number in numbers.items():
        assert len(baseline_task(name).rows(data_folder, "test")) == number
    for name, task in TASKS.items():
        if name.startswith("qnli"):
            continue
        golds = {row.gold for row in task.rows(data_folder, "test")}
        assert golds == set(range(len(task.labels))) if task.labels else max(golds) <= 1


def _squad(context: str, question: str, *answers: str) -> Example:
    return Example("squad", "1", context, question, answers)


def test_the_sentence_with_the_answer_is_right_and_stands_first() -> None:
    context = "The kettle broke on Monday. It was cold. Bo Berg mended the kettle. The kettle works."
    row = _ranking(_squad(context, "Who mended the kettle?", "Bo Berg"))
    assert row is not None
    question, right, *wrong = row.texts
    assert (question, right) == ("Who mended the kettle?", "Bo Berg mended the kettle.")
    assert wrong == [
        "The kettle broke on Monday.",
        "The kettle works.",
    ]  # the cold one shares no word with the question


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("Bo mended the kettle. Bo likes the kettle.", "Bo"),  # two sentences have it
        ("Bobo mended the kettle. The kettle works.", "Bo"),  # none has it as a word
        ("Bo mended the kettle. It works.", "Bo"),  # no other candidate
    ],
)
def test_a_question_without_exactly_one_right_sentence_or_others_is_left_out(context: str, answer: str) -> None:
    assert _ranking(_squad(context, "Who mended the kettle?", answer)) is None


def test_scores_by_hand() -> None:
    gold, predicted = [1, 1, 0, 0, 1], [1, 0, 0, 1, 1]
    found = score(("accuracy", "f1", "matthews"), gold, predicted)
    # 2 true positives, 1 false positive, 1 false negative, 1 true negative
    assert found["accuracy"] == pytest.approx(60)
    assert found["f1"] == pytest.approx(100 * 2 / 3)
    assert found["matthews"] == pytest.approx(100 * (2 * 1 - 1 * 1) / (3 * 3 * 2 * 2) ** 0.5)
    found = score(("pearson", "spearman"), [0.0, 0.5, 1.0], [0.0, 0.1, 1.0])
    assert found["spearman"] == pytest.approx(100)
    assert found["pearson"] == pytest.approx(100 * 0.907841, abs=1e-3)
    assert score(("pearson",), [0.0, 1.0], [0.5, 0.5]) == {"pearson": 0.0}
    assert score_rankings([[0.9, 0.1, 0.95], [0.6, 0.5], [0.4, 0.4]]) == pytest.approx(
        {"paired": 200 / 3, "top1": 100 / 3}
    )
    with pytest.raises(ValueError, match="2 predictions for 1"):
        score(("accuracy",), [1], [1, 0])
    with pytest.raises(ValueError, match="nothing to score"):
        score_rankings([])


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_predictions_that_are_not_finite_have_no_score(wrong: float) -> None:
    attempts: tuple[Callable[[], object], ...] = (
        lambda: score(("pearson",), [0.0, 1.0], [0.5, wrong]),
        lambda: score_rankings([[0.5, 0.1], [0.5, wrong]]),
        lambda: score_task(baseline_task("cola"), [0, 1], [[[0.5, 0.5]], [[wrong, 0.5]]]),
    )
    for refused in attempts:
        with pytest.raises(ValueError, match=f"a prediction is {wrong}"):
            refused()


def test_batches_hold_every_row_once_in_lengths_that_are_near() -> None:
    lengths = [random.Random(1).randint(1, 300) for _ in range(1000)]
    batches = mini_batches(lengths, 16, random.Random(2))
    assert sorted(i for batch in batches for i in batch) == list(range(1000))
    spread = sum(max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in batches) / len(batches)
    assert spread < 40  # 265 at random
    assert batches != mini_batches(lengths, 16, random.Random(3))
    drawn = endless_batches([5] * 10, 4, random.Random(4))
    for _ in range(2):
        assert sorted(i for _ in range(3) for i in next(drawn)) == list(range(10))
    with pytest.raises(ValueError, match="no rows"):
        next(endless_batches([], 4, random.Random(4)))
    assert sorted_batches([3, 1, 2], 2) == [[1, 2], [0]]


def test_a_draw_keeps_the_order_and_what_belongs_together() -> None:
    assert draw([1, 2, 3], 0, 1) == draw([1, 2, 3], 3, 1) == [1, 2, 3]
    drawn = draw(range(100), 10, 1, together=2)
    assert len(drawn) == 10
    assert drawn == sorted(drawn)
    assert all(first % 2 == 0 and second == first + 1 for first, second in zip(drawn[::2], drawn[1::2], strict=True))


def test_recipes_of_the_repository_are_read(repository: Path) -> None:
    recipes = {
        path.stem: load_recipe(path)
        for path in (repository / "baselines/recipes").glob("*.yaml")
        if path.stem != "comparison"
    }
    assert {name: recipe.name for name, recipe in recipes.items()} == {name: name for name in recipes}
    assert {recipe.kind for recipe in recipes.values()} == {"shared-memory", "mt-dnn"}


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("kind: shared-memory\nname: x\ntasks: [sst-2]\nsteps: 1\nspeed: 3", {}, "speed: Extra inputs"),
        ("kind: shared-memory\nname: x\ntasks: [sst-2]", {}, "steps: Field required"),
        ("kind: shared-memory\nname: x\ntasks: [rte]\nsteps: 1", {}, "rte: shared-memory LSTMs classify single texts"),
        ("kind: mt-dnn\nname: x\ntasks: [rte, rte]", {}, "named twice"),
        ("kind: mt-dnn\nname: x\ntasks: [rtte]", {}, "did you mean rte"),
        ("kind: mt-dnn\nname: x\ntasks: [rte]", {"adaptation.tasks": "[sst-2]"}, "adapted to on pairs"),
        ("kind: mt-dnn\nname: x\ntasks: [rte]", {"rate": "[1"}, "not YAML"),
        ("kind: mt-dnn\nname: x\ntasks: [rte]", {"name.x": "1"}, "name is not a group"),
        ("kind: bert\nname: x\ntasks: [rte]", {}, "kind: .*'bert'"),
        ("- 1", {}, "expected a mapping"),
    ],
)
def test_a_wrong_recipe_is_told(tmp_path: Path, text: str, overrides: dict[str, str], message: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_recipe(path, overrides)
