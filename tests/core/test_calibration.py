"""Probabilities are mapped without changing the order of answers, and a bundle's map is checked."""

import json
import shutil
from pathlib import Path

import pytest

from mqan_core.answer import Answer, AnswerToken, Masses, Source
from mqan_core.bundle import MANIFEST, open_bundle
from mqan_core.calibration import Calibration, calibrate
from mqan_core.errors import BundleError


def make_answer(probability: float, *sources: Source) -> Answer:
    tokens = tuple(AnswerToken("a", " a ", 0.5, source, Masses(0.2, 0.3, 0.5), None) for source in sources)
    return Answer("a", probability, tokens, (), False)


def test_the_map_is_logistic_in_the_log_odds() -> None:
    assert Calibration(1, 0)(0.3) == pytest.approx(0.3)
    assert Calibration(2, 0)(0.8) == pytest.approx(16 / 17)  # odds of 4 become 16
    assert Calibration(1, 0)(0) == pytest.approx(1e-6)
    assert Calibration(1, 0)(1) == pytest.approx(1 - 1e-6)


def test_order_stays() -> None:
    mapped = [Calibration(0.4, -0.7)(p / 100) for p in range(101)]
    assert mapped == sorted(mapped)
    assert all(0 < p < 1 for p in mapped)


def test_the_first_word_says_which_map_holds() -> None:
    maps = {Source.QUESTION: Calibration(2, 0)}
    assert calibrate(make_answer(0.8, Source.QUESTION, Source.CONTEXT), maps).probability == pytest.approx(16 / 17)
    assert calibrate(make_answer(0.8, Source.CONTEXT, Source.QUESTION), maps).probability == 0.8
    assert calibrate(make_answer(0.8), maps).probability == 0.8
    assert calibrate(make_answer(0.8, Source.QUESTION), {}).probability == 0.8


@pytest.mark.parametrize(
    "maps",
    [
        {"elsewhere": {"scale": 1, "offset": 0}},
        {"context": {"scale": 0, "offset": 0}},
        {"context": {"scale": 1, "offset": "x"}},
        {"context": {"scale": 1, "offset": float("inf")}},
        {"context": {"scale": True, "offset": 0}},
        {"context": {"scale": 1}},
        {"context": 1},
        [],
    ],
)
def test_a_malformed_map_is_refused(tiny_bundle: Path, tmp_path: Path, maps: object) -> None:
    folder = Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))
    document = json.loads((folder / MANIFEST).read_text())
    document["calibration"] = maps
    (folder / MANIFEST).write_text(json.dumps(document))
    with pytest.raises(BundleError, match="malformed"):
        open_bundle(folder)
