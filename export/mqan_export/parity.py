"""Check that a bundle computes what its checkpoint does: words, choices, refusals, masses, alone and in batches."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch

from mqan_core.answer.types import Answer, AnswerToken, Source
from mqan_core.ask.options import Options
from mqan_core.ask.request import Request
from mqan_core.errors import InputError, MqanError
from mqan_core.example import Example
from mqan_runtime.engine import Engine
from mqan_runtime.readers import WordReader
from mqan_runtime.steps import ReadRequest
from mqan_training.model.network import Network

MAX_DIFFERENCE = 1e-4
NO_EXAMPLES: Final = (
    "parity cannot be checked without examples: give questions with a text, of tasks that have validation rows"
)
_BATCH = 16
_MAX_ANSWER_TOKENS = 50
# Two ways to go on that are so alike that float32 may choose either; what follows cannot be compared.
_TIE = 2e-5
# 8-bit products move a probability by hundredths. That turns an answer that torch hardly prefers to another, but few of
# those to which it gives this much: with fewer equal ones, scales or weights of the 8-bit graphs are wrong.
_SURE = 0.6
_LEAST_AGREEMENT = 0.85

Reference = Callable[[Sequence[Request], int], list[Answer]]  # requests and the most tokens -> torch's answers


class ParityError(MqanError):
    """A bundle does not compute what its checkpoint does; the message says where."""


@dataclass(frozen=True, slots=True)
class Parity:
    """The result of a comparison.

    The encoder's largest difference is that of a reader of words: in an output from what torch computes in float64, in
    parts of that output's largest value where that is over 1. (A trained network's reach 17; torch's own float32 is
    1e-4 from its float64 here and there.)
    """

    num_examples: int  # answered in torch, in batches and alone; all answers were equal
    num_choices: int
    num_refused: int
    num_ties: int  # answered otherwise, or from elsewhere, as likely as float32 tells
    max_probability_difference: float  # of a probability or mass
    max_encoder_difference: float | None = None
    int8_agreement: float | None = None  # share of the examples that the 8-bit graphs answer as torch does
    int8_mean_difference: float = 0.0  # of the probability of these

    def in_words(self) -> str:
        ties = f", {self.num_ties} but for ties" if self.num_ties else ""
        kinds = f" ({self.num_choices} choices, {self.num_refused} refusals)" if self.int8_agreement is not None else ""
        words = f"{self.num_examples} answers equal{ties}{kinds}"
        if self.max_encoder_difference is not None:
            words += f", encodings within {self.max_encoder_difference:.1e}"
        words += f", probabilities within {self.max_probability_difference:.1e}"
        if self.int8_agreement is None:
            return words
        return (
            f"{words}; with 8-bit products {self.int8_agreement:.1%} equal, their probabilities "
            f"{self.int8_mean_difference:.3f} apart on average"
        )


def check_parity(reference: Reference, engine: Engine, examples: Sequence[Example]) -> tuple[Parity, list[Answer]]:
    """Compare a network with a bundle opened in float32 on the CPU; return torch's answers to what can be read, too.

    ParityError: a probability or mass differs by more than 1e-4 from torch's, or an answer by a word or place that was
    less likely, or more of them than ``most_ties`` by such that were not.
    """
    read = readable(engine, examples)
    if not read:
        raise ValueError(NO_EXAMPLES)
    limit = _limit(engine)
    expected: list[Answer] = []
    worst, num_ties = 0.0, 0
    for first in range(0, len(read), _BATCH):
        batch = [request for _, request in read[first : first + _BATCH]]
        wanted = reference([request.request for request in batch], limit)
        together = engine.answer(batch, [limit] * len(batch))
        alone = [engine.answer([request], [limit])[0] for request in batch]
        expected += wanted
        for (example, _), torch_answer, *others in zip(read[first:], wanted, together, alone, strict=False):
            difference, is_tie = _compare(example.id, torch_answer, others)
            worst, num_ties = max(worst, difference), num_ties + is_tie
    most = most_ties(len(read))
    if num_ties > most:
        raise ParityError(
            f"{num_ties} of {len(read)} answers differ where two ways are equally likely, at most {most} may: the "
            "graphs choose otherwise than torch"
        )
    num_choices = sum(bool(answer.choices) for answer in expected)
    num_refused = sum(not answer.answered for answer in expected)
    return Parity(len(read), num_choices, num_refused, num_ties, worst), expected


def agreement(report: Parity, expected: Sequence[Answer], int8_engine: Engine, examples: Sequence[Example]) -> Parity:
    """Return a report with how far 8-bit products agree.

    Of all answers this depends on how sure the model is, so what is enough is for the report's reader to judge. Only
    those that torch is sure of have to agree. ParityError: a number is not finite, or fewer than 85 % of the answers to
    which torch gives 0.6 or more are torch's. (One always may differ.)
    """
    limit = _limit(int8_engine)
    found: list[Answer] = []
    for example, request in readable(int8_engine, examples):
        (answer,) = int8_engine.answer([request], [limit])
        if not largest(_numbers(answer)) <= 1 + MAX_DIFFERENCE:
            raise ParityError(f"example {example.id}: with 8-bit products a probability is not a number from 0 to 1")
        found.append(answer)
    pairs = list(zip(expected, found, strict=True))
    sure = [pair for pair in pairs if pair[0].probability >= _SURE]
    num_other = sum(not _says_the_same(a, b) for a, b in sure)
    if num_other > max(1, (1 - _LEAST_AGREEMENT) * len(sure)):
        raise ParityError(
            f"with 8-bit products {num_other} of the {len(sure)} answers to which torch gives {_SURE} or more are "
            f"others, at least {_LEAST_AGREEMENT:.0%} have to be equal"
        )
    same = [abs(a.probability - b.probability) for a, b in pairs if _says_the_same(a, b)]
    mean = sum(same) / max(len(same), 1)
    return replace(report, int8_agreement=len(same) / len(found), int8_mean_difference=mean)


def check_words_reader(report: Parity, network: Network, engine: Engine, examples: Sequence[Example]) -> Parity:
    """Return a report with how far the reader of words is from what torch computes in float64.

    By more than 1e-4 of an output's largest value it raises ``ParityError``.
    """
    exact = copy.deepcopy(network).double()
    read = [request.request for _, request in readable(engine, examples)]
    batches = (read[first : first + _BATCH] for first in range(0, len(read), _BATCH))
    difference = largest(_encoder_difference(exact, engine, batch) for batch in batches)
    if not difference <= MAX_DIFFERENCE:
        raise ParityError(
            f"the encoders differ by {difference:.2e}, at most {MAX_DIFFERENCE:.0e} is allowed: export another "
            "checkpoint of the run, whose rounding errors are others"
        )
    return replace(report, max_encoder_difference=difference)


def readable(engine: Engine, examples: Sequence[Example]) -> list[tuple[Example, ReadRequest]]:
    """Return the examples that the engine can read: not blank, no question that no window holds."""
    read = []
    for example in examples:
        try:
            read.append((example, engine.read(example.context, example.question, Options(choices=example.choices))))
        except InputError:
            continue
    return read


def answer_difference(left: Answer, right: Answer) -> float | None:
    """Return the largest difference of a probability or mass; None when the answers are not the same words."""
    if (left.text, left.answered) != (right.text, right.answered):
        return None
    if [t.piece for t in left.tokens] != [t.piece for t in right.tokens]:
        return None
    differences = [left.probability - right.probability, left.refusal - right.refusal]
    for a, b in zip(left.tokens, right.tokens, strict=True):
        differences.append(a.probability - b.probability)
        differences += [getattr(a.masses, source) - getattr(b.masses, source) for source in Source]
    by_label = (sorted(answer.choices, key=lambda choice: choice.label) for answer in (left, right))
    return largest((*differences, *(a.probability - b.probability for a, b in zip(*by_label, strict=True))))


def largest(differences: Iterable[float]) -> float:
    """Return the largest absolute value; infinity where one is not a number, which ``max`` would pass over."""
    return max((abs(value) if math.isfinite(value) else math.inf for value in differences), default=0.0)


def most_ties(num_examples: int) -> int:
    """Return in how many answers float32 may choose otherwise between equals: they are rare in a network that works."""
    return max(1, num_examples // 100)


def check_places(name: str, expected: Answer, found: Sequence[Answer]) -> bool:
    """Return whether words of the bundle's answers are from elsewhere than torch's, though no less likely.

    If they are less likely, it raises ``ParityError``.
    """
    others = [answer for answer in found if _places(answer) != _places(expected)]
    for other in others:
        if not all(map(_is_tie_of_places, expected.tokens, other.tokens)):
            raise ParityError(
                f"example {name}: torch takes {expected.text!r} from {_places(expected)}, the bundle from "
                f"{_places(other)}"
            )
    return bool(others)


def _limit(engine: Engine) -> int:
    return min(_MAX_ANSWER_TOKENS, engine.max_answer_tokens)


def _compare(name: str, expected: Answer, found: Sequence[Answer]) -> tuple[float, bool]:
    """Return the largest difference of an example's answers, and whether they differ by a tie."""
    worst, same = 0.0, []
    for other in found:
        difference = answer_difference(expected, other)
        if difference is None and _is_tie(expected, other):
            continue
        if difference is None or not difference <= MAX_DIFFERENCE:
            raise ParityError(
                f"example {name}: torch answers {expected.text!r}, the bundle {other.text!r} "
                f"(largest difference of a probability: {difference})"
            )
        same.append(other)
        worst = max(worst, difference)
    return worst, check_places(name, expected, same) or len(same) < len(found)


def _is_tie(left: Answer, right: Answer) -> bool:
    """Return whether the first words that differ were, within float32's rounding, equally likely.

    Then neither was likelier than one half, and what was said before them was as likely in both. A label is one choice,
    however many words it has.
    """
    if left.choices:
        difference = abs(left.probability - right.probability)
        return difference < _TIE and max(left.probability, right.probability) <= 0.5 + _TIE
    for a, b in zip(left.tokens, right.tokens, strict=False):
        difference = abs(a.probability - b.probability)
        if a.piece != b.piece:
            return difference < _TIE and max(a.probability, b.probability) <= 0.5 + _TIE
        if not difference <= MAX_DIFFERENCE:
            return False
    return False


def _says_the_same(left: Answer, right: Answer) -> bool:
    return (left.text, left.answered) == (right.text, right.answered)


def _numbers(answer: Answer) -> Iterator[float]:
    yield from (answer.probability, answer.refusal)
    for token in answer.tokens:
        yield from (token.probability, token.masses.context, token.masses.question, token.masses.vocabulary)
    for choice in answer.choices:
        yield from (choice.probability, choice.among_choices, choice.against_refusal)


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
    masses: list[float] = [getattr(a.masses, source) for a in (left, right) for source in (left.source, right.source)]
    return min(masses) >= left.probability / 3 - MAX_DIFFERENCE


def _encoder_difference(network: Network, engine: Engine, requests: Sequence[Request]) -> float:
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
