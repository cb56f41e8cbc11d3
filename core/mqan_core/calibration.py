"""From the product of an answer's probabilities to how often such answers are right.

The product underrates long answers and overrates one-word ones. A bundle can hold a logistic map of it, fitted on
validation data (Platt 1999), for each source of an answer's first word: answers quoted from the context, words chosen
from the question, and words of the vocabulary are different kinds of answers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import ConfigDict, Field

from mqan_core.answer import Answer, Source

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


def calibrate(answer: Answer, calibration: Mapping[Source, Calibration]) -> Answer:
    """Return the answer with its probability mapped; as it is where there is no map for it."""
    apply = calibration.get(answer.tokens[0].source) if answer.tokens else None
    return answer if apply is None else replace(answer, probability=apply(answer.probability))
