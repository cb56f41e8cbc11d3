"""From an answer's probability to how often such answers are right: a logistic map, fitted on data (Platt 1999)."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

_LEAST = 1e-6  # probabilities are held this far from 0 and 1


@dataclass(frozen=True, slots=True)
class Calibration:
    """``p -> logistic(scale * logit(p) + offset)``.

    Attributes:
        scale: over 0, so that the order of answers stays.
        offset: in logits; with the largest scale and offset a manifest may have, the exponential is still a float.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    scale: Annotated[float, Field(gt=0, le=30)]
    offset: Annotated[float, Field(ge=-100, le=100)]

    def __call__(self, probability: float) -> float:
        """Map a probability."""
        return 1 / (1 + math.exp(-(self.scale * logit(probability) + self.offset)))


def logit(probability: float) -> float:
    """Return the log odds of a probability, held away from 0 and 1."""
    held = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(held / (1 - held))
