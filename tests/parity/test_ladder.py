"""The rungs of the paper's table 2: one code, each trained, exported and run like the whole model."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mqan_core.answer import Source
from mqan_core.example import Example
from mqan_export.parity import answer_difference, check_parity
from mqan_runtime.engine import Engine
from mqan_training.model.network import Network

MakeSentence = Callable[[random.Random, int], str]


@pytest.fixture(scope="module")
def engine(rung_bundle: Path) -> Engine:
    return Engine.open(rung_bundle, provider="cpu")


def texts(sentences: MakeSentence, count: int) -> list[tuple[str, str]]:
    rng = random.Random(21)
    return [("x" + sentences(rng, rng.randint(1, 30)), "y" + sentences(rng, rng.randint(1, 9))) for _ in range(count)]


def test_the_bundle_computes_what_torch_does(rung: Network, engine: Engine, sentences: MakeSentence) -> None:
    examples = [
        Example("t", str(i), context, question, ("",)) for i, (context, question) in enumerate(texts(sentences, 40))
    ]
    report = check_parity(rung, engine, examples)
    assert report.num_examples == 40
    assert report.max_encoder_difference < 1e-4
    assert report.max_probability_difference < 1e-4


def test_an_answer_is_the_same_alone_and_in_any_batch(engine: Engine, sentences: MakeSentence) -> None:
    requests = [engine.read(*pair) for pair in texts(sentences, 40)]
    alone = [engine.answer([request], [12])[0] for request in requests]
    together = engine.answer(requests, [12] * len(requests))
    for one, other in zip(alone, together, strict=True):
        difference = answer_difference(one, other)
        assert difference is not None
        assert difference < 1e-5


def test_only_the_whole_model_puts_mass_on_the_question(rung: Network, engine: Engine, sentences: MakeSentence) -> None:
    requests = [engine.read(*pair) for pair in texts(sentences, 40)]
    tokens = [token for answer in engine.answer(requests, [12] * len(requests)) for token in answer.tokens]
    sources = {token.source for token in tokens}
    assert Source.CONTEXT in sources
    assert any(token.masses.vocabulary > 0.01 for token in tokens)
    if rung.mqan.config.question_pointer:
        assert any(token.masses.question > 0.01 for token in tokens)
    else:
        assert all(token.masses.question == 0.0 for token in tokens)
        assert Source.QUESTION not in sources


def test_the_question_still_matters(rung: Network, engine: Engine, sentences: MakeSentence) -> None:
    pairs = texts(sentences, 20)
    answers = [engine.answer([engine.read(context, question)], [12])[0] for context, question in pairs]
    others = [engine.answer([engine.read(context, "was it closed")], [12])[0] for context, _ in pairs]
    assert any(a.text != b.text or a.probability != b.probability for a, b in zip(answers, others, strict=True))
