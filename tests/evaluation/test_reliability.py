"""Probabilities are fitted to how often answers are right, and the fit is judged on answers it has not seen."""

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqan_core.bundle import MODEL_CARD, describe_files, open_bundle, write_manifest
from mqan_core.calibration import Calibration
from mqan_evaluation.evaluate import Result
from mqan_evaluation.reliability import expected_calibration_error, fit, fold_of, record_calibration
from mqan_runtime.engine import Engine


def make_result(task: str, source: str, number: int, *, shift: float, seed: int = 1, fold: int | None = None) -> Result:
    """Make answers that are right as often as their probability says, shifted by so many logits."""
    contexts = [text for text in map("Text {}.".format, range(20)) if fold is None or fold_of(text) == fold]
    rng = random.Random(seed)
    records: list[dict[str, Any]] = []
    for i in range(number):
        x = rng.gauss(0, 2)
        is_right = rng.random() < 1 / (1 + np.exp(-(x + shift)))
        records.append(
            {
                "context": contexts[i % len(contexts)],
                "answer": "The harbour.",
                "gold": ["harbour" if is_right else "lamp", "storm"],
                "probability": float(1 / (1 + np.exp(-x))),
                "sources": [source, "vocabulary"],
            }
        )
    return Result(task, "", {"em": 0.0}, {}, number, [], 1.0, records)


def test_the_error_is_the_mean_distance_of_probability_and_right_answers() -> None:
    probabilities, right = np.array([0.91, 0.93, 0.32, 0.30]), np.array([1.0, 0.0, 0.0, 0.0])
    assert expected_calibration_error(probabilities, right) == pytest.approx(0.5 * (0.92 - 0.5) + 0.5 * 0.31)
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0


def test_a_shift_is_found_for_each_source() -> None:
    results = [
        make_result("squad", "context", 6000, shift=-1.5),
        make_result("sst", "question", 3000, shift=1.0, seed=2),
    ]
    maps, reliability = fit(results)
    assert set(maps) == {"context", "question"}
    assert maps["context"].offset == pytest.approx(-1.5, abs=0.15)
    assert maps["question"].offset == pytest.approx(1.0, abs=0.2)
    assert maps["context"].scale == pytest.approx(1, abs=0.1)
    for found, number in zip(reliability, (6000, 3000), strict=True):
        assert found.num_answers == number
        assert found.before > 0.08
        assert found.after < 0.04


def test_an_answer_is_judged_by_maps_that_did_not_see_its_context() -> None:
    # A fit on one half of the contexts is wrong about the other by 6 logits; a fit on both would be by 3.
    mixed = make_result("squad", "context", 2000, shift=-3.0, seed=7, fold=0)
    mixed.predictions += make_result("squad", "context", 2000, shift=3.0, seed=7, fold=1).predictions
    _, [found] = fit([mixed])
    assert found.num_answers == 4000
    assert found.after > found.before + 0.1


def test_too_few_answers_are_refused() -> None:
    with pytest.raises(ValueError, match="sst: 30 answers are too few"):
        fit([make_result("sst", "question", 30, shift=0)])
    with pytest.raises(ValueError, match="sst: 400 answers are too few .*: 0 are about one half of the contexts"):
        fit([make_result("sst", "question", 400, shift=0, fold=1)])


def test_a_source_of_few_answers_gets_no_map() -> None:
    result = make_result("sst", "question", 400, shift=0)
    result.predictions += make_result("sst", "context", 20, shift=3).predictions
    assert set(fit([result])[0]) == {"question"}


def test_probabilities_that_say_the_opposite_are_refused() -> None:
    result = make_result("sst", "question", 400, shift=0)
    for record in result.predictions:
        record["probability"] = 1 - record["probability"]
    with pytest.raises(ValueError, match="do not tell right answers from wrong ones"):
        fit([result])


def test_the_map_is_written_into_the_bundle_and_its_answers(tiny_bundle: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))
    with pytest.raises(ValueError, match="<!-- calibration -->"):
        record_calibration(folder, {}, [])
    (folder / MODEL_CARD).write_text("# tiny\n<!-- calibration -->\n<!-- /calibration -->\n")
    manifest = open_bundle(tiny_bundle).manifest
    write_manifest(folder, replace(manifest, files=describe_files(folder)))
    plain = Engine.open(folder)
    answer = plain.answer([plain.read("Ada wrote notes.", "Who wrote?")], [5])[0]
    maps = {source: Calibration(0.5, -1.0) for source in ("context", "question", "vocabulary")}
    _, reliability = fit([make_result("squad", "context", 1000, shift=-1)])
    record_calibration(folder, maps, reliability)
    assert open_bundle(folder).manifest.calibration == maps
    assert "| squad | 1,000 |" in (folder / MODEL_CARD).read_text()
    engine = Engine.open(folder)
    mapped = engine.answer([engine.read("Ada wrote notes.", "Who wrote?")], [5])[0]
    assert mapped.probability == pytest.approx(maps["context"](answer.probability))
    assert mapped.tokens == answer.tokens
