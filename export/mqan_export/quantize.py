"""Rewrite the graphs of a bundle to 8-bit products for a CPU, in memory when the bundle is opened.

What dominates is replaced by the operators of onnxruntime's own domain: products with weights, and the LSTMs. Scales
are fixed beforehand and never taken from a batch, so an answer does not move with its batch-mates:

- The generator reads a tanh, which lies in (-1, 1).
- What the encoder's products and LSTMs read is scaled, feature by feature, by the ranges measured at export, and
  clipped to them.

Shape letters: I inputs, D width, V generator pieces.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mqan_core.vectors import FloatArray, quantize_rows
from mqan_export.fuse_attention import fuse_attention
from mqan_export.fuse_products import fuse_products
from mqan_export.fuse_step import fuse_step
from mqan_export.quantize_lstm import Constants, int8_lstm, require
from mqan_export.rewrite import DOMAIN, known_constants

GENERATOR = "step.decoder.generator.weight"
_UNIT: Constants = {"int8.unit": np.array(1 / 127, np.float32), "int8.middle": np.array(128, np.uint8)}  # -1 to 1


def quantize_step(model: onnx.ModelProto) -> None:
    """Replace the product of the generator (equation 11), in place.

    Raises:
        ValueError: the graph has no such product.
    """
    weights = known_constants(model)
    for node in model.graph.node:
        if node.op_type == "Gemm" and node.input[1] == GENERATOR:
            require(node, {"transB": 1}, {"transA": 0, "alpha": 1.0, "beta": 1.0})
            c_tilde, _, *bias = node.input
            quantized = helper.make_node("QuantizeLinear", [c_tilde, "int8.unit", "int8.middle"], [f"int8.{c_tilde}"])
            constants, product = _int8_product(node, weights[GENERATOR], bias)
            _replace(model, {node.output[0]: [quantized, product]}, {**_UNIT, **constants})
            fuse_attention(model)
            fuse_step(model)
            return
    raise ValueError(f"no product with {GENERATOR}")


def quantized_inputs(model: onnx.ModelProto) -> list[str]:
    """Return the names of the tensors that an encoder's LSTMs and products with weights read."""
    known = known_constants(model)
    names = [node.input[0] for node in model.graph.node if node.op_type == "LSTM" or _is_product(node, known)]
    return list(dict.fromkeys(names))


def quantize_encoder(model: onnx.ModelProto, ranges: Mapping[str, FloatArray]) -> None:
    """Replace the LSTMs and the products with weights, in place.

    Args:
        model: the encoder.
        ranges: name of each tensor of ``quantized_inputs`` -> largest absolute value of each of its features [I].

    Raises:
        ValueError: a range is missing or has another width, or the graph has no LSTM.
    """
    known = known_constants(model)
    constants: Constants = {}
    replacements: dict[str, list[onnx.NodeProto]] = {}
    scaled: set[str] = set()
    for node in model.graph.node:
        is_lstm = node.op_type == "LSTM"
        if not is_lstm and not _is_product(node, known):
            continue
        source = node.input[0]
        if source not in ranges:
            raise ValueError(f"no range of {source}, which {node.output[0]} is computed from")
        if is_lstm:
            added, nodes = int8_lstm(node, known, ranges[source])
        else:
            weight_ID, range_I = known[node.input[1]], ranges[source]
            if range_I.shape != weight_ID.shape[:1]:
                raise ValueError(f"{node.output[0]} has {len(weight_ID)} inputs, the ranges are of {range_I.size}")
            added, product = _int8_product(node, (weight_ID * range_I[:, None]).T)
            nodes = [product]
            if source not in scaled:
                nodes = [*_scaled_input(source), product]
                added[f"int8.{source}.scale"] = (1 / ranges[source]).astype(np.float32)
                scaled.add(source)
        constants.update(added)
        replacements[node.output[0]] = nodes
    if not any(node.op_type == "LSTM" for node in model.graph.node):
        raise ValueError("no LSTM")
    _replace(model, replacements, {**_UNIT, **constants})
    fuse_attention(model)
    fuse_products(model)


def _is_product(node: onnx.NodeProto, constants: Mapping[str, FloatArray]) -> bool:
    return node.op_type == "MatMul" and node.input[1] in constants and constants[node.input[1]].ndim == 2


def _scaled_input(source: str) -> list[onnx.NodeProto]:
    """Scale a tensor by its ranges to -1 to 1 and quantise it, which clips."""
    scaled, quantized = f"int8.{source}.scaled", f"int8.{source}"
    return [
        helper.make_node("Mul", [source, f"int8.{source}.scale"], [scaled]),
        helper.make_node("QuantizeLinear", [scaled, "int8.unit", "int8.middle"], [quantized]),
    ]


def _int8_product(
    node: onnx.NodeProto, weight_DI: FloatArray, bias: Sequence[str] = ()
) -> tuple[Constants, onnx.NodeProto]:
    """Return the constants and the node of a product whose input, quantised in -1 to 1, is called ``int8.NAME``."""
    source, product = node.input[0], node.output[0]
    quantized_DI, scales_D = quantize_rows(np.ascontiguousarray(weight_DI))
    weight, scales = f"int8.{product}.weight", f"int8.{product}.scales"
    constants: Constants = {weight: np.ascontiguousarray(quantized_DI.T), scales: scales_D}
    factors = [f"int8.{source}", weight, "int8.unit", scales, "int8.middle", *(["", *bias] if bias else [])]
    return constants, helper.make_node("MatMulIntegerToFloat", factors, [product], domain=DOMAIN)


def _replace(
    model: onnx.ModelProto,
    replacements: Mapping[str, Iterable[onnx.NodeProto]],
    constants: Constants,
) -> None:
    """Replace the nodes that have these outputs, add constants, and drop weights that nothing reads any more."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        nodes.extend(replacements.get(node.output[0], [node]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    read = {name for node in nodes for name in node.input} | {output.name for output in model.graph.output}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
