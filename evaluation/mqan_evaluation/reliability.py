"""The reliability of probabilities, and the map that improves it."""

import math
import zlib

import numpy as np
import numpy.typing as npt

from mqan_core.answer.calibration import Calibration

NUM_BINS = 15  # of the calibration error (Guo et al. 2017)
_STEPS = 50  # of Newton's method; it settles within ten

FloatArray = npt.NDArray[np.float64]


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


def fold_of(context: str) -> int:
    """Return to which half of the contexts one belongs, 0 or 1: always the same one, in every task."""
    return zlib.crc32(context.encode()) % 2


def fit_logistic(x: FloatArray, right: FloatArray, weights: FloatArray | float = 1.0) -> Calibration:
    """Minimise the log loss by Newton's method, with a little weight on the map that changes nothing.

    ``x`` are log odds, ``right`` is 1 where it came true, and ``weights`` say how often each counts, [N].
    """
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
