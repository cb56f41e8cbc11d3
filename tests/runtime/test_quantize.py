"""The 8-bit graphs: close to float32, and no row of a batch moves another."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mqan_core.bundle import DECODER_STEP, ENCODER, open_bundle
from mqan_core.errors import BundleError
from mqan_export.ranges import measure_input_ranges
from mqan_runtime import pinned, session
from mqan_runtime.engine import Engine
from mqan_runtime.pinned import largest_cell
from mqan_runtime.quantize import GENERATOR, quantize_encoder, quantize_step, quantized_inputs
from tests.sessions import session_of

CONTEXT = "Anna saw a small dog in the park . It was wet ."
HIDDEN, INPUTS, STEPS = 40, 24, 30
LENGTHS = np.array([STEPS, 17, 5], np.int32)
rng = np.random.default_rng(0)
WEIGHTS = {
    "m.w": rng.normal(0, 0.3, (2, 4 * HIDDEN, INPUTS)).astype(np.float32),
    "m.r": rng.normal(0, 0.2, (2, 4 * HIDDEN, HIDDEN)).astype(np.float32),
    "m.b": rng.normal(0, 0.3, (2, 8 * HIDDEN)).astype(np.float32),
}
X = rng.normal(0, 1, (STEPS, 3, INPUTS)).astype(np.float32) * np.linspace(0.1, 4, INPUTS, dtype=np.float32)
RANGES = {"x": np.abs(X).max(axis=(0, 1))}


def graph_of(
    node: onnx.NodeProto,
    inputs: dict[str, tuple[int, list[int | str]]],
    shape: list[int | str],
    weights: dict[str, np.ndarray],
) -> onnx.ModelProto:
    """Return a model of one node."""
    given = [helper.make_tensor_value_info(name, kind, axes) for name, (kind, axes) in inputs.items()]
    output = helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, shape)
    graph = helper.make_graph(
        [node], "g", given, [output], [numpy_helper.from_array(array, name) for name, array in weights.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def lstm_graph() -> onnx.ModelProto:
    node = helper.make_node(
        "LSTM", ["x", "m.w", "m.r", "m.b", "lengths"], ["y"], direction="bidirectional", hidden_size=HIDDEN
    )
    inputs = {
        "x": (TensorProto.FLOAT, ["T", "B", INPUTS]),
        "lengths": (TensorProto.INT32, ["B"]),
    }
    return graph_of(node, inputs, ["T", 2, "B", HIDDEN], WEIGHTS)  # type: ignore[arg-type]


def run(model: onnx.ModelProto) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    session = session_of(model)

    def call(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        output: np.ndarray = session.run(None, {"x": x, "lengths": lengths})[0]
        return output

    return call


@pytest.fixture(scope="module")
def int8_lstm() -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    model = lstm_graph()
    quantize_encoder(model, RANGES)
    assert "LSTM" not in {node.op_type for node in model.graph.node}
    return run(model)


def test_the_lstm_is_close_to_float32(int8_lstm: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    expected = run(lstm_graph())(X, LENGTHS)
    found = int8_lstm(X, LENGTHS)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 0.1  # outputs lie in (-1, 1)
    assert np.abs(found - expected).mean() < 0.01
    assert not found[5:, :, 2].any(), "beyond a row's length"


def test_a_row_of_the_lstm_does_not_move_with_its_batch_mates(
    int8_lstm: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> None:
    together = int8_lstm(X, LENGTHS)
    for row in range(3):
        alone = int8_lstm(X[:, row : row + 1], LENGTHS[row : row + 1])
        np.testing.assert_array_equal(alone, together[:, :, row : row + 1])
    louder = X.copy()
    louder[:, 1] *= 50
    np.testing.assert_array_equal(int8_lstm(louder, LENGTHS)[:, :, [0, 2]], together[:, :, [0, 2]])


def test_no_unit_passes_the_pinned_one() -> None:
    """Its cell's tanh is not that of a large number: others pass that by a digit, and would change the scale."""
    width = HIDDEN + 2
    cell = largest_cell(width)
    near = np.arange(np.float32(7.9).view(np.int32), np.float32(9.1).view(np.int32), 37, dtype=np.int32)
    outputs = pinned._lstm_outputs(near.view(np.float32), width)
    pin = pinned._lstm_outputs(np.array([cell, -cell], np.float32), width)[:, -2]
    assert outputs.max() <= pin[0]
    assert pin[1] == -pin[0]


def test_what_is_out_of_range_is_clipped(int8_lstm: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    limit = RANGES["x"]
    np.testing.assert_array_equal(int8_lstm(X * 9, LENGTHS), int8_lstm(np.clip(X * 9, -limit, limit), LENGTHS))


def test_the_generator_is_close_to_float32_row_by_row() -> None:
    weights = {
        GENERATOR: rng.normal(0, 0.3, (500, INPUTS)).astype(np.float32),
        "bias": rng.normal(0, 1, 500).astype(np.float32),
    }
    node = helper.make_node("Gemm", ["c", GENERATOR, "bias"], ["logits"], transB=1)
    inputs = {"c": (TensorProto.FLOAT, ["B", INPUTS])}
    c_tilde = np.tanh(rng.normal(0, 2, (4, INPUTS))).astype(np.float32)
    models = [graph_of(node, inputs, ["B", 500], weights) for _ in range(2)]  # type: ignore[arg-type]
    quantize_step(models[1], {"c": np.ones(INPUTS, np.float32)})
    sessions = [session_of(m) for m in models]
    expected, found = (session.run(None, {"c": c_tilde})[0] for session in sessions)
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    alone = np.concatenate([sessions[1].run(None, {"c": c_tilde[i : i + 1]})[0] for i in range(4)])
    np.testing.assert_array_equal(alone, found)


def product_graph() -> onnx.ModelProto:
    """Return the graph of an LSTM and of two products that read the same tensor, one with weights cut out of others."""
    model = lstm_graph()
    nodes = [
        helper.make_node("MatMul", ["c", "whole"], ["first"]),
        helper.make_node("Slice", ["whole", "from", "to", "axis"], ["part"]),
        helper.make_node("MatMul", ["c", "part"], ["second"]),
    ]
    weights: dict[str, np.ndarray] = {
        "whole": rng.normal(0, 0.3, (INPUTS, 16)).astype(np.float32),
        **{name: np.array([value], np.int64) for name, value in (("from", 4), ("to", 9), ("axis", 1))},
    }
    model.graph.node.extend(nodes)
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, ["B", "T", INPUTS]))
    model.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", "T", width])
        for name, width in (("first", 16), ("second", 5))
    )
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def test_products_are_close_to_float32_row_by_row() -> None:
    exact, model = product_graph(), product_graph()
    exact.graph.initializer[-4].CopyFrom(model.graph.initializer[-4])  # the same weights, drawn once
    c_BTI = X.transpose(1, 0, 2)
    assert quantized_inputs(model) == ["x", "c"]
    quantize_encoder(model, {**RANGES, "c": np.abs(c_BTI).max(axis=(0, 1))})
    assert "MatMul" not in {node.op_type for node in model.graph.node}
    assert [node.op_type for node in model.graph.node].count("QuantizeLinear") == 2, (
        "what the LSTM reads, and what both products read, once"
    )
    sessions = [session_of(m) for m in (exact, model)]

    def run_both(c: np.ndarray) -> list[list[np.ndarray]]:
        inputs = {"x": X, "lengths": LENGTHS, "c": c}
        return [session.run(["first", "second"], inputs) for session in sessions]

    for expected, found in zip(*run_both(c_BTI), strict=True):
        assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    together = run_both(c_BTI)[1]
    for row in range(3):
        for alone, whole in zip(run_both(c_BTI[row : row + 1])[1], together, strict=True):
            np.testing.assert_array_equal(alone, whole[row : row + 1])


def test_ranges_are_measured_on_what_the_graph_reads() -> None:
    model = product_graph()
    c = np.zeros((1, 2, INPUTS), np.float32)
    c[0, 0, 3], c[0, 1, 3], c[0, 1, 7] = 2.0, -4.0, 1.0
    louder = {"x": X, "lengths": LENGTHS, "c": c}
    found = measure_input_ranges(model.SerializeToString(), [{**louder, "c": c / 2}, louder])
    assert set(found) == {"x", "c"}
    np.testing.assert_allclose(found["x"], 1.1 * RANGES["x"], rtol=1e-6)
    np.testing.assert_allclose(found["c"][[0, 3, 7]], [1e-3, 4.4, 1.1], rtol=1e-6)
    with pytest.raises(ValueError, match="without requests"):
        measure_input_ranges(model.SerializeToString(), [])


def test_ranges_that_do_not_fit_are_told() -> None:
    with pytest.raises(ValueError, match="no range of x, which y is computed from"):
        quantize_encoder(lstm_graph(), {})
    with pytest.raises(ValueError, match="y has 24 inputs, the ranges are of 3"):
        quantize_encoder(lstm_graph(), {"x": np.ones(3, np.float32)})
    with pytest.raises(ValueError, match="no LSTM"):
        quantize_encoder(onnx.ModelProto(), {})
    with pytest.raises(ValueError, match=r"no product with step\.decoder\.generator"):
        quantize_step(lstm_graph(), {})


def step_inputs(engine: Engine, question: str) -> dict[str, np.ndarray]:
    """Return what the second step of decoding reads."""
    request = engine.read(CONTEXT, question)
    decoding = engine.loop.start(engine.pad([request] * 3, [5] * 3), range(3))
    engine.loop.step(decoding)
    return {**decoding.constants, **decoding.state}


def test_the_step_multiplies_8_bit_numbers_row_by_row(tiny_bundle: Path) -> None:
    bundle = open_bundle(tiny_bundle)
    exact, model = (session.check_graph(bundle.decoder_step, "step") for _ in range(2))
    quantize_step(model, bundle.input_ranges[DECODER_STEP])
    products = [node for node in model.graph.node if node.op_type in ("Gemm", "MatMul")]
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    wide = [node.output[0] for node in products if node.input[1] in weights and min(weights[node.input[1]].dims) > 1]
    assert wide == [], "every product with a matrix of weights is replaced"
    sessions = [session_of(m) for m in (exact, model)]
    engine = Engine(bundle, provider="cpu", precision="float32")
    inputs = step_inputs(engine, "What did Anna see ?")
    names = ["next_hidden", "next_cell", "next_context_state", "next_answer_keys_0"]
    expected, found = (session.run(names, inputs) for session in sessions)
    for name, left, right in zip(names, expected, found, strict=True):
        assert np.abs(left - right).mean() < 0.2 * np.abs(left).mean(), name  # the weights are large and random
    shared = {"generator_inputs"}
    row = {name: array if name in shared else array[:1] for name, array in inputs.items()}
    for alone, together in zip(sessions[1].run(names, row), found, strict=True):
        np.testing.assert_array_equal(alone, together[:1])


def test_the_ranges_of_what_is_put_side_by_side_are_those_of_its_parts() -> None:
    nodes = [
        helper.make_node("Concat", ["x", "h"], ["both"], axis=-1),
        helper.make_node("MatMul", ["both", "w"], ["y"]),
        helper.make_node("Gemm", ["y", GENERATOR], ["logits"], transB=1),
    ]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", INPUTS]) for name in ("x", "h")]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["B", 50])
    weights = {
        "w": rng.normal(0, 0.3, (2 * INPUTS, 30)).astype(np.float32),
        GENERATOR: rng.normal(0, 0.3, (50, 30)).astype(np.float32),
    }
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    opsets = [helper.make_opsetid("", 18)]
    models = [
        helper.make_model(helper.make_graph(nodes, "g", given, [output], constants), opset_imports=opsets, ir_version=9)
        for _ in range(2)
    ]
    x, h = rng.normal(0, 9, (4, INPUTS)).astype(np.float32), rng.normal(0, 0.1, (4, INPUTS)).astype(np.float32)
    y = np.concatenate([x, h], axis=1) @ weights["w"]
    ranges = {name: np.abs(array).max(axis=0) for name, array in (("x", x), ("h", h), ("y", y))}
    quantize_step(models[1], ranges)
    expected, found = (session_of(m).run(None, {"x": x, "h": h})[0] for m in models)
    assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()
    with pytest.raises(ValueError, match="no range of h, which y is computed from"):
        quantize_step(
            helper.make_model(helper.make_graph(nodes, "g", given, [output], constants), opset_imports=opsets),
            {"x": ranges["x"], "y": ranges["y"]},
        )


def test_a_cpu_runs_8_bit_unless_told_otherwise(tiny_bundle: Path) -> None:
    assert Engine.open(tiny_bundle, provider="cpu").precision == "int8"
    assert Engine.open(tiny_bundle, provider="cpu", precision="float32").precision == "float32"
    with pytest.raises(ValueError, match="int8 is for the CPU"):
        Engine.open(tiny_bundle, provider="cuda", precision="int8")


@pytest.mark.parametrize(
    ("op", "attributes", "wrong"),
    [
        ("LSTM", {"clip": 1.0}, "unexpected clip"),
        ("LSTM", {"direction": "forward"}, "unexpected direction"),
        ("Gemm", {"alpha": 2.0}, "unexpected alpha"),
        ("Gemm", {"transB": 0}, "unexpected transB"),
    ],
)
def test_what_the_replacement_would_not_compute_is_refused(op: str, attributes: dict[str, object], wrong: str) -> None:
    model = lstm_graph()
    node = model.graph.node[0]
    if op == "Gemm":
        del model.graph.node[:]
        node = helper.make_node("Gemm", ["x", GENERATOR], ["y"], transB=1)
        model.graph.node.append(node)
        node = model.graph.node[0]
        model.graph.initializer.append(numpy_helper.from_array(np.ones((3, 2), np.float32), GENERATOR))
    kept = [attribute for attribute in node.attribute if attribute.name not in attributes]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in attributes.items())])
    with pytest.raises(ValueError, match=wrong):
        quantize_encoder(model, RANGES) if op == "LSTM" else quantize_step(model, {})


def test_a_bundle_without_its_ranges_is_told(tiny_bundle: Path) -> None:
    bundle = open_bundle(tiny_bundle)
    incomplete = type(bundle)(
        bundle.manifest,
        bundle.sha256,
        bundle.encoder,
        bundle.decoder_step,
        bundle.vocabulary,
        bundle.vectors,
        {ENCODER: {}, DECODER_STEP: {}},
    )
    with pytest.raises(BundleError, match=r"encoder\.onnx: cannot be rewritten to 8-bit products: no range"):
        Engine(incomplete, provider="cpu")
    assert Engine(incomplete, provider="cpu", precision="float32").precision == "float32"
