"""One function everywhere: torch under teacher forcing, torch greedy, and the bundle in onnxruntime."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mqan_core.example import Example
from mqan_export import parity
from mqan_export.parity import Parity, ParityError, check_parity, check_words_reader
from mqan_runtime.engine import Engine
from mqan_runtime.steps import ReadRequest
from mqan_training.model.network import Network
from tests.answering import check_same
from tests.load.test_load import make_cases

MakeSentence = Callable[[random.Random, int], str]


@pytest.fixture(scope="module")
def engine(tiny_bundle: Path) -> Engine:
    return Engine.open(tiny_bundle, provider="cpu")


def make_requests(engine: Engine, sentences: MakeSentence, count: int, seed: int) -> list[ReadRequest]:
    rng = random.Random(seed)
    return [
        engine.read("x" + sentences(rng, rng.randint(1, 40)), "y" + sentences(rng, rng.randint(1, 9)))
        for _ in range(count)
    ]


def test_the_bundle_computes_what_torch_does(tiny_network: Network, engine: Engine, sentences: MakeSentence) -> None:
    """Encoder tensors to 1e-4, all tokens equal, batched and alone.

    That torch's greedy answers equal teacher forcing is tested with the training code.
    """
    requests = make_requests(engine, sentences, 120, 1)
    examples = [Example("t", str(i), r.request.context, r.request.question, ("",)) for i, r in enumerate(requests)]
    report, _ = check_parity(tiny_network.greedy_answers, engine, examples)
    report = check_words_reader(report, tiny_network, engine, examples)
    assert report.num_examples == 120
    assert report.max_encoder_difference is not None
    assert report.max_encoder_difference < 1e-4
    assert report.max_probability_difference < 1e-4


def test_the_parity_check_notices_a_difference(tiny_network: Network, engine: Engine, sentences: MakeSentence) -> None:
    requests = make_requests(engine, sentences, 8, 2)
    examples = [Example("t", str(i), r.request.context, r.request.question, ("",)) for i, r in enumerate(requests)]
    weight = tiny_network.mqan.decoder.generator.bias
    before = weight.detach().clone()
    try:
        weight.data[5] += 3.0
        with pytest.raises(ParityError, match="torch answers"):
            check_parity(tiny_network.greedy_answers, engine, examples)
    finally:
        weight.data.copy_(before)


def test_a_network_that_computes_no_numbers_is_noticed(
    tiny_network: Network, engine: Engine, sentences: MakeSentence, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = make_requests(engine, sentences, 2, 2)
    examples = [Example("t", str(i), r.request.context, r.request.question, ("",)) for i, r in enumerate(requests)]
    monkeypatch.setattr(parity, "_encoder_difference", lambda *_: math.nan)
    with pytest.raises(ParityError, match="the encoders differ by inf"):
        check_words_reader(Parity(2, 0, 0, 0, 0.0), tiny_network, engine, examples)
    with pytest.raises(ValueError, match="parity cannot be checked without examples"):
        check_parity(tiny_network.greedy_answers, engine, [])


def test_the_length_of_others_moves_no_probability(bundle_folder: Path, sentences: MakeSentence) -> None:
    """With 8-bit products a last digit of float32 can move an 8-bit number, and that a trained model's probability."""
    engine = Engine.open(bundle_folder, provider="cpu")
    requests = [engine.read(case.context, case.question) for case in make_cases(8)]
    words = sentences(random.Random(6), 600).split()
    others = [
        engine.read(" ".join(words[:context]), " ".join(words[:question]))
        for context, question in ((100, 10), (250, 10), (550, 10), (50, 80))
    ]
    for request in requests:
        (alone,) = engine.answer([request], [3])
        for other in others:
            check_same(engine.answer([request, other], [3, 3])[0], alone)
        check_same(engine.answer([*others[:3], request], [3] * 4)[3], alone)
