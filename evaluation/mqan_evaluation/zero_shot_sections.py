"""Label sets that were never trained on: choices, their order, their wording, their names, and yes or no."""

from dataclasses import replace
from functools import partial

import numpy as np

from mqan_core.example import Example
from mqan_data.mixture import validation_examples
from mqan_evaluation.answerers import Decision
from mqan_evaluation.judging import forced_label, majority, mean, per_cent, sampled, share_right, unanswered
from mqan_evaluation.label_views import (
    LabelSet,
    by_synonyms,
    held_back_sets,
    labels_part,
    named_in_question,
    yes_or_no,
)
from mqan_evaluation.sections import Cell, Measuring, Section
from mqan_evaluation.sentence_similarity import packaged_similarity

ALL = 10**9  # examples of a set

Decisions = list[Decision | None]


def label_sections(measuring: Measuring, names: list[str] | None = None) -> list[Section]:
    """Measure label sets that are held back.

    Args:
        measuring: the model and the data.
        names: which; None for all.

    Returns:
        Two tables: right answers beside the baselines, and what changes when the question is put otherwise.
    """
    right: list[dict[str, Cell]] = []
    otherwise: list[dict[str, Cell]] = []
    for name, label_set in held_back_sets().items():
        if names is None or name in names:
            whole = validation_examples(measuring.data, name, ALL, measuring.seed)
            examples = sampled(whole, measuring.limit, measuring.seed)
            decisions = measuring.ask(name, examples)
            right.append(_right_row(name, whole, examples, decisions))
            otherwise.append(_otherwise_row(measuring, name, label_set, examples, decisions))
    for rows in (right, otherwise):
        if len(rows) > 1:
            rows.append(_mean_row(rows))
    return [
        Section("labels", "Label sets that were not trained on: right answers", right, _bars(right)),
        Section("labels-otherwise", "Label sets that were not trained on: the same questions, varied", otherwise),
    ]


def _right_row(name: str, whole: list[Example], examples: list[Example], decisions: Decisions) -> dict[str, Cell]:
    nearest = packaged_similarity().choose(
        [example.context for example in examples],
        [[choice.label for choice in example.choices] for example in examples],
    )
    forced = [forced_label(e, d) in e.answers for e, d in zip(examples, decisions, strict=True)]
    return {
        "set": name,
        "labels": len(examples[0].choices),
        "examples": len(examples),
        "majority": majority(whole),
        "cosine": mean([label in e.answers for e, label in zip(examples, nearest, strict=True)]),
        "accuracy": share_right(examples, decisions),
        "accuracy, never refusing": mean(forced),
        **unanswered(decisions),
    }


def _otherwise_row(
    measuring: Measuring, name: str, label_set: LabelSet, examples: list[Example], decisions: Decisions
) -> dict[str, Cell]:
    template = labels_part(name).forms[0].yes_no[0]
    rngs = [np.random.default_rng([measuring.seed, i]) for i in range(len(examples))]
    ask = partial(_ask, measuring, name)
    reversed_decisions = ask("reversed", [replace(e, choices=e.choices[::-1]) for e in examples])
    worded = [
        share_right(examples, ask(f"wording {i}", [replace(e, question=question) for e in examples]))
        for i, question in enumerate(label_set.questions, start=1)
    ]
    renamed = [by_synonyms(e, label_set.synonyms) for e in examples]
    pairs = [named_in_question(e, rng) for e, rng in zip(examples, rngs, strict=True)]
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    first_decisions, second_decisions = ask("named", first), ask("named, reversed", second)
    asked = [yes_or_no(e, template, i % 2 == 0, rng) for i, (e, rng) in enumerate(zip(examples, rngs, strict=True))]
    own = share_right(examples, decisions)
    return {
        "set": name,
        "accuracy": own,
        "reversed: same": _same(decisions, reversed_decisions),
        "labels in question: accuracy": share_right(first, first_decisions),
        "reversed there: same": _same(first_decisions, second_decisions),
        "other wordings: accuracy": round(float(np.mean(worded)), 2),
        "largest change": round(max(abs(score - own) for score in worded), 2),
        "synonyms: accuracy": share_right(renamed, ask("synonyms", renamed)),
        "yes/no: accuracy": share_right(asked, ask("yes/no", asked)),
    }


def _ask(measuring: Measuring, name: str, view: str, examples: list[Example]) -> Decisions:
    return measuring.ask(f"{name} ({view})", examples)


def _same(first: Decisions, second: Decisions) -> float:
    texts = [[None if d is None else (d.text or "").casefold() for d in some] for some in (first, second)]
    return per_cent(float(np.mean([a == b for a, b in zip(*texts, strict=True)])))


def _mean_row(rows: list[dict[str, Cell]]) -> dict[str, Cell]:
    means: dict[str, Cell] = {"set": "mean"}
    for column in list(rows[0])[1:]:
        numbers = [float(row[column]) for row in rows if isinstance(row[column], int | float)]  # type: ignore[arg-type]
        means[column] = round(float(np.mean(numbers)), 2) if column not in ("labels", "examples", "unread") else None
    return means


def _bars(rows: list[dict[str, Cell]]) -> dict[str, Cell]:
    """Return on how many sets the model is above the sentence encoder."""
    sets = [row for row in rows if row["set"] != "mean"]
    above = sum(float(row["accuracy"] or 0) > float(row["cosine"] or 0) for row in sets)
    return {"sets": len(sets), "above cosine on": above}
