"""The fused graphs compute what the plain ones do, with fewer nodes, and no row of a batch moves another."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mqan_core.bundle import ENCODER, Bundle, open_bundle
from mqan_runtime import quantize
from mqan_runtime.fuse_attention import fuse_attention
from mqan_runtime.fuse_step import fuse_step
from mqan_runtime.rewrite import Graph
from mqan_runtime.session import check_graph
from tests.conftest import LADDER, bundle_of, make_network
from tests.sessions import session_of

rng = np.random.default_rng(0)
BATCH, SLOTS, CONTEXT, QUESTION = 4, 9, 12, 6
LENGTHS = {"context_lengths": np.array([12, 3, 8, 9]), "question_lengths": np.array([2, 6, 5, 4])}


def outputs_of(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = session_of(model)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


@pytest.fixture(scope="module")
def bundle(tiny_bundle: Path) -> Bundle:
    return open_bundle(tiny_bundle)


@pytest.fixture(scope="module")
def block_bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A network whose contexts are cut into blocks of four words, as a bundle."""
    return open_bundle(bundle_of(make_network(**LADDER["blocks"]), tmp_path_factory))


def encoder_inputs(bundle: Bundle) -> dict[str, np.ndarray]:
    vectors = bundle.vectors.lookup(list(bundle.vocabulary.words)[:SLOTS])
    return {
        "vectors": np.stack([rng.permutation(vectors) for _ in range(BATCH)]),
        "context_slots": rng.integers(SLOTS, size=(BATCH, CONTEXT)),
        "question_slots": rng.integers(SLOTS, size=(BATCH, QUESTION)),
        **LENGTHS,
    }


def row_of(inputs: dict[str, np.ndarray], row: int) -> dict[str, np.ndarray]:
    """Return one row without its padding."""
    alone = {name: array[row : row + 1] for name, array in inputs.items()}
    for part in ("context", "question"):
        alone[f"{part}_slots"] = alone[f"{part}_slots"][:, : LENGTHS[f"{part}_lengths"][row]]
    return alone


def plain_and_fused(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return the encoder with 8-bit products, as it is and fused."""
    plain, fused = (check_graph(bundle.encoder, "encoder") for _ in range(2))
    quantize.quantize_encoder(fused, bundle.input_ranges[ENCODER])
    for name in ("fuse_attention", "fuse_alignment", "fuse_products"):
        monkeypatch.setattr(quantize, name, lambda model: None)
    quantize.quantize_encoder(plain, bundle.input_ranges[ENCODER])
    return plain, fused


def assert_same_outputs(plain: onnx.ModelProto, fused: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> None:
    """Assert that two encoders compute the same, but for 8-bit numbers that round to the other side here and there."""
    expected, found = outputs_of(plain, inputs), outputs_of(fused, inputs)
    for name, array in expected.items():
        difference = np.abs(found[name].astype(np.float64) - array)
        assert difference.mean() < 0.01, name
        assert difference.max() < 0.1, name


def test_the_encoder_computes_the_same_in_fewer_nodes(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, fused = plain_and_fused(bundle, monkeypatch)
    kinds = operators(fused)
    assert kinds["QAttention"] > 0
    assert kinds["Softmax"] == 2, "those of the coattention"
    assert kinds["Relu"] == kinds["GatherElements"] == 0
    assert len(fused.graph.node) < 0.75 * len(plain.graph.node)
    assert_same_outputs(plain, fused, encoder_inputs(bundle))


@pytest.mark.parametrize("name", ["bundle", "block_bundle"])
def test_a_row_of_the_encoder_does_not_move_with_its_batch_mates(name: str, request: pytest.FixtureRequest) -> None:
    bundle = request.getfixturevalue(name)
    model = check_graph(bundle.encoder, "encoder")
    quantize.quantize_encoder(model, bundle.input_ranges[ENCODER])
    inputs = encoder_inputs(bundle)
    together = outputs_of(model, inputs)
    for row in range(BATCH):
        alone = outputs_of(model, row_of(inputs, row))
        length = LENGTHS["context_lengths"][row]
        np.testing.assert_allclose(alone["context"][0], together["context"][row, :length], atol=1e-3)
        np.testing.assert_allclose(alone["first_cell"][0], together["first_cell"][row], atol=1e-3)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 12, 30])
def test_blocks_of_a_context_compute_the_same(
    block_bundle: Bundle, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    plain, fused = plain_and_fused(block_bundle, monkeypatch)
    assert operators(fused)["MultiHeadAttention"] == 3, "two layers and the alignment"
    assert operators(fused)["Softmax"] == 2, "those of the coattention"
    lengths = np.array([length, 1, max(length - 3, 1), -(-length // 2)])
    slots = rng.integers(SLOTS, size=(BATCH, length))
    inputs = {**encoder_inputs(block_bundle), "context_slots": slots, "context_lengths": lengths}
    assert_same_outputs(plain, fused, inputs)


def attention_graph(axis: int = -1) -> onnx.ModelProto:
    """Return an attention of two heads, four wide, as the exporter writes it."""
    width = 8
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["q3"]),
        helper.make_node("Reshape", ["q3", "shape"], ["q4"]),
        helper.make_node("Transpose", ["q4"], ["q"], perm=[0, 2, 1, 3]),
        helper.make_node("Mul", ["q", "scale"], ["scaled"]),
        helper.make_node("Transpose", ["keys"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["scaled", "turned"], ["scores"]),
        helper.make_node("Unsqueeze", ["mask", "axes"], ["mask4"]),
        helper.make_node("Not", ["mask4"], ["hidden"]),
        helper.make_node("Where", ["hidden", "far", "scores"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=axis),
        helper.make_node("MatMul", ["weights", "values"], ["heads"]),
        helper.make_node("Transpose", ["heads"], ["merged"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["merged", "flat"], ["y"]),
    ]
    constants = {
        "w": rng.normal(0, 1, (5, width)).astype(np.float32),
        "shape": np.array([-1, 1, 2, 4]),
        "flat": np.array([-1, 1, width]),
        "axes": np.array([1, 2]),
        "scale": np.array(0.5, np.float32),
        "far": np.array(-1e9, np.float32),
    }
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 1, 5]),
        helper.make_tensor_value_info("keys", TensorProto.FLOAT, ["B", 2, "S", 4]),
        helper.make_tensor_value_info("values", TensorProto.FLOAT, ["B", 2, "S", 4]),
        helper.make_tensor_value_info("mask", TensorProto.BOOL, ["B", "S"]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 1, width])
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, [output], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_attention_over_given_keys_is_one_node() -> None:
    plain = attention_graph()
    fused = onnx.ModelProto()
    fused.CopyFrom(plain)
    fuse_attention(fused)
    assert operators(fused) == {"MatMul": 1, "Cast": 1, "MultiHeadAttention": 1}
    inputs = {
        "x": rng.normal(0, 1, (BATCH, 1, 5)).astype(np.float32),
        "keys": rng.normal(0, 1, (BATCH, 2, 7, 4)).astype(np.float32),
        "values": rng.normal(0, 1, (BATCH, 2, 7, 4)).astype(np.float32),
        "mask": np.arange(7) < np.array([[7], [1], [4], [2]]),
    }
    found = outputs_of(fused, inputs)["y"]
    np.testing.assert_allclose(found, outputs_of(plain, inputs)["y"], atol=1e-6)
    louder = {**inputs, "values": np.where(inputs["mask"][:, None, :, None], inputs["values"], 1e6).astype(np.float32)}
    np.testing.assert_array_equal(outputs_of(fused, louder)["y"], found, "what the mask leaves out weighs nothing")


def test_what_is_no_attention_stays() -> None:
    model = attention_graph(axis=2)
    before = operators(model)
    fuse_attention(model)
    assert operators(model) == before


def product_graph(make: Callable[[], list[onnx.NodeProto]], weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 70]) for name in ("x", "h")]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 40])
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(make(), "g", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def gates() -> list[onnx.NodeProto]:
    return [
        helper.make_node("Gemm", ["x", "w", "b"], ["first"], transB=1),
        helper.make_node("Gemm", ["h", "r"], ["second"], transB=1),
        helper.make_node("Add", ["first", "second"], ["y"]),
    ]


def test_the_gates_of_a_step_are_one_product_row_by_row() -> None:
    weights = {name: rng.normal(0, 0.3, (40, 70)).astype(np.float32) for name in ("w", "r")}
    weights["b"] = rng.normal(0, 1, 40).astype(np.float32)
    plain, fused = (product_graph(gates, weights) for _ in range(2))
    fuse_step(fused)
    assert operators(fused) == {"Concat": 1, "Gemm": 1}, "all that the gates read in one product"
    inputs = {name: rng.normal(0, 1, (BATCH, 70)).astype(np.float32) for name in ("x", "h")}
    inputs["x"][1] *= 50
    expected, found = (outputs_of(model, inputs)["y"] for model in (plain, fused))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    alone = [outputs_of(fused, {name: x[i : i + 1] for name, x in inputs.items()})["y"] for i in range(BATCH)]
    np.testing.assert_allclose(np.concatenate(alone), found, rtol=1e-5, atol=1e-4)


def test_a_rewritten_graph_keeps_what_its_outputs_need() -> None:
    model = attention_graph()
    graph = Graph(model)
    graph.put("Identity", ["q3"], ["y"])
    graph.save()
    assert [node.op_type for node in model.graph.node] == ["MatMul", "Identity"]
    assert [tensor.name for tensor in model.graph.initializer] == ["w"]
