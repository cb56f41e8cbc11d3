"""Whether a decision is right, and the shares and baselines that tables are made of."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from mqan_core.example import Example
from mqan_data.metrics import exact_and_f1
from mqan_evaluation.answerers import Decision


def judge(example: Example, decision: Decision | None) -> tuple[float, float]:
    """Return exact match and F1 of a decision, 0 to 1; a refusal is right exactly where there is no answer.

    What could not be read is wrong; see ``exact_and_f1`` for the rest.
    """
    return (0.0, 0.0) if decision is None else exact_and_f1(example, decision.text, decision.labels)


def share_right(examples: Sequence[Example], decisions: Sequence[Decision | None]) -> float:
    """Return how many decisions are exactly right, in per cent."""
    return mean([judge(example, decision)[0] for example, decision in zip(examples, decisions, strict=True)])


def unanswered(decisions: Sequence[Decision | None]) -> dict[str, float]:
    """Return how many questions were refused, in per cent, and how many could not be read, as cells of a table."""
    refused = [decision is not None and decision.text is None for decision in decisions]
    return {"refused": mean(refused), "unread": decisions.count(None)}


def forced_label(example: Example, decision: Decision | None) -> str | None:
    """Return the most probable choice, also where refusing is more probable."""
    if decision is None or not decision.choices:
        return None
    return example.choices[int(np.argmax(decision.choices))].label


def refusal_scores(examples: Sequence[Example], decisions: Sequence[Decision | None]) -> dict[str, float]:
    """Return F1, precision and recall of refusing, in per cent, and F1 of always refusing."""
    said = [decision is not None and decision.text is None for decision in decisions]
    true = [not example.answers for example in examples]
    right = sum(a and b for a, b in zip(said, true, strict=True))
    return {
        "f1": per_cent(2 * right / (sum(said) + sum(true)) if right else 0.0),
        "precision": per_cent(right / sum(said) if any(said) else 0.0),
        "recall": per_cent(right / sum(true) if any(true) else 0.0),
        "always_refusing_f1": per_cent(2 * sum(true) / (len(true) + sum(true)) if true else 0.0),
    }


def majority(examples: Iterable[Example], *, by_question: bool = False) -> float:
    """Return the share of examples that the commonest answer is right of, in per cent.

    Args:
        examples: what was asked, with one answer each.
        by_question: whether each wording of the question is a task with a commonest answer of its own.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    total = 0
    for example in examples:
        counts[example.question if by_question else ""].update(example.answers[:1])
        total += 1
    return per_cent(sum(max(of_task.values(), default=0) for of_task in counts.values()) / total) if total else 0.0


def mean(values: Sequence[float]) -> float:
    """Return the mean in per cent; 0 of nothing."""
    return per_cent(float(np.mean(values))) if len(values) else 0.0


def per_cent(share: float) -> float:
    """Return a share of 0 to 1 in per cent, with two decimals."""
    return round(100 * share, 2)


def sampled(examples: Sequence[Example], limit: int | None, seed: int) -> list[Example]:
    """Return at most so many examples, drawn by the seed, in their order."""
    order = np.random.default_rng(seed).permutation(len(examples))[:limit]
    return [examples[int(i)] for i in sorted(order)]
