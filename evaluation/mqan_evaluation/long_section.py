"""Questions about a paragraph alone, and the same paragraph at a random place of a long text."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from mqan_core.answer.types import Answer, Source
from mqan_core.example import Example
from mqan_data.mixture import validation_examples
from mqan_evaluation.judging import ALL, is_refusal, judge, mean, sampled
from mqan_evaluation.sections import Cell, Measuring, Section

MOST_ASKED: Final = 260  # most questions: each is read in some 35 windows
LENGTH: Final = 50_000  # characters of a long text
_GAP: Final = "\n\n"


def long_section(measuring: Measuring) -> Section:
    """Measure questions of SQuAD on their paragraph, and with other paragraphs before and after it."""
    whole = validation_examples(measuring.data, "squad", ALL, measuring.seed)
    examples = sampled(whole, min(measuring.limit or MOST_ASKED, MOST_ASKED), measuring.seed)
    others = list(dict.fromkeys(example.context for example in whole))
    placed = [
        within_others(example, others, LENGTH, np.random.default_rng([measuring.seed, i]))
        for i, example in enumerate(examples)
    ]
    alone, within = (measuring.ask(name, asked) for name, asked in (("long (paragraph)", examples), ("long", placed)))
    rows = [
        {"set": "squad: paragraph alone", **_row(examples, alone, [e.context for e in examples])},
        {"set": f"squad: in {LENGTH:,} characters", **_row(placed, within, [e.context for e in examples])},
    ]
    return Section("long", "Questions of SQuAD on their paragraph, and on a long text that holds it", rows)


def within_others(example: Example, others: Sequence[str], length: int, rng: np.random.Generator) -> Example:
    """Return the example with other texts around its own, which stands whole at a random place among them.

    ``length`` is the most characters of the text that is made.
    """
    kept: list[str] = []
    room = length - len(example.context)
    for place in rng.permutation(len(others)):
        other = others[int(place)]
        if other == example.context:
            continue
        room -= len(other) + len(_GAP)
        if room < 0:
            break
        kept.append(other)
    kept.insert(int(rng.integers(len(kept) + 1)), example.context)
    return replace(example, context=_GAP.join(kept), answer_start=None)


def _row(examples: Sequence[Example], answers: Sequence[Answer | None], own: Sequence[str]) -> dict[str, Cell]:
    judged = [judge(example, answer) for example, answer in zip(examples, answers, strict=True)]
    right = [
        _is_quoted_from(example, answer, text)
        for example, answer, text, (exact, _) in zip(examples, answers, own, judged, strict=True)
        if exact == 1
    ]
    return {
        "examples": len(examples),
        "exact": mean([exact for exact, _ in judged]),
        "nF1": mean([f1 for _, f1 in judged]),
        "right ones quoted from the paragraph": mean(right) if right else None,
        "refused": mean(list(map(is_refusal, answers))),
    }


def _is_quoted_from(example: Example, answer: Answer | None, text: str) -> bool:
    start = example.context.index(text)
    quoted = [] if answer is None else [span for span in answer.spans if span.source is Source.CONTEXT]
    return bool(quoted) and all(start <= span.start and span.end <= start + len(text) for span in quoted)
