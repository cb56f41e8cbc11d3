"""Whether an answer is right, and whether probabilities are; the shares and baselines that tables are made of."""

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mqan_core.answer.calibration import Calibration
from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_data.metrics import exact_and_f1

if TYPE_CHECKING:
    from mqan_data.derived import Source  # it reads YAML, which a server's installation cannot

ALL = 10**9  # examples of a set
NUM_BINS = 15  # of the calibration error (Guo et al. 2017)
_STEPS = 50  # of Newton's method; it settles within ten
FloatArray = npt.NDArray[np.float64]


def said(answer: Answer) -> str | None:
    return answer.text if answer.answered else None


def judge(example: Example, answer: Answer | None) -> tuple[float, float]:
    """Return exact match and F1 of an answer, 0 to 1 (``exact_and_f1``); what could not be read is wrong."""
    return (0.0, 0.0) if answer is None else exact_and_f1(example, said(answer), answer.chosen)


def share_right(examples: Sequence[Example], answers: Sequence[Answer | None]) -> float:
    return mean([judge(example, answer)[0] for example, answer in zip(examples, answers, strict=True)])


def is_refusal(answer: Answer | None) -> bool:
    """Return whether an answer says that there is none; what could not be read does not."""
    return answer is not None and not answer.answered


def unanswered(answers: Sequence[Answer | None]) -> dict[str, float]:
    """Return how many questions were refused, in per cent, and how many could not be read, as cells of a table."""
    return {"refused": mean(list(map(is_refusal, answers))), "unread": answers.count(None)}


def forced_label(answer: Answer | None) -> str | None:
    """Return the most probable choice, also where refusing is more probable."""
    if answer is None or not answer.choices:
        return None
    return max(answer.choices, key=lambda choice: choice.probability).label


def refusal_scores(examples: Sequence[Example], answers: Sequence[Answer | None]) -> dict[str, float]:
    """Return F1, precision and recall of refusing, in per cent, and F1 of always refusing."""
    refused = list(map(is_refusal, answers))
    true = [not example.answers for example in examples]
    right = sum(a and b for a, b in zip(refused, true, strict=True))
    return {
        "refusal F1": per_cent(2 * right / (sum(refused) + sum(true)) if right else 0.0),
        "precision": per_cent(right / sum(refused) if any(refused) else 0.0),
        "recall": per_cent(right / sum(true) if any(true) else 0.0),
        "always refusing": per_cent(2 * sum(true) / (len(true) + sum(true)) if true else 0.0),
    }


def majority(examples: Iterable[Example], *, by_question: bool = False) -> float:
    """Return the share of examples that the commonest answer is right of, in per cent.

    With ``by_question`` each wording of the question is a task with a commonest answer of its own.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    total = 0
    for example in examples:
        counts[example.question if by_question else ""].update(example.answers[:1])
        total += 1
    return per_cent(sum(max(of_task.values(), default=0) for of_task in counts.values()) / total) if total else 0.0


def mean(values: Sequence[float]) -> float:
    return per_cent(float(np.mean(values))) if len(values) else 0.0


def per_cent(share: float) -> float:
    return round(100 * share, 2)


def sampled(examples: Sequence[Example], limit: int | None, seed: int) -> list[Example]:
    order = np.random.default_rng(seed).permutation(len(examples))[:limit]
    return [examples[int(i)] for i in sorted(order)]


def draw_questions(sources: "Sequence[Source]", each: int, seed: int) -> list[Example]:
    """Return so many questions about different rows of each source, or about all of its rows: always the same ones.

    What is drawn about a row depends on its source, too: otherwise the same kinds of questions would be asked of all.
    """
    drawn: list[Example] = []
    for source in sources:
        own = zlib.crc32(source.name.encode())
        order = np.random.default_rng([seed, own]).permutation(len(source))[:each]
        drawn += [source.draw(int(i), np.random.default_rng([seed, own, int(i)])) for i in sorted(order)]
    return drawn


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
