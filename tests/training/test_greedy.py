"""Greedy decoding chooses the best word of the whole mixture, and says exactly where it came from."""

import random
from collections.abc import Callable

import pytest
import torch

from mqan_core.answer.trace import TraceField
from mqan_core.ask.request import Request, read_request
from mqan_training.model.greedy import GreedyStep, greedy_trace
from mqan_training.model.network import Network


@pytest.fixture
def requests(tiny_network: Network, sentences: Callable[[random.Random, int], str]) -> list[Request]:
    rng = random.Random(4)
    texts = [(sentences(rng, rng.randint(1, 25)), sentences(rng, rng.randint(1, 9))) for _ in range(24)]
    return [read_request(tiny_network.vocabulary, *pair) for pair in texts]


@torch.no_grad()
def test_each_choice_is_the_argmax_of_teacher_forcing(tiny_network: Network, requests: list[Request]) -> None:
    """Feed the greedy answer back under teacher forcing: the same words are best, with the same probabilities."""
    decoder, vocabulary = tiny_network.mqan.decoder, tiny_network.vocabulary
    generator_inputs = tiny_network.generator_inputs()
    for request in requests:
        encoded, slots = tiny_network.encode_requests([request], torch.device("cpu"))
        step = GreedyStep(decoder)
        trace = greedy_trace(step, encoded, slots, step.start(encoded, 9), 9)[0]
        inputs: list[torch.Tensor] = [decoder.start]
        for row in trace[:-1].tolist():
            slot, piece = int(row[TraceField.SLOT]), int(row[TraceField.PIECE])
            inputs.append(slots.slot_inputs_BUD[0, slot] if slot >= 0 else generator_inputs[piece])
        mixture = decoder(torch.stack(inputs)[None], encoded)
        for t, row in enumerate(trace.tolist()):
            gamma, lambda_ = mixture.gamma_BA[0, t].item(), mixture.lambda_BA[0, t].item()
            p_of: dict[str, float] = {}
            for i, word in enumerate(vocabulary.pieces):
                p_of[word] = gamma * mixture.p_vocab_BAV[0, t, i].item()
            for token, alpha in zip(request.context_tokens, mixture.p_context_BAC[0, t].tolist(), strict=True):
                p_of[token.key] = p_of.get(token.key, 0.0) + (1 - gamma) * lambda_ * alpha
            for token, alpha in zip(request.question_tokens, mixture.p_question_BAQ[0, t].tolist(), strict=True):
                p_of[token.key] = p_of.get(token.key, 0.0) + (1 - gamma) * (1 - lambda_) * alpha
            slot = int(row[TraceField.SLOT])
            chosen = request.slots.pieces[slot] if slot >= 0 else vocabulary.pieces[int(row[TraceField.PIECE])]
            assert p_of[chosen] == pytest.approx(max(p_of.values()), abs=1e-4)
            assert row[TraceField.PROBABILITY] == pytest.approx(p_of[chosen], abs=1e-4)
            parts = row[TraceField.FROM_CONTEXT] + row[TraceField.FROM_QUESTION] + row[TraceField.FROM_VOCABULARY]
            assert parts == pytest.approx(row[TraceField.PROBABILITY], abs=1e-6)
            assert sum(p_of.values()) == pytest.approx(1, abs=1e-4)
