"""Graphs with 8-bit products: what is folded into them changes no bit."""

from collections import Counter

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from mqan_export.int8 import fold_into_products
from mqan_runtime.session import session_options

WIDTH, INNER = 8, 12


def test_products_take_biases_and_parts_over_and_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    model = graph(rng)
    x = rng.standard_normal((2, 9, WIDTH)).astype(np.float32)
    before = run(model, x)
    assert Counter(node.op_type for node in model.graph.node)["Add"] == 2

    folded = fold_into_products(model)

    after = run(folded, x)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    kinds = Counter(node.op_type for node in folded.graph.node)
    assert kinds == {"QuantizeLinear": 1, "MatMulIntegerToFloat": 5, "Attention": 1, "Gelu": 1, "Add": 1}
    read = {name for node in folded.graph.node for name in node.input}
    assert {tensor.name for tensor in folded.graph.initializer} <= read


def graph(rng: np.random.Generator) -> onnx.ModelProto:
    """Return a product that is split for attention, one before a GELU, and one that is an output itself."""
    weights = [numpy_helper.from_array(np.array(0.05, np.float32), "scale")]
    weights.append(numpy_helper.from_array(np.array(120, np.uint8), "zero"))

    def product(name: str, width: int) -> onnx.NodeProto:
        for end, array in (
            ("_weight", rng.integers(-64, 64, (WIDTH, width)).astype(np.int8)),
            ("_scale", rng.uniform(0.01, 0.02, width).astype(np.float32)),
            ("_zero", np.zeros(width, np.int8)),
            ("_bias", rng.standard_normal(width).astype(np.float32)),
        ):
            weights.append(numpy_helper.from_array(array, name + end))
        inputs = ["bytes", f"{name}_weight", "scale", f"{name}_scale", "zero", f"{name}_zero"]
        return helper.make_node("MatMulIntegerToFloat", inputs, [name], domain="com.microsoft")

    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["bytes"]),
        product("heads", 3 * WIDTH),
        helper.make_node("Add", ["heads", "heads_bias"], ["biased"]),
        helper.make_node("Split", ["biased"], ["q", "k", "v"], axis=-1, num_outputs=3),
        helper.make_node("Attention", ["q", "k", "v"], ["attended"], q_num_heads=2, kv_num_heads=2),
        product("inner", INNER),
        helper.make_node("BiasGelu", ["inner", "inner_bias"], ["gelu"], domain="com.microsoft"),
        product("plain", WIDTH),  # is itself read, so that its bias stays apart
        helper.make_node("Add", ["plain", "plain_bias"], ["sum"]),
    ]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("attended", "gelu", "plain", "sum")]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, None, WIDTH])]
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(
        helper.make_graph(nodes, "g", given, outputs, weights), opset_imports=opsets, ir_version=10
    )


def run(model: onnx.ModelProto, x: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
    options = session_options(1)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[npt.NDArray[np.float32]] = session.run(None, {"x": x})
    return found
