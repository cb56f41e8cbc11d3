"""A graph with its weights stored in half the space computes the same."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from mqan_export.bundle import round_weights
from mqan_export.trace import store_half

rng = np.random.default_rng(0)
EXACT = rng.normal(0, 1, (40, 30)).astype(np.float16).astype(np.float32)
OTHER = rng.normal(0, 1, (30, 40)).astype(np.float32)  # float16 does not hold these
SMALL = np.ones(30, np.float32)


def make_graph() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "exact"], ["a"]),
        helper.make_node("Add", ["a", "small"], ["b"]),
        helper.make_node("MatMul", ["b", "other"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 40]) for name in ("x", "y")]
    weights = {"exact": EXACT, "small": SMALL, "other": OTHER}
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def run(model: onnx.ModelProto) -> np.ndarray:
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    output: np.ndarray = session.run(None, {"x": np.linspace(-1, 1, 80, dtype=np.float32).reshape(2, 40)})[0]
    return output


def test_a_stored_graph_computes_the_same_in_less_space() -> None:
    model = make_graph()
    expected, size = run(model), len(model.SerializeToString())
    store_half(model)
    kinds = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    assert kinds == {"exact.half": TensorProto.FLOAT16, "small": TensorProto.FLOAT, "other": TensorProto.FLOAT}
    assert len(model.SerializeToString()) < size - EXACT.size
    np.testing.assert_array_equal(run(model), expected)


def test_rounded_weights_are_what_float16_holds() -> None:
    layer = nn.Linear(50, 40)
    before = layer.weight.detach().clone()
    round_weights(layer)
    assert torch.equal(layer.weight, before.half().float())
    assert not torch.equal(layer.weight, before)
    layer.weight.data[3, 4] = 1e6
    with pytest.raises(ValueError, match=r"weight holds 1e\+06, which float16 cannot"):
        round_weights(layer)


def test_an_exported_reader_has_its_weights_in_half_the_space(small_bundle: Path) -> None:
    weights = onnx.load(small_bundle / "reader-float32.onnx").graph.initializer
    sizes = [(int(np.prod(tensor.dims)), tensor.data_type == TensorProto.FLOAT16) for tensor in weights]
    assert sum(size for size, is_half in sizes if is_half) > 0.9 * sum(size for size, _ in sizes)
