"""On a GPU the loop, captured or not, gives the words that a CPU gives in float32, alone and in batches."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mqan_core.ask.options import Options, choices_of
from mqan_core.bundle import open_bundle
from mqan_runtime.device import DeviceLoop
from mqan_runtime.engine import Engine
from mqan_runtime.session import CUDA

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

NUMBER = 512
QUESTIONS = (
    ("what was closed in 1923?", Options()),
    ("who wrote notes?", Options(explain=True)),
    ("why was it closed?", Options(contiguous=True, alternatives=2)),
    ("is it good?", Options(choices=choices_of(["good", "bad", "the old harbour"]))),
)


@pytest.mark.parametrize("model", ["the paper's network", "the default model"])
def test_words_are_those_of_a_cpu(
    model: str, tiny_bundle: Path, repository: Path, sentences: Callable[[random.Random, int], str]
) -> None:
    is_default = model == "the default model"
    bundle = open_bundle(repository / "serving" / "bundles" / "default" if is_default else tiny_bundle)
    cpu = Engine(bundle, provider="cpu", precision="float32")
    captured, uncaptured = Engine(bundle, provider="cuda"), Engine(bundle, provider="cuda", places=())
    assert captured.provider == CUDA
    assert isinstance(captured.loop, DeviceLoop)
    assert captured.loop.num_bytes > 0, "the step was captured"
    rng = random.Random(5)
    asked = [QUESTIONS[i % len(QUESTIONS)] if is_default else (sentences(rng, 9), Options()) for i in range(NUMBER)]
    requests = [cpu.read(sentences(rng, rng.randint(1, 200)), *pair) for pair in asked]
    limits = [rng.choice((1, 3, 10, 40)) for _ in requests]
    expected = [cpu.answer([request], [limit])[0] for request, limit in zip(requests, limits, strict=True)]
    alone = [captured.answer([request], [limit])[0] for request, limit in zip(requests, limits, strict=True)]
    for found in (alone, captured.answer(requests, limits), uncaptured.answer(requests, limits)):
        for answer, wanted in zip(found, expected, strict=True):
            assert (answer.text, answer.answered, answer.spans) == (wanted.text, wanted.answered, wanted.spans)
            assert answer.probability == pytest.approx(wanted.probability, abs=1e-3)
            assert len(answer.explanation) == len(wanted.explanation)
