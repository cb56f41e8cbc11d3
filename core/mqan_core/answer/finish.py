"""The options' part in a decided answer: evidence, expected values, several labels, a least probability."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mqan_core.answer.evidence import Evidence, find_evidence
from mqan_core.answer.types import Answer, ChoiceProbability
from mqan_core.ask.options import Options
from mqan_core.ask.request import Request

HOLDS: Final = 0.5
"""Of several labels, those hold that are likelier than this, each beside the refusal."""


def complete(answer: Answer, options: Options, request: Request, evidence: Evidence, num_windows: int = 1) -> Answer:
    """Return a decided answer with what its options ask for.

    Args:
        answer: as it was decided, its choices in any order.
        options: what is asked for.
        request: its words.
        evidence: which words decide for which choice.
        num_windows: windows that the context was read in.
    """
    of_label = {choice.label: choice for choice in answer.choices}
    in_order = tuple(of_label[choice.label] for choice in options.choices)
    answer = replace(answer, num_windows=num_windows, choices=in_order, is_multiple=options.multiple)
    if options.multiple:
        answer = _several(answer, options.min_probability)
    elif answer.choices:
        answer = replace(answer, choices=_normalised(answer.choices))
        if options.is_scale:
            expected = sum(level * c.among_choices for level, c in enumerate(answer.choices, start=1))
            answer = replace(answer, expected=expected)
    if not options.multiple:
        answer = withhold(answer, options.min_probability)
    return _with_evidence(answer, request, evidence) if answer.chosen else answer


def _with_evidence(answer: Answer, request: Request, evidence: Evidence) -> Answer:
    """Return an answer whose chosen labels have the words that decide for them."""
    found = {
        choice.label: find_evidence(evidence.logits(place), request)
        for place, choice in enumerate(request.choices)
        if choice.label in answer.chosen
    }
    return replace(answer, choices=tuple(replace(c, evidence=found.get(c.label, ())) for c in answer.choices))


def withhold(answer: Answer, min_probability: float | None) -> Answer:
    """Return an answer that is sure enough, or the answer that there is none."""
    if answer.answered and min_probability is not None and answer.probability < min_probability:
        return replace(_unanswered(answer), explanation=())  # of words that are not given
    return answer


def _several(answer: Answer, min_probability: float | None) -> Answer:
    """Return the answer that holds every label for itself."""
    least = HOLDS if min_probability is None else min_probability
    holding = [choice for choice in answer.choices if choice.against_refusal > HOLDS]
    chosen = tuple(choice.label for choice in holding if choice.against_refusal >= least)
    decided = chosen or [choice.label for choice in holding]  # those that are withheld, too
    probability = math.prod(
        choice.against_refusal if choice.label in decided else 1 - choice.against_refusal for choice in answer.choices
    )
    answer = replace(answer, probability=probability)
    if not chosen:
        explanation = () if holding else answer.explanation
        return replace(_unanswered(answer), choices=_normalised(answer.choices), explanation=explanation)
    return replace(
        answer,
        text=", ".join(chosen),
        tokens=(),
        spans=(),
        answered=True,
        choices=_normalised(answer.choices),
        chosen=chosen,
    )


def _normalised(choices: Sequence[ChoiceProbability]) -> tuple[ChoiceProbability, ...]:
    """Return choices whose shares of one another sum to 1 as far as float64 goes."""
    total = math.fsum(choice.among_choices for choice in choices)  # the same in every order
    if total <= 0:
        return tuple(replace(choice, among_choices=1 / len(choices)) for choice in choices)
    return tuple(replace(choice, among_choices=choice.among_choices / total) for choice in choices)


def _unanswered(answer: Answer) -> Answer:
    """Return the answer that there is none; the refusal keeps its own probability."""
    return replace(answer, text="", tokens=(), spans=(), truncated=False, answered=False, chosen=(), places=())
