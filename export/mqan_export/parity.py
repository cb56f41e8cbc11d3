"""Check that a bundle computes what its checkpoint does: tensors, tokens, alone and in batches."""

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from mqan_core.answer.types import Answer, AnswerToken, Source
from mqan_core.errors import MqanError
from mqan_core.example import Example
from mqan_runtime.engine import Engine
from mqan_runtime.readers import WordReader
from mqan_runtime.rows import ReadRequest
from mqan_training.model.network import Network

MAX_DIFFERENCE = 1e-4
NO_EXAMPLES: Final = (
    "parity cannot be checked without examples: give questions with a text, of tasks that have validation rows"
)
_BATCH = 16
_MAX_ANSWER_TOKENS = 50


class ParityError(MqanError):
    """A bundle does not compute what its checkpoint does; the message says where."""


@dataclass(frozen=True, slots=True)
class ParityReport:
    """The result of a comparison.

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
            value, a probability by more than 1e-4 from torch's, an answer by a token, or more answers than
            ``most_ties`` by where a token is from.
        ValueError: there are no examples.
    """
    if not examples:
        raise ValueError(NO_EXAMPLES)
    requests = [engine.read(example.context, example.question) for example in examples]
    exact = copy.deepcopy(network).double()
    encoder_difference = probability_difference = 0.0
    num_ties = 0
    for first in range(0, len(requests), _BATCH):
        batch = requests[first : first + _BATCH]
        limits = [_MAX_ANSWER_TOKENS] * len(batch)
        encoder_difference = largest((encoder_difference, _encoder_difference(exact, engine, batch)))
        expected = network.greedy_answers([request.request for request in batch], _MAX_ANSWER_TOKENS)
        together = engine.answer(batch, limits)
        alone = [engine.answer([request], limits[:1])[0] for request in batch]
        for i, answers in enumerate(zip(expected, together, alone, strict=True)):
            torch_answer, *others = answers
            for other in others:
                difference = answer_difference(torch_answer, other)
                if difference is None or not difference <= MAX_DIFFERENCE:
                    raise ParityError(
                        f"example {examples[first + i].id}: torch answers {torch_answer.text!r}, the bundle "
                        f"{other.text!r} (largest difference of a probability: {difference})"
                    )
                probability_difference = max(probability_difference, difference)
            num_ties += check_places(examples[first + i].id, torch_answer, others)
    check_ties(num_ties, len(requests))
    if not encoder_difference <= MAX_DIFFERENCE:
        raise ParityError(
            f"the encoders differ by {encoder_difference:.2e}, at most {MAX_DIFFERENCE:.0e} is allowed: export another "
            "checkpoint of the run, whose rounding errors are others"
        )
    return ParityReport(len(requests), encoder_difference, probability_difference)


def answer_difference(left: Answer, right: Answer) -> float | None:
    """Return the largest difference of a probability or mass; None when the answers are not the same words."""
    if left.text != right.text or [t.piece for t in left.tokens] != [t.piece for t in right.tokens]:
        return None
    differences = [left.probability - right.probability]
    for a, b in zip(left.tokens, right.tokens, strict=True):
        differences.append(a.probability - b.probability)
        differences += [_mass(a, source) - _mass(b, source) for source in Source]
    return largest(differences)


def largest(differences: Iterable[float]) -> float:
    """Return the largest absolute value; infinity where one is not a number, which ``max`` would pass over."""
    return max((abs(value) if math.isfinite(value) else math.inf for value in differences), default=0.0)


def most_ties(num_examples: int) -> int:
    """Return in how many answers float32 may choose otherwise between equals: they are rare in a network that works."""
    return max(1, num_examples // 100)


def check_ties(num_ties: int, num_examples: int) -> None:
    """Check that not too many answers differ by ties.

    Raises:
        ParityError: too many do.
    """
    most = most_ties(num_examples)
    if num_ties > most:
        raise ParityError(
            f"{num_ties} of {num_examples} answers differ where two ways are equally likely, at most {most} may: the "
            "graphs choose otherwise than torch"
        )


def check_places(name: str, expected: Answer, found: Sequence[Answer]) -> bool:
    """Check where the words of an answer are from.

    Args:
        name: of the example.
        expected: torch's answer.
        found: the bundle's, of the same words.

    Returns:
        Whether they are from elsewhere, though no less likely.

    Raises:
        ParityError: they are from elsewhere.
    """
    others = [answer for answer in found if _places(answer) != _places(expected)]
    for other in others:
        if not all(map(_is_tie_of_places, expected.tokens, other.tokens)):
            raise ParityError(
                f"example {name}: torch takes {expected.text!r} from {_places(expected)}, the bundle from "
                f"{_places(other)}"
            )
    return bool(others)


def _places(answer: Answer) -> tuple[object, ...]:
    tokens = [(token.source.value, token.span and (token.span.start, token.span.end)) for token in answer.tokens]
    return (*tokens, *((span.source.value, span.start, span.end) for span in answer.spans))


def _is_tie_of_places(left: AnswerToken, right: AnswerToken) -> bool:
    """Return whether a word may come from either of two places.

    An answer does not tell how likely each place is. Of two sources that give the word as much, and more than the
    third, each gives at least a third of it, so it has that mass. Of places in one source, both hold the word.
    """
    if left.source is right.source:
        return left.text == right.text
    masses = [_mass(token, source) for token in (left, right) for source in (left.source, right.source)]
    return min(masses) >= left.probability / 3 - MAX_DIFFERENCE


def _mass(token: AnswerToken, source: Source) -> float:
    mass: float = getattr(token.masses, source.value)
    return mass


def _encoder_difference(network: Network, engine: Engine, read: Sequence[ReadRequest]) -> float:
    requests = [each.request for each in read]
    if not isinstance(engine.reader, WordReader):
        raise TypeError("the bundle has no reader of words")
    with torch.no_grad():
        encoded, slots = network.encode_requests(requests, torch.device("cpu"))
    outputs = engine.reader.encode(requests)
    pairs = (
        (encoded.c_fin_BCD, outputs["context"]),
        (encoded.q_fin_BQD, outputs["question"]),
        *((keys, outputs[f"context_keys_{i}"]) for i, keys in enumerate(encoded.keys_BHJW)),
        *((values, outputs[f"context_values_{i}"]) for i, values in enumerate(encoded.values_BHJW)),
    )
    inputs = np.abs(slots.slot_inputs_BUD.numpy() - outputs["slot_inputs"]).max()
    of_parts = (float(np.abs(ours.numpy() - theirs).max() / max(1.0, np.abs(theirs).max())) for ours, theirs in pairs)
    return largest((*of_parts, float(inputs)))
