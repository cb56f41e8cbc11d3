"""Questions of every kind that people wrote about everyday texts, and the words that decide them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_data.formats.dataset_file import load_dataset
from mqan_data.formats.reading import read_rows
from mqan_data.formats.rows import EverydayRow
from mqan_data.questions import everyday
from mqan_evaluation.judging import judge, mean, sampled
from mqan_evaluation.sections import Cell, Measuring, Section

NAME: Final = "everyday"
_VERDICTS: Final = ("yes", "no", "not stated")


def everyday_examples(measuring: Measuring) -> list[Example]:
    """Return the questions about the texts that are for validation, each in its own words; ``task`` is its kind."""
    dataset = load_dataset(NAME)
    examples = []
    for number, row in enumerate(read_rows(measuring.data, dataset, "questions", "validation")):
        if isinstance(row, EverydayRow):
            examples.append(replace(everyday.canonical(row), task=_kind(row), id=str(number)))
    return sampled(examples, measuring.limit and 10 * measuring.limit, measuring.seed)


def _kind(row: EverydayRow) -> str:
    if row.kind in ("free", "field"):
        return "free" if row.answers else "near misses"
    if row.kind == "yes_no":
        return row.answers[0] if row.answers else _VERDICTS[2]
    return row.kind if row.answers or row.kind != "choice" else "no label fits"


def everyday_section(measuring: Measuring) -> Section:
    """Ask the questions; return how many of each kind are right, and how good the evidence of right decisions is.

    Free answers count by F1. Of several labels each counts as a decision, too. A choice of which no label fits counts
    as right where refusing is more probable than each label.
    """
    examples = everyday_examples(measuring)
    answers = measuring.ask(NAME, examples, lambda example, answer: _score(example, answer) == 1)
    scores: dict[str, list[float]] = defaultdict(list)
    singles: list[bool] = []
    touched: list[bool] = []
    inside: list[float] = []
    for example, answer in zip(examples, answers, strict=True):
        score = _score(example, answer)
        scores[example.task].append(score)
        if example.multiple and answer is not None:
            singles += [(c.label in answer.chosen) == (c.label in example.answers) for c in example.choices]
        if score == 1 and answer is not None and (shares := _evidence(example, answer)) is not None:
            touched.append(shares > 0)
            inside.append(shares)
    kinds = ("free", "near misses", *_VERDICTS, "choice", "no label fits", "several", "scale")
    rows: list[dict[str, Cell]] = [
        {"kind": kind, "questions": len(scores[kind]), "right": mean(scores[kind])} for kind in kinds if scores[kind]
    ]
    everything = [score for of_kind in scores.values() for score in of_kind]
    rows.append({"kind": "all", "questions": len(everything), "right": mean(everything)})
    summary: Mapping[str, Cell] = {
        "yes, no and not stated: mean": round(float(np.mean([mean(scores[v]) for v in _VERDICTS])), 2),
        "several: single labels": mean(singles),
        "evidence touches what decides": mean(touched),
        "evidence inside of it": mean(inside),
    }
    return Section(NAME, "Questions of every kind on everyday texts", rows, summary)


def _score(example: Example, answer: Answer | None) -> float:
    if answer is None:
        return 0.0
    if example.task == "no label fits":
        return float(answer.refusal > max(choice.probability for choice in answer.choices))
    exact, f1 = judge(example, answer)
    return f1 if example.task == "free" else exact


def _evidence(example: Example, answer: Answer) -> float | None:
    if not example.evidence:
        return None
    shown = _places([(p.span.start, p.span.end) for choice in answer.choices for p in choice.evidence])
    return len(shown & _places(example.evidence)) / len(shown) if shown else None


def _places(spans: Sequence[tuple[int, int]]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}
