"""How far probabilities can be trusted, and the logistic map that makes them trustworthy."""

import numpy as np
import pytest

from mqan_evaluation.judging import expected_calibration_error, fit_logistic, fold_of

rng = np.random.default_rng(1)
X = rng.normal(0, 2, 6000)
UNIFORM = rng.random(6000)


def test_the_error_is_the_mean_distance_of_probability_and_right_answers() -> None:
    probabilities, right = np.array([0.91, 0.93, 0.32, 0.30]), np.array([1.0, 0.0, 0.0, 0.0])
    assert expected_calibration_error(probabilities, right) == pytest.approx(0.5 * (0.92 - 0.5) + 0.5 * 0.31)
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0


def test_probabilities_that_say_the_opposite_are_refused() -> None:
    right = (1 / (1 + np.exp(X)) > UNIFORM).astype(np.float64)
    with pytest.raises(ValueError, match="do not tell right answers from wrong ones"):
        fit_logistic(X, right)


def test_texts_fall_into_two_halves() -> None:
    folds = [fold_of(f"Text {i}.") for i in range(200)]
    assert set(folds) == {0, 1}
    assert 60 < sum(folds) < 140
    assert folds == [fold_of(f"Text {i}.") for i in range(200)]
