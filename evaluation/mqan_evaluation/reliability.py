"""Fit how far an answer's probability can be trusted, and say how well it fits: ``mqan calibrate``."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mqan_core.answer import Source
from mqan_core.calibration import Calibration, logit
from mqan_evaluation.card import record
from mqan_evaluation.evaluate import Result
from mqan_training.data.metrics import normalized_exact_match

NUM_BINS = 15  # of the calibration error (Guo et al. 2017)
_LEAST_ANSWERS = 50  # to fit a map of two numbers
_STEPS = 50  # of Newton's method; it settles within ten

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reliability:
    """Expected calibration error of a task's answers, each by maps that were not fitted on it, from 0 to 1."""

    task: str
    num_answers: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class _Judged:
    probability: float
    source: Source
    is_right: bool
    fold: int


def fit(results: Sequence[Result]) -> tuple[dict[str, Calibration], list[Reliability]]:
    """Fit a map for each source of an answer's first word.

    Every task weighs the same. The errors are measured with two sets of maps, each fitted on the answers to half of
    the contexts and applied to the rest, so that all answers count and none was seen, nor another about the same
    context; the maps that are returned are fitted on all.

    Args:
        results: tasks whose answers are right or wrong, with the probabilities that are to be mapped.

    Raises:
        ValueError: there are too few answers about one half of a task's contexts.
    """
    judged = {result.task: [_judge(r) for r in result.predictions if r["answer"]] for result in results}
    for task, answers in judged.items():
        fewest = min(sum(answer.fold == fold for answer in answers) for fold in (0, 1))
        if fewest < _LEAST_ANSWERS:
            raise ValueError(
                f"{task}: {len(answers)} answers are too few to fit probabilities to: {fewest} are about one half of "
                f"the contexts, {_LEAST_ANSWERS} are needed about each"
            )
    folds = [
        _fit_sources({task: [a for a in answers if a.fold != fold] for task, answers in judged.items()})
        for fold in (0, 1)
    ]
    reliability = []
    for task, answers in judged.items():
        before = np.array([a.probability for a in answers])
        after = np.array([_apply(folds[a.fold], a) for a in answers])
        right = np.array([a.is_right for a in answers], np.float64)
        errors = expected_calibration_error(before, right), expected_calibration_error(after, right)
        reliability.append(Reliability(task, len(answers), *errors))
    return _fit_sources(judged), reliability


def expected_calibration_error(probabilities: FloatArray, right: FloatArray) -> float:
    """Return by how much probability and share of right answers differ on average over ``NUM_BINS`` bins (0 to 1).

    Guo et al. 2017, equation 3: bins of equal width, weighted by their answers.
    """
    bins = np.minimum((probabilities * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    error = 0.0
    for number in np.unique(bins):
        chosen = bins == number
        error += float(chosen.mean()) * abs(float(probabilities[chosen].mean()) - float(right[chosen].mean()))
    return error


def record_calibration(folder: Path, maps: Mapping[str, Calibration], reliability: Sequence[Reliability]) -> None:
    """Write the maps into a bundle's manifest, and their errors between the marks in its model card.

    Raises:
        BundleError: the bundle is damaged.
        ValueError: the card has no ``<!-- calibration -->`` marks.
    """
    record(folder, "calibration", calibration_table(reliability), calibration=dict(maps))


def calibration_table(reliability: Sequence[Reliability]) -> str:
    """Return the errors as a Markdown table."""
    lines = ["| task | answers | error before | after |", "|---|---:|---:|---:|"]
    lines += [f"| {r.task} | {r.num_answers:,} | {r.before:.3f} | {r.after:.3f} |" for r in reliability]
    return "\n".join(lines)


def _judge(prediction: Mapping[str, Any]) -> _Judged:
    is_right = any(normalized_exact_match(prediction["answer"], gold) for gold in prediction["gold"])
    return _Judged(
        prediction["probability"], Source(prediction["sources"][0]), is_right, fold_of(prediction["context"])
    )


def fold_of(context: str) -> int:
    """Return to which half of the contexts one belongs, 0 or 1: always the same one, in every task."""
    return zlib.crc32(context.encode()) % 2


def _apply(maps: Mapping[str, Calibration], answer: _Judged) -> float:
    return maps[answer.source](answer.probability) if answer.source in maps else answer.probability


def _fit_sources(judged: Mapping[str, Sequence[_Judged]]) -> dict[str, Calibration]:
    weighted = [(answer, 1 / len(answers)) for answers in judged.values() for answer in answers]
    maps = {}
    for source in Source:
        chosen = [(answer, weight) for answer, weight in weighted if answer.source is source]
        num_right = sum(answer.is_right for answer, _ in chosen)
        if len(chosen) >= _LEAST_ANSWERS and 0 < num_right < len(chosen):
            maps[source.value] = fit_logistic(
                np.array([logit(answer.probability) for answer, _ in chosen]),
                np.array([answer.is_right for answer, _ in chosen], np.float64),
                np.array([weight for _, weight in chosen]) * len(weighted),
            )
    return maps


def fit_logistic(x: FloatArray, right: FloatArray, weights: FloatArray) -> Calibration:
    """Minimise the log loss by Newton's method, with a little weight on the map that changes nothing."""
    identity = np.array([1.0, 0.0])
    parameters = np.zeros(2)  # from here the method does not overshoot
    features = np.stack([x, np.ones_like(x)])
    for _ in range(_STEPS):
        p = 0.5 + 0.5 * np.tanh(parameters @ features / 2)  # the logistic function, without overflow
        gradient = features @ (weights * (right - p)) - (parameters - identity)
        curvature = (features * (weights * p * (1 - p))) @ features.T + np.eye(2)
        parameters = parameters + np.linalg.solve(curvature, gradient)
    scale, offset = map(float, parameters)
    if not (math.isfinite(scale) and math.isfinite(offset) and scale > 0):
        raise ValueError(f"probabilities do not tell right answers from wrong ones: fitted scale {scale:.3g}")
    return Calibration(scale, offset)
