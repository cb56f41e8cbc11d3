"""The training loss against the mixture worked out by hand, and greedy answers in batches."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from mqan_core.ask.request import Request, read_request
from mqan_core.example import Example
from mqan_core.text.tokens import read_tokens, word_of
from mqan_core.text.vocab import END, Vocabulary
from mqan_training.losses import value_of, word_losses
from mqan_training.model.embeddings import StaticVectors
from mqan_training.model.network import Network
from mqan_training.recipe import ModelConfig
from mqan_training.words import WordBatch, WordCollator, prepare_words

PIECES = (" red ", " never ", " is ")
TRIPLES = (
    ("The boat is red, the red boat.", "What is red?", "the red boat"),  # all of it can be copied
    ("It rains.", "Will it end?", "never, unseen is"),  # "unseen" and "," have no source
    ("Ann and Bob", "Red or blue?", "blue"),
)
UNREACHABLE = {" unseen ", ", "}


@pytest.fixture
def network() -> Network:
    words = ("the", "boat", "is", "red", "it", "ann")
    rows = np.random.default_rng(2).integers(-127, 128, (len(words), 6), dtype=np.int8)
    vectors = StaticVectors(words, rows, np.full(len(words), 0.02, np.float32))
    config = ModelConfig(width=12, ffn_width=10, num_heads=2, head_width=5, ngram_buckets=40, ngram_width=4)
    torch.manual_seed(6)
    network = Network(config, vectors, Vocabulary(PIECES, words)).eval()
    with torch.no_grad():
        for parameter in network.mqan.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2.0)  # far from uniform
    return network


def make_batch(network: Network, *triples: tuple[str, str, str]) -> WordBatch:
    read = [prepare_words(Example("t", "0", c, q, (a,)), 99, 99) for c, q, a in triples]
    collator = WordCollator(network.vocabulary, network.embedder.num_buckets)
    return collator.collate([example for example in read if example is not None])


def loss_of(network: Network, *triples: tuple[str, str, str]) -> torch.Tensor:
    return value_of(word_losses(network, make_batch(network, *triples))["answer"])


def num_targets(network: Network, *triples: tuple[str, str, str]) -> int:
    return int(word_losses(network, make_batch(network, *triples))["answer"][0].number)


@torch.no_grad()
def losses_by_hand(network: Network, triple: tuple[str, str, str]) -> list[float]:
    context, question, answer = triple
    decoder = network.mqan.decoder
    encoded, _ = network.encode_requests([read_request(network.vocabulary, context, question)], torch.device("cpu"))
    context_pieces, question_pieces = ([t.key for t in read_tokens(text)] for text in (context, question))
    targets = [*(t.key for t in read_tokens(answer)), END]
    state = decoder.initial_state(encoded, len(targets))
    read = decoder.start[None]
    losses = []
    for i, target in enumerate(targets):
        mixture, state = decoder.step(read, torch.tensor([i]), state, encoded)
        gamma, lambda_ = mixture.gamma_BA.item(), mixture.lambda_BA.item()
        p = 0.0
        for piece, share in zip(network.vocabulary.pieces, mixture.p_vocab_BAV[0].tolist(), strict=True):
            p += gamma * share * (piece == target)
        for piece, share in zip(context_pieces, mixture.p_context_BAC[0].tolist(), strict=True):
            p += (1 - gamma) * lambda_ * share * (piece == target)
        for piece, share in zip(question_pieces, mixture.p_question_BAQ[0].tolist(), strict=True):
            p += (1 - gamma) * (1 - lambda_) * share * (piece == target)
        if target in UNREACHABLE:
            assert p == 0
        else:
            losses.append(-math.log(p))
        read = decoder.project(network.embedder.embed_words([word_of(target)]))
    return losses


@pytest.mark.parametrize("chosen", [(0,), (1,), (2,), (0, 1, 2)], ids=["copied", "generated", "question", "padded"])
def test_the_loss_is_the_mean_of_minus_log_of_the_mixture(network: Network, chosen: tuple[int, ...]) -> None:
    triples = [TRIPLES[i] for i in chosen]
    expected = [value for triple in triples for value in losses_by_hand(network, triple)]
    assert num_targets(network, *triples) == len(expected)
    assert loss_of(network, *triples).item() == pytest.approx(sum(expected) / len(expected), abs=1e-4)
    assert max(expected) - min(expected) > 0.5  # a guard: the mixture tells targets apart


def test_without_a_question_pointer_its_words_teach_nothing(network: Network) -> None:
    config = replace(network.mqan.config, question_pointer=False)
    without = Network(config, network.embedder.vectors, network.vocabulary).eval()
    assert num_targets(network, TRIPLES[2]) == 2  # "blue" and the end
    assert num_targets(without, TRIPLES[2]) == 1


def test_learning_the_batch_brings_its_answers(network: Network) -> None:
    """The gradient of the loss leads to a network that answers as it was taught."""
    triples = [TRIPLES[0], TRIPLES[2]]
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(120):
        loss = loss_of(network, *triples)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 0.05:
            break
    requests = [read_request(network.vocabulary, context, question) for context, question, _ in triples]
    assert [a.text.lower() for a in network.greedy_answers(requests, 6)] == [answer for *_, answer in triples]


# --- Greedy answers


@pytest.fixture
def requests(tiny_network: Network, sentences: Callable[[random.Random, int], str]) -> list[Request]:
    rng = random.Random(8)
    texts = [(sentences(rng, rng.randint(1, 20)), sentences(rng, rng.randint(1, 8))) for _ in range(10)]
    return [read_request(tiny_network.vocabulary, *pair) for pair in texts]


def test_answers_are_those_of_evaluation_whatever_the_mode(tiny_network: Network, requests: list[Request]) -> None:
    expected = tiny_network.greedy_answers(requests, 5)
    tiny_network.train()
    try:
        assert tiny_network.greedy_answers(requests, 5) == expected
        assert tiny_network.training
    finally:
        tiny_network.eval()
    assert all(len(answer.tokens) <= 5 for answer in expected)
