"""The model card of the shipped bundle tells what its model does."""

import re
from pathlib import Path

import pytest

from mqan_core.bundle import MODEL_CARD, open_bundle
from mqan_evaluation.evaluate import FIRST, answer_with_engine, evaluate_task
from mqan_runtime.engine import Engine
from mqan_training.data.readers.registry import task_named

BUNDLE = Path("serving/bundles/default")
ROW = re.compile(r"^\| (?P<task>\w+)[^|]*\|  \| [\d,]+ \| (?P<scores>[^|]+) \| (?P<first>[\d.]+) \|", re.MULTILINE)
ROWS = {row["task"]: row for row in ROW.finditer((BUNDLE / MODEL_CARD).read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.open(BUNDLE, provider="cpu")


def test_the_card_has_the_scores_of_the_manifest() -> None:
    manifest = open_bundle(BUNDLE).manifest
    own = {label.removesuffix(" (not trained on)"): scores for label, scores in manifest.scores.items()}
    assert {"squad", "sst", "woz", "wikisql"} <= set(ROWS)
    for task, row in ROWS.items():
        assert set(row["scores"].split(", ")) == {f"{metric} {value:.1f}" for metric, value in own[task].items()}


@pytest.mark.data
@pytest.mark.parametrize("task", sorted(ROWS))
def test_a_slice_scores_as_the_card_says(task: str, engine: Engine, data_folder: Path) -> None:
    """Products round otherwise on another kind of CPU, which may turn an answer or two."""
    answer = answer_with_engine(engine)
    result = evaluate_task(answer, engine.read, task_named(task), data_folder, limit=FIRST, threads=2)
    assert result.own_score == pytest.approx(float(ROWS[task]["first"]), abs=2.0)
