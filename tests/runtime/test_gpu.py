"""On a GPU the captured loop gives the words that a CPU gives in float32."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mqan_runtime.device import DeviceLoop
from mqan_runtime.engine import Engine
from mqan_runtime.session import CUDA

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]


def test_words_are_those_of_a_cpu(tiny_bundle: Path, sentences: Callable[[random.Random, int], str]) -> None:
    gpu = Engine.open(tiny_bundle, provider="cuda")
    cpu = Engine.open(tiny_bundle, provider="cpu")
    assert gpu.provider == CUDA
    assert isinstance(gpu.loop, DeviceLoop)
    rng = random.Random(5)
    texts = [(sentences(rng, rng.randint(1, 200)), sentences(rng, rng.randint(1, 20))) for _ in range(1000)]
    for first in range(0, len(texts), 20):
        requests = [cpu.read(*pair) for pair in texts[first : first + 20]]
        limits = [rng.choice((1, 3, 10, 40)) for _ in requests]
        alone = [gpu.answer([request], [limit])[0] for request, limit in zip(requests, limits, strict=True)]
        for expected, *found in zip(cpu.answer(requests, limits), gpu.answer(requests, limits), alone, strict=True):
            for answer in found:
                assert answer.text == expected.text
                assert answer.spans == expected.spans
                assert answer.probability == pytest.approx(expected.probability, abs=1e-3)
