"""The confidence of a model with a pretrained reader: one map for each kind of question and number of choices.

The masses of choices are divided by a temperature in logits (Guo et al. 2017): ``m_i ** (1 / T)``, renormalised over
choices and refusal, so that the order of the choices by probability, and with it the answer, stays. A free answer and
a refusal of a free question are single events: their log odds are scaled and moved (Platt 1999). Where several labels
can be right, each is such an event beside the refusal. It holds where the mapped probability is over one half: this
map decides, too.

A bundle's manifest holds the maps by name: ``choices/3-5`` for a number of choices, ``choices`` where too little was
measured of one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from mqan_core.answer.types import Answer
from mqan_core.ask.options import is_yes_no

BUCKETS = ((2, "2"), (5, "3-5"), (10, "6-10"), (30, "11-30"), (10**9, "31+"))
"""Most choices of each bucket, and its name."""

_LEAST = 1e-12  # masses are held above it
_HELD = 1e-6  # probabilities are held this far from 0 and 1


@dataclass(frozen=True, slots=True)
class Calibration:
    """``p -> logistic(scale * logit(p) + offset)``."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    scale: Annotated[float, Field(gt=0, le=30)]  # over 0, so that the order of answers stays
    offset: Annotated[float, Field(ge=-100, le=100)]  # in logits; the exponential is still a float

    def __call__(self, probability: float) -> float:
        return 1 / (1 + math.exp(-(self.scale * logit(probability) + self.offset)))


def logit(probability: float) -> float:
    """Return the log odds of a probability, held away from 0 and 1."""
    held = min(max(probability, _HELD), 1 - _HELD)
    return math.log(held / (1 - held))


_UNCHANGED = Calibration(1.0, 0.0)


class QuestionKind(StrEnum):
    FREE = "free"
    CHOICES = "choices"
    YES_NO = "yes-no"
    SEVERAL = "several"
    REFUSAL = "refusal"  # of a free question


def kind_of(labels: Sequence[str], multiple: bool) -> QuestionKind:
    if not labels:
        return QuestionKind.FREE
    if multiple:
        return QuestionKind.SEVERAL
    return QuestionKind.YES_NO if is_yes_no(labels) else QuestionKind.CHOICES


def bucket_of(num_choices: int) -> str:
    return next(name for most, name in BUCKETS if num_choices <= most)


@dataclass(frozen=True, slots=True)
class Temperatures:
    """The maps of one model; what has none stays as it is."""

    maps: Mapping[str, Calibration] = field(default_factory=dict)  # by ``kind/bucket`` or ``kind``; ``scale`` is 1 / T

    def single(self, kind: QuestionKind, probability: float) -> float:
        found = self.maps.get(kind.value)
        return probability if found is None else found(probability)

    def masses(self, kind: QuestionKind, choices: Sequence[float], refusal: float) -> tuple[tuple[float, ...], float]:
        """Map the masses of choices and of the refusal; they sum to 1 afterwards."""
        scale = self._map(kind, len(choices)).scale
        logs = [scale * math.log(max(mass, _LEAST)) for mass in (*choices, refusal)]
        highest = max(logs)
        powers = [math.exp(value - highest) for value in logs]
        total = sum(powers)
        *rest, last = (power / total for power in powers)
        return tuple(rest), last

    def against_refusal(self, choices: Sequence[float], refusal: float) -> tuple[float, ...]:
        """Return how probable each of several choices is, each beside the refusal alone."""
        found = self._map(QuestionKind.SEVERAL, len(choices))
        return tuple(found(mass / max(mass + refusal, _LEAST)) for mass in choices)

    def calibrate(self, answer: Answer) -> Answer:
        """Return an answer with its probabilities mapped. Only which of several labels hold can change with it."""
        if not answer.choices:
            refusal = self.single(QuestionKind.REFUSAL, answer.refusal)
            probability = self.single(QuestionKind.FREE, answer.probability) if answer.answered else refusal
            if answer.truncated:
                probability = answer.probability  # of a part of an answer: no such were measured
            return replace(answer, probability=probability, refusal=refusal)
        kind = kind_of([choice.label for choice in answer.choices], multiple=False)
        given = [choice.probability for choice in answer.choices]
        mapped, refusal = self.masses(kind, given, answer.refusal)
        beside = self.against_refusal(given, answer.refusal)
        among = sum(mapped) or 1.0
        choices = tuple(
            replace(choice, probability=mass, among_choices=mass / among, against_refusal=share)
            for choice, mass, share in zip(answer.choices, mapped, beside, strict=True)
        )
        probability = max(mapped) / (1.0 if answer.may_be_none else among) if answer.answered else refusal
        return replace(answer, probability=probability, refusal=refusal, choices=choices)

    def _map(self, kind: QuestionKind, num_choices: int) -> Calibration:
        return self.maps.get(f"{kind.value}/{bucket_of(num_choices)}") or self.maps.get(kind.value) or _UNCHANGED
