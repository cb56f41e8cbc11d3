"""The rungs of the paper's table 2: one code, each answering like the whole model."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from mqan_core.answer.types import Answer, Source
from mqan_core.ask.request import read_request
from mqan_training.model.network import Network
from tests.conftest import make_network

MakeSentence = Callable[[random.Random, int], str]
LADDER: dict[str, dict[str, Any]] = {
    "s2s": {"num_layers": 0, "coattention": False, "question_pointer": False},
    "+satt": {"num_layers": 1, "coattention": False, "question_pointer": False},
    "+catt": {"num_layers": 1, "question_pointer": False},
    "+qptr": {},
}


@pytest.fixture(scope="module", params=LADDER)
def rung(request: pytest.FixtureRequest) -> Network:
    return make_network(**LADDER[request.param])


def texts(sentences: MakeSentence, count: int) -> list[tuple[str, str]]:
    rng = random.Random(21)
    return [("x" + sentences(rng, rng.randint(1, 30)), "y" + sentences(rng, rng.randint(1, 9))) for _ in range(count)]


def answers(rung: Network, pairs: list[tuple[str, str]]) -> list[Answer]:
    return rung.greedy_answers([read_request(rung.vocabulary, *pair) for pair in pairs], 12)


def test_only_the_whole_model_puts_mass_on_the_question(rung: Network, sentences: MakeSentence) -> None:
    tokens = [token for answer in answers(rung, texts(sentences, 40)) for token in answer.tokens]
    sources = {token.source for token in tokens}
    assert Source.CONTEXT in sources
    assert any(token.masses.vocabulary > 0.01 for token in tokens)
    if rung.mqan.config.question_pointer:
        assert any(token.masses.question > 0.01 for token in tokens)
    else:
        assert all(token.masses.question == 0.0 for token in tokens)
        assert Source.QUESTION not in sources
