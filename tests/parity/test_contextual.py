"""A bundle with a contextual encoder computes what torch does, in windows too, and can be trained on from."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mqan_core.bundle import CONTEXTUAL, open_bundle
from mqan_core.errors import BundleError
from mqan_core.example import Example
from mqan_export.parity import check_parity
from mqan_export.weights import pretrained_of_bundle
from mqan_runtime.engine import Engine
from mqan_runtime.quantize import quantize_contextual
from mqan_runtime.session import check_graph
from mqan_training.model.network import Network
from mqan_training.transfer import network_of
from tests.conftest import bundle_of, make_network

SIZES: dict[str, Any] = {"contextual_layers": 2, "contextual_heads": 3, "contextual_ffn_width": 32}
MODEL = {**SIZES, "self_alignment": True}


@pytest.fixture(scope="module")
def network() -> Network:
    network = make_network(**MODEL)
    assert network.contextual is not None
    with torch.no_grad():
        network.contextual.output.weight.normal_(std=0.1)
        network.contextual.positions.normal_(std=0.3)
        network.contextual.kinds.normal_(std=0.3)
    return network


@pytest.fixture(scope="module")
def bundle(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle_of(network, tmp_path_factory)


def examples(sentences: Callable[[random.Random, int], str], lengths: list[int]) -> list[Example]:
    rng = random.Random(3)
    return [
        Example("squad", str(i), sentences(rng, length), sentences(rng, rng.randint(2, 9)), ("x",))
        for i, length in enumerate(lengths)
    ]


def test_the_bundle_answers_as_torch(
    network: Network, bundle: Path, sentences: Callable[[random.Random, int], str]
) -> None:
    engine = Engine.open(bundle, provider="cpu", precision="float32")
    int8 = Engine.open(bundle, provider="cpu", precision="int8")
    report = check_parity(network, engine, int8, examples(sentences, [3, 40, 11, 250, 330, 17, 640]))
    assert report.num_examples == 7


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_answer_does_not_move_with_its_neighbours(
    bundle: Path, precision: str, sentences: Callable[[random.Random, int], str]
) -> None:
    engine = Engine.open(bundle, provider="cpu", precision=precision)  # type: ignore[arg-type]
    requests = [engine.read(e.context, e.question) for e in examples(sentences, [5, 90, 310, 12, 33, 60])]
    together = engine.answer(requests, [12] * len(requests))
    assert together == [engine.answer([request], [12])[0] for request in requests]


def test_windows_read_together_add_what_they_add_alone(
    bundle: Path, sentences: Callable[[random.Random, int], str]
) -> None:
    alone = Engine.open(bundle, provider="cpu", precision="float32")
    together = Engine(open_bundle(bundle), provider="cpu", precision="float32", places=[(8, 1024)])
    requests = [alone.read(e.context, e.question) for e in examples(sentences, [5, 310, 12, 640, 60])]
    assert alone.windows is not None
    assert together.windows is not None
    padded = together.windows.read(requests)
    for name, expected in alone.windows.read(requests).items():
        np.testing.assert_allclose(padded[name], expected, atol=2e-6)
    assert [a.text for a in together.answer(requests, [9] * 5)] == [a.text for a in alone.answer(requests, [9] * 5)]


def test_its_attention_is_one_operator_a_layer(bundle: Path) -> None:
    opened = open_bundle(bundle)
    assert opened.contextual is not None
    model = check_graph(opened.contextual.graph, CONTEXTUAL)
    quantize_contextual(model, opened.input_ranges[CONTEXTUAL])
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("QAttention") == MODEL["contextual_layers"]
    assert not {"MatMul", "Softmax"} & set(kinds)


def test_training_can_go_on_from_the_bundle(network: Network, bundle: Path) -> None:
    again = network_of(pretrained_of_bundle(open_bundle(bundle), "bundle"))
    expected = network.state_dict()
    for name, tensor in again.state_dict().items():
        if not name.startswith("contextual.span."):  # for training alone
            torch.testing.assert_close(tensor, expected[name], atol=2e-3, rtol=1e-3)  # float16 in the bundle
    assert again.contextual is not None
    assert again.contextual.pieces.word_pieces.pieces == network.contextual.pieces.word_pieces.pieces  # type: ignore[union-attr]


def test_a_bundle_without_its_contextual_graph_is_refused(bundle: Path, tmp_path: Path) -> None:
    for file in bundle.iterdir():
        if file.name != CONTEXTUAL:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(BundleError, match=f"cannot read {CONTEXTUAL}"):
        open_bundle(tmp_path)
