"""The scores of GLUE, from -100 or 0 to 100, by scikit-learn and scipy."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from mqan_baselines.tasks import BaselineTask

FloatArray = npt.NDArray[np.float64]


def _correlation(measure: Callable[..., tuple[float, float]], gold: FloatArray, predicted: FloatArray) -> float:
    if np.ptp(predicted) == 0 or np.ptp(gold) == 0:
        return 0.0
    return float(measure(gold, predicted)[0])


SCORES: Final[dict[str, Callable[[FloatArray, FloatArray], float]]] = {
    "accuracy": lambda gold, predicted: float(accuracy_score(gold, predicted)),
    "f1": lambda gold, predicted: float(f1_score(gold, predicted, zero_division=0)),  # of class 1
    "matthews": lambda gold, predicted: float(matthews_corrcoef(gold, predicted)),
    "pearson": lambda gold, predicted: _correlation(pearsonr, gold, predicted),
    "spearman": lambda gold, predicted: _correlation(spearmanr, gold, predicted),
}
"""By name: the first three compare classes, the others numbers."""


def refuse_not_finite(predictions: object) -> None:
    """Check that predictions are finite (ValueError): the place of the largest of others says nothing."""
    if isinstance(predictions, float):
        if not math.isfinite(predictions):
            raise ValueError(f"a prediction is {predictions}: the network has diverged; lower the rate")
    elif isinstance(predictions, Sequence):
        for one in predictions:
            refuse_not_finite(one)


def score(names: Sequence[str], gold: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Return scores of predictions, times 100, by their names in ``SCORES``."""
    refuse_not_finite(predicted)
    if len(gold) != len(predicted):
        raise ValueError(f"there are {len(predicted)} predictions for {len(gold)} examples")
    if not gold:
        raise ValueError("there is nothing to score")
    both = np.asarray(gold, np.float64), np.asarray(predicted, np.float64)
    return {name: 100 * SCORES[name](*both) for name in names}


def score_task(
    task: BaselineTask, gold: Sequence[float], outputs: Sequence[Sequence[Sequence[float]]]
) -> dict[str, float]:
    """Return the scores of a task, from 0 (correlations: -100) to 100, the one that counts first.

    ``outputs`` are, of each row, of each of its sequences (of a ranking its candidates, the right one first): the
    probabilities of the classes, or one number of a similarity or a relevance.
    """
    refuse_not_finite(outputs)
    if task.form == "ranking":
        return score_rankings([[found for (found,) in of_row] for of_row in outputs])
    found = [only for (only,) in outputs]
    if task.form == "similarity":
        return score(task.scores, gold, [number for (number,) in found])
    predicted = [float(max(range(len(of_class)), key=of_class.__getitem__)) for of_class in found]
    scores = score([name for name in task.scores if name != "paired"], gold, predicted)
    if "paired" in task.scores:  # of QNLI, right and wrong pair one behind the other: the probability of class 0
        right = [of_class[0] for of_class in found]
        scores["paired"] = score_rankings([right[i : i + 2] for i in range(0, len(right), 2)])["paired"]
    return scores


def score_rankings(relevances: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return how well candidates are ranked, times 100.

    Of each question the right candidate comes first. ``paired``: it is above the first other one, by which a model that
    classifies pairs can be measured, too; ``top1``: it is above all others.
    """
    refuse_not_finite(relevances)
    if not relevances:
        raise ValueError("there is nothing to score")
    paired = [right > others[0] for right, *others in relevances]
    top1 = [right > max(others) for right, *others in relevances]
    return {"paired": 100 * float(np.mean(paired)), "top1": 100 * float(np.mean(top1))}


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of scores in Markdown."""
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads), *rows))
