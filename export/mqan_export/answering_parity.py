"""Check that a bundle with a pretrained reader computes what its checkpoint does: words, choices, refusals, masses."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from mqan_core.answer import Answer
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_export.parity import MAX_DIFFERENCE, ParityError, answer_difference
from mqan_runtime.answering_engine import AnsweringEngine
from mqan_runtime.window_texts import WindowedRequest
from mqan_training.torch_answers import answer_batch
from mqan_training.trained import Trained

_BATCH = 16
_MAX_ANSWER_TOKENS = 50
# Two ways to go on that are so alike that float32 may choose either; what follows cannot be compared.
_TIE = 2e-5


@dataclass(frozen=True, slots=True)
class AnsweringParity:
    """What was compared.

    Attributes:
        num_examples: examples answered in torch, in batches and alone; all answers were equal.
        num_choices: those of them with choices.
        num_refused: those that were refused.
        num_ties: those that torch and the bundle answer otherwise because two words were as likely as float32 tells.
        max_probability_difference: largest absolute difference of a probability or mass.
        int8_agreement: share of the examples that the 8-bit graphs answer as torch does.
        int8_mean_difference: mean difference of the probability of these.
    """

    num_examples: int
    num_choices: int
    num_refused: int
    num_ties: int
    max_probability_difference: float
    int8_agreement: float
    int8_mean_difference: float


def check_answering_parity(
    trained: Trained,
    generator_inputs: Tensor,
    engine: AnsweringEngine,
    int8_engine: AnsweringEngine,
    examples: Sequence[Example],
) -> AnsweringParity:
    """Compare a network with a bundle opened by engines on the CPU.

    Args:
        trained: what was exported, rounded as the bundle holds it.
        generator_inputs: the decoder's inputs for the generator's words, [V, D].
        engine: the bundle in float32.
        int8_engine: the same with 8-bit products.
        examples: real ones.

    Raises:
        ParityError: in float32 a probability or mass differs by more than 1e-4 from torch's, or an answer by a word.
            How far 8-bit products agree is for the reader of the report to judge: it depends on how sure the model is.
        ValueError: no example can be read.
    """
    read = [pair for example in examples if (pair := _read(engine, example)) is not None]
    if not read:
        raise ValueError("parity cannot be checked without examples")
    limit = min(_MAX_ANSWER_TOKENS, engine.max_answer_tokens)
    expected: list[Answer] = []
    worst, num_ties = 0.0, 0
    int8: list[Answer] = []
    for first in range(0, len(read), _BATCH):
        batch = [request for _, request in read[first : first + _BATCH]]
        plain = [request.request for request in batch]
        wanted = answer_batch(trained.network, trained.vocabulary, trained.layout, plain, limit, generator_inputs)
        together = engine.answer(batch, [limit] * len(batch))
        alone = [engine.answer([request], [limit])[0] for request in batch]
        int8 += int8_engine.answer(batch, [limit] * len(batch))
        expected += wanted
        for (example, _), torch_answer, *others in zip(read[first:], wanted, together, alone, strict=False):
            for other in others:
                difference = decision_difference(torch_answer, other)
                if difference is None and _is_tie(torch_answer, other):
                    num_ties += 1
                elif difference is None or difference > MAX_DIFFERENCE:
                    raise ParityError(
                        f"example {example.id}: torch answers {torch_answer.text!r}, the bundle {other.text!r} "
                        f"(largest difference of a probability: {difference})"
                    )
                worst = max(worst, difference or 0.0)
    same = [
        abs(a.probability - b.probability)
        for a, b in zip(expected, int8, strict=True)
        if (a.text, a.answered) == (b.text, b.answered)
    ]
    return AnsweringParity(
        len(read),
        sum(bool(answer.choices) for answer in expected),
        sum(not answer.answered for answer in expected),
        num_ties,
        worst,
        len(same) / len(read),
        sum(same) / max(len(same), 1),
    )


def decision_difference(left: Answer, right: Answer) -> float | None:
    """Return the largest difference of a probability or mass; None when the answers are not the same words."""
    worst = answer_difference(left, right)
    if worst is None or left.answered != right.answered:
        return None
    pairs = zip(left.choices, right.choices, strict=True)
    of_choices = max((abs(a.probability - b.probability) for a, b in pairs), default=0.0)
    return max(worst, of_choices, abs(left.refusal - right.refusal))


def _read(engine: AnsweringEngine, example: Example) -> tuple[Example, WindowedRequest] | None:
    try:
        return example, engine.read(example.context, example.question, example.choices)
    except InputError:  # blank, or a question that no window holds
        return None


def _is_tie(left: Answer, right: Answer) -> bool:
    """Return whether the first words that differ were, within float32's rounding, equally likely."""
    for a, b in zip(left.tokens, right.tokens, strict=False):
        if a.piece != b.piece:
            return abs(a.probability - b.probability) < _TIE
    return False
