"""Temperatures are found again where probabilities were spoilt by known ones, and never change an answer."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from mqan_core.answer.calibration import Calibration, QuestionKind, Temperatures
from mqan_core.answer.finish import HOLDS, several
from mqan_core.answer.types import Answer, ChoiceProbability
from mqan_core.example import Choice, Example
from mqan_evaluation.answerers import TorchAnswerer
from mqan_evaluation.fit_temperatures import (
    LEAST,
    Observed,
    calibration_section,
    calibration_sources,
    fit_temperatures,
    trust_rows,
)
from mqan_evaluation.judging import expected_calibration_error, fit_logistic, fold_of
from mqan_evaluation.sections import Measuring


def chosen(labels: list[str], masses: np.ndarray, right: int, *, multiple: bool = False) -> Observed:
    *of_choices, refusal = (float(mass) for mass in masses / masses.sum())
    choices = tuple(map(Choice, labels))
    answers = (labels[right],) if right < len(labels) else ()
    example = Example("t", "1", f"text {masses[0]:.6f}", "q", answers, choices=choices, multiple=multiple)
    found = tuple(
        ChoiceProbability(label, mass, mass / sum(of_choices), mass / (mass + refusal))
        for label, mass in zip(labels, of_choices, strict=True)
    )
    best = int(np.argmax(of_choices))
    answered = of_choices[best] >= refusal
    answer = Answer(labels[best] if answered else "", 0.0, (), (), False, answered, refusal, found)
    return Observed(example, several(replace(answer, is_multiple=True)) if multiple else answer)


def drawn(number: int, labels: list[str], temperature: float, seed: int = 0) -> list[Observed]:
    rng = np.random.default_rng(seed)
    observed = []
    for _ in range(number):
        true = np.exp(rng.normal(0, 2, len(labels) + 1))
        true /= true.sum()
        observed.append(chosen(labels, true**temperature, int(rng.choice(len(true), p=true))))
    return observed


def free(number: int, scale: float, offset: float) -> list[Observed]:
    rng = np.random.default_rng(3)
    observed = []
    for i in range(number):
        x = rng.normal(0, 2)
        is_right = bool(rng.random() < 1 / (1 + math.exp(-(scale * x + offset))))
        example = Example("t", "1", f"text {i}", "q", ("a",))
        answer = Answer("a" if is_right else "b", 1 / (1 + math.exp(-x)), (), (), False, refusal=0.01)
        observed.append(Observed(example, answer))
    return observed


def test_buckets_and_kinds_have_temperatures_of_their_own() -> None:
    observed = [
        *drawn(2000, ["yes", "no"], 3.0),
        *drawn(2000, ["a", "b"], 0.5, seed=1),
        *drawn(2000, list("abcdefgh"), 2.0, seed=2),
        *drawn(LEAST - 1, [f"label {i}" for i in range(12)], 1.0, seed=4),
    ]
    found = fit_temperatures(observed)
    of = {name: 1 / calibration.scale for name, calibration in found.maps.items()}
    assert of["yes-no"] == pytest.approx(3.0, rel=0.15)
    assert of["choices/2"] == pytest.approx(0.5, rel=0.15)
    assert of["choices/6-10"] == pytest.approx(2.0, rel=0.15)
    assert "choices/11-30" not in of  # too few: that of all choices counts
    masses, refusal = found.masses(QuestionKind.CHOICES, [0.5] * 11 + [0.9], 0.1)
    assert masses[-1] / masses[0] == pytest.approx((0.9 / 0.5) ** (1 / of["choices"]))
    assert sum(masses) + refusal == pytest.approx(1)


def test_labels_that_a_question_lists_leave_the_maps_of_choices_alone() -> None:
    given = drawn(500, ["a", "b", "c"], 0.5)
    listed = [
        replace(one, example=replace(one.example, choices=())) for one in drawn(500, ["a", "b", "c"], 3.0, seed=1)
    ]
    assert {one.kind for one in listed} == {QuestionKind.CHOICES}
    assert fit_temperatures([*given, *listed]) == fit_temperatures(given)


def of_several(number: int, scale: float, offset: float) -> list[Observed]:
    rng = np.random.default_rng(5)
    observed = []
    for _ in range(number):
        odds = rng.normal(0, 2, 3)
        right = [str(i) for i in range(3) if rng.random() < 1 / (1 + math.exp(-(scale * odds[i] + offset)))]
        one = chosen(["0", "1", "2"], np.array([*np.exp(odds), 1.0]), 3, multiple=True)
        observed.append(replace(one, example=replace(one.example, answers=tuple(right))))
    return observed


def test_several_labels_are_fitted_each_beside_the_refusal() -> None:
    maps = fit_temperatures(of_several(1500, 0.5, -1.0)).maps
    assert set(maps) == {"several"}
    assert maps["several"].scale == pytest.approx(0.5, rel=0.15)
    assert maps["several"].offset == pytest.approx(-1.0, rel=0.15)


def test_several_labels_follow_people_where_they_asked_enough() -> None:
    others = of_several(1500, 0.5, -1.0)
    people = [replace(o, example=replace(o.example, task="everyday")) for o in of_several(1500, 1.5, 1.0)]
    assert fit_temperatures([*others, *people]).maps["several"] == fit_temperatures(people).maps["several"]
    few = [*others, *people[: LEAST - 1]]
    assert fit_temperatures(few).maps["several"].offset == pytest.approx(-1.0, rel=0.2)


def test_the_map_decides_which_of_several_labels_hold() -> None:
    """Fitted on one half, it is right more often on the other; what is judged is what an answer says."""
    observed = of_several(1200, 1.0, -1.5)
    fitted, others = fit_temperatures(observed[:600]), observed[600:]
    right = [one.is_right(fitted) for one in others]
    assert sum(right) > 1.3 * sum(one.is_right(Temperatures()) for one in others)
    for one, is_right in zip(others, right, strict=True):
        shares = [fitted.maps["several"](choice.against_refusal) for choice in one.answer.choices]
        holding = {choice.label for choice, share in zip(one.answer.choices, shares, strict=True) if share > HOLDS}
        assert is_right == (holding == set(one.example.answers))
        of_all = math.prod(max(share, 1 - share) for share in shares)
        assert one.probability(fitted) == pytest.approx(of_all)


def test_free_answers_are_scaled_and_moved() -> None:
    found = fit_temperatures(free(4000, 0.5, -1.0)).maps["free"]
    assert found.scale == pytest.approx(0.5, rel=0.15)
    assert found.offset == pytest.approx(-1.0, rel=0.15)


def test_refusals_are_fitted_on_all_free_questions() -> None:
    rng = np.random.default_rng(6)
    observed = []
    for i in range(2000):
        x = rng.normal(0, 3)
        is_there = rng.random() > 1 / (1 + math.exp(-0.5 * x))
        refusal = 1 / (1 + math.exp(-x))
        example = Example("t", "1", f"text {i}", "q", ("a",) if is_there else ())
        answer = Answer("a", 0.5, (), (), False, answered=refusal <= 0.5, refusal=refusal)
        observed.append(Observed(example, answer))
    assert fit_temperatures(observed).maps["refusal"].scale == pytest.approx(0.5, rel=0.15)


def test_no_map_changes_an_answer() -> None:
    temperatures = Temperatures({"choices/3-5": Calibration(0.2, 0.0), "refusal": Calibration(0.5, 1.0)})
    for one in drawn(200, ["a", "b", "c"], 1.0):
        given = [choice.probability for choice in one.answer.choices]
        masses, refusal = temperatures.masses(QuestionKind.CHOICES, given, one.answer.refusal)
        assert np.argsort(masses).tolist() == np.argsort(given).tolist()
        assert (refusal > max(masses)) == (not one.answer.answered)
    choice = ChoiceProbability("a", 0.6, 0.75, 0.75), ChoiceProbability("b", 0.2, 0.25, 0.5)
    three = (*choice, ChoiceProbability("c", 0.1, 0.1, 0.5))
    plain = Answer("a", 0.6, (), (), False, refusal=0.1, choices=three, may_be_none=True)
    answer = temperatures.calibrate(plain)
    assert answer.text == "a"
    assert answer.probability == max(c.probability for c in answer.choices) < 0.6
    named = temperatures.calibrate(replace(plain, may_be_none=False))
    assert named.probability == pytest.approx(max(c.among_choices for c in named.choices))
    assert sum(c.probability for c in answer.choices) + answer.refusal == pytest.approx(1)
    assert sum(c.among_choices for c in answer.choices) == pytest.approx(1)
    refused = temperatures.calibrate(Answer("", 0.9, (), (), False, answered=False, refusal=0.9))
    assert refused.probability == refused.refusal == Calibration(0.5, 1.0)(0.9)
    mapped = Temperatures({"refusal": Calibration(0.5, 1.0), "free": Calibration(0.5, 1.0)})
    cut = mapped.calibrate(Answer("a b", 0.9, (), (), True, refusal=0.1))
    assert (cut.probability, cut.refusal) == (
        0.9,
        Calibration(0.5, 1.0)(0.1),
    )


class DrawnSource:
    name = "drawn"

    def __len__(self) -> int:
        return 400

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        labels = ("joy", "fear", "anger")[: 2 + index % 2]
        choices = tuple(map(Choice, labels)) if index % 4 else ()
        answer = labels[int(rng.integers(len(labels)))]
        return Example("drawn", str(index), f"the dog no {index}", "what is it?", (answer,), choices=choices)


def test_the_section_says_what_was_fitted_and_fits_a_manifest(tmp_path: Path, tiny_answerer: TorchAnswerer) -> None:
    measuring = Measuring(tiny_answerer, tmp_path)
    temperatures, section = calibration_section(measuring, sources=[DrawnSource()] * 5)
    entry = json.loads(json.dumps({name: asdict(found) for name, found in temperatures.maps.items()}))
    assert {name: Calibration(**values) for name, values in entry.items()} == temperatures.maps
    rows = {row["kind"]: row for row in section.rows}
    assert rows["all"]["questions"] == len(measuring.answers) == 300
    assert float(rows["all"]["ECE after"] or 0) < float(rows["all"]["ECE before"] or 0)
    with pytest.raises(ValueError, match="too few"):
        calibration_section(Measuring(tiny_answerer, tmp_path, limit=3), sources=[DrawnSource()])


def test_how_sure_answers_fare() -> None:
    answers = [
        {"section": "cases", "is_read": True, "probability": p, "right": right}
        for p, right in ((0.95, True), (0.95, False), (0.5, True), (0.5, False))
    ]
    answers.append({"section": "cases", "is_read": False, "right": False})
    (row,) = trust_rows(answers, ["squad", "cases"])
    assert (row["answers"], row["at 0.9 or more"], row["accuracy of these"]) == (4, 2, 50.0)
    assert row["ECE"] == pytest.approx(0.225)


def test_a_dataset_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    """A model that was trained on many can be calibrated with the texts that come with the project."""
    (tmp_path / "clickbait").mkdir()
    found = [source.name for source in calibration_sources(tmp_path, ["rows", "everyday", "sst", "clickbait"])]
    assert [name for name in found if not name.startswith("made_")] == ["clickbait", "everyday"]


def test_the_error_is_the_mean_distance_of_probability_and_right_answers() -> None:
    probabilities, right = np.array([0.91, 0.93, 0.32, 0.30]), np.array([1.0, 0.0, 0.0, 0.0])
    assert expected_calibration_error(probabilities, right) == pytest.approx(0.5 * (0.92 - 0.5) + 0.5 * 0.31)
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0


def test_probabilities_that_say_the_opposite_are_refused() -> None:
    rng = np.random.default_rng(1)
    log_odds = rng.normal(0, 2, 6000)
    right = (1 / (1 + np.exp(log_odds)) > rng.random(6000)).astype(np.float64)
    with pytest.raises(ValueError, match="do not tell right answers from wrong ones"):
        fit_logistic(log_odds, right)


def test_texts_fall_into_two_halves() -> None:
    folds = [fold_of(f"Text {i}.") for i in range(200)]
    assert set(folds) == {0, 1}
    assert 60 < sum(folds) < 140
    assert folds == [fold_of(f"Text {i}.") for i in range(200)]
