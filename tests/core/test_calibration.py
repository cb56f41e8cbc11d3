"""Probabilities are mapped without changing the order of answers."""

import pytest

from mqan_core.answer.calibration import Calibration


def test_the_map_is_logistic_in_the_log_odds() -> None:
    assert Calibration(1, 0)(0.3) == pytest.approx(0.3)
    assert Calibration(2, 0)(0.8) == pytest.approx(16 / 17)  # odds of 4 become 16
    assert Calibration(1, 0)(0) == pytest.approx(1e-6)
    assert Calibration(1, 0)(1) == pytest.approx(1 - 1e-6)


def test_order_stays() -> None:
    mapped = [Calibration(0.4, -0.7)(p / 100) for p in range(101)]
    assert mapped == sorted(mapped)
    assert all(0 < p < 1 for p in mapped)
