"""What the answers about rows are worth: accuracy, scores of each label, confusion, calibration, thresholds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from mqan_cli.labelled.rows import Judged, Task
from mqan_evaluation.judging import expected_calibration_error

NO_ANSWER: Final = "(none)"  # what stands for no answer among labels
_THRESHOLDS: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_BINS: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_Z: Final = 1.96  # of an interval that holds the true share in 95 cases of 100


def scores_of(judged: Sequence[Judged], left_out: Mapping[str, int], task: Task, wanted: float) -> dict[str, Any]:
    """Return all numbers, as shares from 0 to 1, and the rows that are answered wrongly, the surest first."""
    right = np.array([one.exact for one in judged])
    probability = np.array([one.probability for one in judged])
    return {
        "question": task.asked["question"],
        "rows": len(judged),
        "refusals": sum(not one.gold for one in judged),
        "left_out": dict(left_out),
        "accuracy": float(right.mean()),
        "interval": interval(int(right.sum()), len(right)),
        "f1": float(np.mean([one.f1 for one in judged])),
        "labels": [_label(name, judged) for name in _names(judged, task)],
        "confusion": _confusion(judged) if task.labels and not task.is_multiple else {},
        "calibration_error": expected_calibration_error(probability, right),
        "calibration": _bins(probability, right),
        "curve": [_at(threshold, judged) for threshold in _THRESHOLDS],
        "wanted": wanted,
        "threshold": threshold_for(judged, wanted),
        "wrong": [asdict(one) for one in sorted(judged, key=lambda one: -one.probability) if one.exact < 1],
    }


def interval(right: int, total: int) -> tuple[float, float]:
    """Return between which shares the true one lies in 95 cases of 100 (Wilson 1927)."""
    share, spread = right / total, _Z**2 / total
    middle = share + spread / 2
    half = _Z * float(np.sqrt(share * (1 - share) / total + spread / (4 * total)))
    return (middle - half) / (1 + spread), (middle + half) / (1 + spread)


def threshold_for(judged: Sequence[Judged], wanted: float) -> dict[str, Any] | None:
    """Return the least probability from which on answers are right as often as wanted; None where there is none."""
    answered = sorted((one for one in judged if one.said), key=lambda one: -one.probability)
    right, enough = 0.0, None
    for number, one in enumerate(answered, 1):
        right += one.exact
        is_last = number == len(answered) or answered[number].probability < one.probability  # of those as probable
        if is_last and right / number >= wanted:
            enough = one.probability if number < len(answered) else 0.0
    return None if enough is None else _at(enough, judged)


def _at(threshold: float, judged: Sequence[Judged]) -> dict[str, Any]:
    answered = [one.exact for one in judged if one.said and one.probability >= threshold]
    accuracy = float(np.mean(answered)) if answered else None
    share = len(answered) / len(judged)
    return {"threshold": threshold, "rows": len(answered), "answered": share, "accuracy": accuracy}


def _names(judged: Sequence[Judged], task: Task) -> list[str]:
    is_open = bool(task.labels) and not task.is_multiple and not all(one.gold and one.said for one in judged)
    return [*task.labels, NO_ANSWER] if is_open else [*task.labels]


def _label(name: str, judged: Sequence[Judged]) -> dict[str, Any]:
    pairs = [(name in _shown(one.gold), name in _shown(one.said)) for one in judged]
    both = sum(gold and said for gold, said in pairs)
    of_gold, of_said = sum(gold for gold, _ in pairs), sum(said for _, said in pairs)
    return {
        "label": name,
        "rows": of_gold,
        "answers": of_said,
        "precision": both / of_said if of_said else None,
        "recall": both / of_gold if of_gold else None,
        "f1": 2 * both / (of_gold + of_said) if of_gold + of_said else None,
    }


def _confusion(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    counts = Counter((_shown(one.gold)[0], _shown(one.said)[0]) for one in judged)
    return {gold: {s: n for (g, s), n in sorted(counts.items()) if g == gold} for gold, _ in sorted(counts)}


def _shown(labels: tuple[str, ...]) -> tuple[str, ...]:
    return labels or (NO_ANSWER,)


def _bins(probability: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    places = np.clip(np.digitize(probability, _BINS) - 1, 0, len(_BINS) - 2)
    return [
        {
            "from": _BINS[place],
            "to": _BINS[place + 1],
            "rows": int((places == place).sum()),
            "probability": float(probability[places == place].mean()),
            "accuracy": float(right[places == place].mean()),
        }
        for place in np.unique(places).tolist()
    ]
