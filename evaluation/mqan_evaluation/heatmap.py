"""Where the pointers looked: the share of each context and question token in every word of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mqan_core.answer.trace import TraceField, attribute
from mqan_core.ask.request import Request
from mqan_core.text.vocab import END_ID
from mqan_training.model.greedy import GreedyStep, greedy_trace
from mqan_training.model.network import Network


@dataclass(frozen=True, slots=True)
class WordHeat:
    """Pointer mass of one word of an answer.

    Attributes:
        vocabulary: mass that the generator had, gamma of equation 12.
        context: mass of each context token, (1 - gamma) lambda alpha^C.
        question: mass of each question token, (1 - gamma) (1 - lambda) alpha^Q.
    """

    text: str
    probability: float
    vocabulary: float
    context: Sequence[float]
    question: Sequence[float]


@dataclass(frozen=True, slots=True)
class Heatmap:
    """An answer, word by word, over the tokens of its request, which its pointers could reach."""

    request: Request
    answer: str
    words: Sequence[WordHeat]


@torch.no_grad()
def heatmap(network: Network, request: Request, max_answer_tokens: int) -> Heatmap:
    """Answer a request greedily, then read the mixture of every step off a pass with the answer given."""
    decoder = network.mqan.decoder
    encoded, slots = network.encode_requests([request], torch.device("cpu"))
    step = GreedyStep(decoder, END_ID)
    trace = greedy_trace(step, encoded, slots, step.start(encoded, max_answer_tokens + 1), max_answer_tokens + 1)[0]
    answer = attribute(trace, request, network.vocabulary, max_answer_tokens)
    inputs: list[Tensor] = [decoder.start]
    for row in trace[: max(len(answer.tokens) - 1, 0)].tolist():
        slot, piece = int(row[TraceField.SLOT]), int(row[TraceField.PIECE])
        inputs.append(slots.slot_inputs_BUD[0, slot] if slot >= 0 else slots.generator_inputs_VD[piece])
    mixture = decoder(torch.stack(inputs)[None], encoded)
    words = []
    for t, token in enumerate(answer.tokens):
        gamma, lambda_ = float(mixture.gamma_BA[0, t]), float(mixture.lambda_BA[0, t])
        context = (1 - gamma) * lambda_ * mixture.p_context_BAC[0, t]
        question = (1 - gamma) * (1 - lambda_) * mixture.p_question_BAQ[0, t]
        words.append(WordHeat(token.text, token.probability, gamma, context.tolist(), question.tolist()))
    return Heatmap(request, answer.text, words)
