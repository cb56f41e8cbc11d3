"""Check that a bundle with a pretrained reader computes what its checkpoint does: words, choices, refusals, masses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from mqan_core.answer.types import Answer
from mqan_core.ask.options import Options
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_export.parity import (
    MAX_DIFFERENCE,
    NO_EXAMPLES,
    ParityError,
    answer_difference,
    check_places,
    check_ties,
    largest,
)
from mqan_runtime.engine import Engine
from mqan_runtime.rows import ReadRequest
from mqan_training.torch_answers import answer_batch
from mqan_training.trained import Trained

_BATCH = 16
_MAX_ANSWER_TOKENS = 50
# Two ways to go on that are so alike that float32 may choose either; what follows cannot be compared.
_TIE = 2e-5
# 8-bit products move a probability by hundredths. That turns an answer that torch hardly prefers to another, but few of
# those to which it gives this much: with fewer equal ones, scales or weights of the 8-bit graphs are wrong.
_SURE = 0.6
_LEAST_AGREEMENT = 0.85


@dataclass(frozen=True, slots=True)
class AnsweringParity:
    """The result of a comparison.

    Attributes:
        num_examples: examples answered in torch, in batches and alone; all answers were equal.
        num_choices: those of them with choices.
        num_refused: those that were refused.
        num_ties: those that torch and the bundle answer otherwise, or from elsewhere, because two ways were as likely
            as float32 tells.
        max_probability_difference: largest absolute difference of a probability or mass.
        int8_agreement: share of the examples that the 8-bit graphs answer as torch does.
        int8_mean_difference: mean difference of the probability of these.
    """

    num_examples: int
    num_choices: int
    num_refused: int
    num_ties: int
    max_probability_difference: float
    int8_agreement: float = 0.0
    int8_mean_difference: float = 0.0

    def in_words(self) -> str:
        """Return the report as a line."""
        ties = f", {self.num_ties} but for ties" if self.num_ties else ""
        return (
            f"{self.num_examples} answers equal{ties} ({self.num_choices} choices, {self.num_refused} refusals), "
            f"probabilities within {self.max_probability_difference:.1e}; with 8-bit products "
            f"{self.int8_agreement:.1%} equal, their probabilities {self.int8_mean_difference:.3f} apart on average"
        )


def check_answering_parity(
    trained: Trained, generator_inputs: Tensor, engine: Engine, examples: Sequence[Example]
) -> tuple[AnsweringParity, list[Answer]]:
    """Compare a network with a bundle opened in float32 on the CPU.

    Args:
        trained: what was exported, rounded as the bundle holds it.
        generator_inputs: the decoder's inputs for the generator's words, [V, D].
        engine: the bundle in float32.
        examples: real ones.

    Returns:
        What was compared, and torch's answers to the examples that can be read.

    Raises:
        ParityError: a probability or mass differs by more than 1e-4 from torch's, or an answer by a word or its
            place that was no less likely, or more answers by such than ``most_ties``.
        ValueError: no example can be read.
    """
    read = readable(engine, examples)
    if not read:
        raise ValueError(NO_EXAMPLES)
    limit = _limit(engine)
    expected: list[Answer] = []
    worst, num_ties = 0.0, 0
    for first in range(0, len(read), _BATCH):
        batch = [request for _, request in read[first : first + _BATCH]]
        plain = [request.request for request in batch]
        wanted = answer_batch(trained.network, trained.vocabulary, trained.layout, plain, limit, generator_inputs)
        together = engine.answer(batch, [limit] * len(batch))
        alone = [engine.answer([request], [limit])[0] for request in batch]
        expected += wanted
        for (example, _), torch_answer, *others in zip(read[first:], wanted, together, alone, strict=False):
            difference, is_tie = _compare(example.id, torch_answer, others)
            worst, num_ties = max(worst, difference), num_ties + is_tie
    check_ties(num_ties, len(read))
    num_choices = sum(bool(answer.choices) for answer in expected)
    num_refused = sum(not answer.answered for answer in expected)
    return AnsweringParity(len(read), num_choices, num_refused, num_ties, worst), expected


def agreement(
    report: AnsweringParity, expected: Sequence[Answer], int8_engine: Engine, examples: Sequence[Example]
) -> AnsweringParity:
    """Return a report with how far 8-bit products agree.

    Of all answers this depends on how sure the model is, so what is enough is for the report's reader to judge. Only
    those that torch is sure of have to agree.

    Args:
        report: of the float32 graphs.
        expected: torch's answers to the examples that can be read.
        int8_engine: the bundle with 8-bit products.
        examples: the same.

    Raises:
        ParityError: a number is not finite, or fewer than 85 % of the answers to which torch gives 0.6 or more are
            torch's. (One always may differ.)
    """
    limit = _limit(int8_engine)
    found: list[Answer] = []
    for example, request in readable(int8_engine, examples):
        (answer,) = int8_engine.answer([request], [limit])
        if not largest(_numbers(answer)) <= 1 + MAX_DIFFERENCE:
            raise ParityError(f"example {example.id}: with 8-bit products a probability is not a number from 0 to 1")
        found.append(answer)
    pairs = list(zip(expected, found, strict=True))
    _check_sure([pair for pair in pairs if pair[0].probability >= _SURE])
    same = [abs(a.probability - b.probability) for a, b in pairs if _says_the_same(a, b)]
    mean = sum(same) / max(len(same), 1)
    return replace(report, int8_agreement=len(same) / len(found), int8_mean_difference=mean)


def _check_sure(pairs: Sequence[tuple[Answer, Answer]]) -> None:
    """Check torch's answers and those with 8-bit products to what torch is sure of."""
    num_other = sum(not _says_the_same(a, b) for a, b in pairs)
    if num_other > max(1, (1 - _LEAST_AGREEMENT) * len(pairs)):
        raise ParityError(
            f"with 8-bit products {num_other} of the {len(pairs)} answers to which torch gives {_SURE} or more are "
            f"others, at least {_LEAST_AGREEMENT:.0%} have to be equal"
        )


def _says_the_same(left: Answer, right: Answer) -> bool:
    return (left.text, left.answered) == (right.text, right.answered)


def _numbers(answer: Answer) -> Iterator[float]:
    """Yield all probabilities and masses of an answer."""
    yield from (answer.probability, answer.refusal)
    for token in answer.tokens:
        yield from (token.probability, token.masses.context, token.masses.question, token.masses.vocabulary)
    for choice in answer.choices:
        yield from (choice.probability, choice.among_choices, choice.against_refusal)


def readable(engine: Engine, examples: Sequence[Example]) -> list[tuple[Example, ReadRequest]]:
    """Return the examples that the engine can read: not blank, no question that no window holds."""
    return [pair for example in examples if (pair := _read(engine, example)) is not None]


def _limit(engine: Engine) -> int:
    return min(_MAX_ANSWER_TOKENS, engine.max_answer_tokens)


def decision_difference(left: Answer, right: Answer) -> float | None:
    """Return the largest difference of a probability or mass; None when the answers are not the same words."""
    worst = answer_difference(left, right)
    if worst is None or left.answered != right.answered:
        return None
    by_label = (sorted(answer.choices, key=lambda choice: choice.label) for answer in (left, right))
    pairs = zip(*by_label, strict=True)
    return largest((worst, left.refusal - right.refusal, *(a.probability - b.probability for a, b in pairs)))


def _read(engine: Engine, example: Example) -> tuple[Example, ReadRequest] | None:
    try:
        return example, engine.read(example.context, example.question, Options(choices=example.choices))
    except InputError:
        return None


def _compare(name: str, expected: Answer, found: Sequence[Answer]) -> tuple[float, bool]:
    """Return the largest difference of an example's answers, and whether they differ by a tie."""
    worst, same = 0.0, []
    for other in found:
        difference = decision_difference(expected, other)
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
