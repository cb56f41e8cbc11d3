"""Check that a bundle computes what its checkpoint does: tensors, tokens, alone and in batches."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mqan_core.answer import Answer
from mqan_core.errors import MqanError
from mqan_core.example import Example
from mqan_core.request import Request
from mqan_runtime.decoding import Batch
from mqan_runtime.engine import Engine
from mqan_training.model.network import Network

MAX_DIFFERENCE = 1e-4
_BATCH = 16
_MAX_ANSWER_TOKENS = 50


class ParityError(MqanError):
    """A bundle does not compute what its checkpoint does; the message says where."""


@dataclass(frozen=True, slots=True)
class ParityReport:
    """What was compared.

    Attributes:
        num_examples: examples answered in torch, in batches and alone; all answers had the same tokens.
        max_encoder_difference: largest difference in an output of the encoder from what torch computes in float64, in
            parts of that output's largest value where that is over 1. (A trained network's reach 17; torch's own
            float32 is 1e-4 from its float64 here and there.)
        max_probability_difference: largest absolute difference of a token's probability or mass.
    """

    num_examples: int
    max_encoder_difference: float
    max_probability_difference: float


def check_parity(network: Network, engine: Engine, examples: Sequence[Example]) -> ParityReport:
    """Compare a network with a bundle opened on the CPU.

    Args:
        network: what was exported.
        engine: the bundle.
        examples: real ones.

    Raises:
        ParityError: an output of the encoder differs from the exact one by more than 1e-4 of its largest
            value, a probability by more than 1e-4 from torch's, or an answer by a token.
    """
    requests = [engine.read(example.context, example.question) for example in examples]
    exact = copy.deepcopy(network).double()
    encoder_difference = probability_difference = 0.0
    for first in range(0, len(requests), _BATCH):
        batch = requests[first : first + _BATCH]
        limits = [_MAX_ANSWER_TOKENS] * len(batch)
        encoder_difference = max(encoder_difference, _encoder_difference(exact, engine, batch))
        expected = network.greedy_answers(batch, _MAX_ANSWER_TOKENS)
        together = engine.answer(batch, limits)
        alone = [engine.answer([request], limits[:1])[0] for request in batch]
        for i, answers in enumerate(zip(expected, together, alone, strict=True)):
            torch_answer, *others = answers
            for other in others:
                difference = answer_difference(torch_answer, other)
                if difference is None or difference > MAX_DIFFERENCE:
                    raise ParityError(
                        f"example {examples[first + i].id}: torch answers {torch_answer.text!r}, the bundle "
                        f"{other.text!r} (largest difference of a probability: {difference})"
                    )
                probability_difference = max(probability_difference, difference)
    if encoder_difference > MAX_DIFFERENCE:
        raise ParityError(
            f"the encoders differ by {encoder_difference:.2e}, at most {MAX_DIFFERENCE:.0e} is allowed: export another "
            "checkpoint of the run, whose rounding errors are others"
        )
    return ParityReport(len(requests), encoder_difference, probability_difference)


def answer_difference(left: Answer, right: Answer) -> float | None:
    """Return the largest difference of a probability or mass; None when the answers are not the same words."""
    if left.text != right.text or [t.piece for t in left.tokens] != [t.piece for t in right.tokens]:
        return None
    worst = abs(left.probability - right.probability)
    for a, b in zip(left.tokens, right.tokens, strict=True):
        for x, y in (
            (a.probability, b.probability),
            (a.masses.context, b.masses.context),
            (a.masses.question, b.masses.question),
        ):
            worst = max(worst, abs(x - y))
    return worst


def _encoder_difference(network: Network, engine: Engine, requests: Sequence[Request]) -> float:
    with torch.no_grad():
        encoded, slots = network.encode_requests(requests, torch.device("cpu"))
    batch: Batch = engine.pad(requests, [1] * len(requests))
    outputs = engine.loop.encode(batch)
    pairs = (
        (encoded.c_fin_BCD, outputs["context"]),
        (encoded.q_fin_BQD, outputs["question"]),
        *((keys, outputs[f"context_keys_{i}"]) for i, keys in enumerate(encoded.keys_BHJW)),
        *((values, outputs[f"context_values_{i}"]) for i, values in enumerate(encoded.values_BHJW)),
    )
    worst = max(float(np.abs(ours.numpy() - theirs).max() / max(1.0, np.abs(theirs).max())) for ours, theirs in pairs)
    inputs = np.abs(slots.slot_inputs_BUD.numpy() - outputs["slot_inputs"]).max()
    return max(worst, float(inputs))
