"""Rewrite the graphs of a bundle to 8-bit products for a CPU, in memory when the bundle is opened.

What dominates is replaced by the operators of onnxruntime's own domain: products with weights, and the LSTMs. Scales
are fixed beforehand and never taken from a batch, so an answer does not move with its batch-mates:

- A tanh, which the generator reads, lies in (-1, 1).
- What else products and LSTMs read is scaled, feature by feature, by the ranges measured at export, and clipped to
  them.

Sums of 8-bit products are exact, so that they are the same for any number of rows. Those of float32 depend on the
order that onnxruntime adds in, and now and then a last digit moves the 8-bit number that is made of it; so rows whose
lengths lead to different orders are encoded apart (``LONGEST_ALIKE``).

Shape letters: I inputs, D width, V generator pieces.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mqan_core.vectors import FloatArray, quantize_rows
from mqan_runtime.fuse_alignment import fuse_alignment
from mqan_runtime.fuse_attention import fuse_attention
from mqan_runtime.fuse_products import fuse_products
from mqan_runtime.fuse_step import fuse_step
from mqan_runtime.graphs import LONGEST_ALIKE
from mqan_runtime.quantize_lstm import Constants, int8_lstm, require
from mqan_runtime.rewrite import DOMAIN, keep_weights, known_constants, note_length

GENERATOR = "step.decoder.generator.weight"
_FEW_COLUMNS = 64  # up to so many onnxruntime adds the terms of a product in other groups than with more
_UNIT: Constants = {"int8.unit": np.array(1 / 127, np.float32), "int8.middle": np.array(128, np.uint8)}  # -1 to 1


def quantized_inputs(model: onnx.ModelProto) -> list[str]:
    """Return the names of the tensors that a graph's LSTMs and products with weights read."""
    known = known_constants(model)
    names = [node.input[0] for node in model.graph.node if node.op_type == "LSTM" or _is_product(node, known)]
    return list(dict.fromkeys(names))


def quantize_step(model: onnx.ModelProto, ranges: Mapping[str, FloatArray]) -> None:
    """Replace the products with weights, in place.

    Args:
        model: the decoding step.
        ranges: as of ``quantize_encoder``.

    Raises:
        ValueError: a range is missing or has another width, or the graph has no generator.
    """
    if not any(node.op_type == "Gemm" and node.input[1] == GENERATOR for node in model.graph.node):
        raise ValueError(f"no product with {GENERATOR}")
    fuse_attention(model)
    fuse_step(model)
    _quantize(model, ranges)
    fuse_products(model)


def quantize_encoder(model: onnx.ModelProto, ranges: Mapping[str, FloatArray]) -> None:
    """Replace the LSTMs and the products with weights, in place.

    Args:
        model: the encoder.
        ranges: name of each tensor of ``quantized_inputs`` -> largest absolute value of each of its features [I].

    Raises:
        ValueError: a range is missing or has another width, or the graph has no LSTM.
    """
    if not any(node.op_type == "LSTM" for node in model.graph.node):
        raise ValueError("no LSTM")
    for name in LONGEST_ALIKE.values():
        note_length(model, name, _FEW_COLUMNS - 1)  # an alignment has a column more, the dummy
    _quantize(model, ranges)
    fuse_attention(model)
    fuse_alignment(model)
    fuse_products(model)


def quantize_contextual(model: onnx.ModelProto, ranges: Mapping[str, FloatArray]) -> None:
    """Replace the products with weights of the contextual encoder, in place.

    Args:
        model: the contextual encoder.
        ranges: as of ``quantize_encoder``.

    Raises:
        ValueError: a range is missing or has another width.
    """
    _quantize(model, ranges)
    fuse_attention(model)
    fuse_products(model)


def _quantize(model: onnx.ModelProto, ranges: Mapping[str, FloatArray]) -> None:
    known = known_constants(model)
    writers = {name: node for node in model.graph.node for name in node.output}
    constants: Constants = {}
    replacements: dict[str, list[onnx.NodeProto]] = {}
    scaled: set[str] = set()
    for node in model.graph.node:
        is_lstm = node.op_type == "LSTM"
        if not is_lstm and not _is_product(node, known):
            continue
        source = node.input[0]
        if is_lstm:
            added, nodes = int8_lstm(node, known, _range_of(source, node, ranges, writers))
        else:
            weight_DI, bias = _product_of(node, known)
            range_I = None if _is_tanh(source, writers) else _range_of(source, node, ranges, writers)
            if range_I is not None:
                if range_I.shape != weight_DI.shape[1:]:
                    raise ValueError(
                        f"{node.output[0]} has {weight_DI.shape[1]} inputs, the ranges are of {range_I.size}"
                    )
                weight_DI = weight_DI * range_I
            added, product = _int8_product(node, weight_DI, bias)
            nodes = [product]
            if source not in scaled:
                factors, before = _quantized_input(source, range_I)
                nodes = [*before, product]
                added.update(factors)
                scaled.add(source)
        constants.update(added)
        replacements[node.output[0]] = nodes
    _replace(model, replacements, {**_UNIT, **constants})


def _is_product(node: onnx.NodeProto, constants: Mapping[str, FloatArray]) -> bool:
    """Whether a node multiplies by a matrix of weights; one of a single column is not worth more nodes."""
    if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in constants:
        return False
    return constants[node.input[1]].ndim == 2 and min(constants[node.input[1]].shape) > 1


def _product_of(node: onnx.NodeProto, constants: Mapping[str, FloatArray]) -> tuple[FloatArray, Sequence[str]]:
    """Return the weights [D, I] of a product and the name of its bias, if any."""
    weight = constants[node.input[1]]
    if node.op_type == "MatMul":
        return weight.T, ()
    require(node, {"transB": 1}, {"transA": 0, "alpha": 1.0, "beta": 1.0})
    return weight, node.input[2:]


def _is_tanh(name: str, writers: Mapping[str, onnx.NodeProto]) -> bool:
    return name in writers and writers[name].op_type == "Tanh"


def _range_of(
    name: str, reader: onnx.NodeProto, ranges: Mapping[str, FloatArray], writers: Mapping[str, onnx.NodeProto]
) -> FloatArray:
    """Return the ranges of a tensor, or of those that it puts side by side."""
    if name in ranges:
        return ranges[name]
    if name in writers and writers[name].op_type == "Concat":
        return np.concatenate([_range_of(part, reader, ranges, writers) for part in writers[name].input])
    raise ValueError(f"no range of {name}, which {reader.output[0]} is computed from")


def _quantized_input(source: str, range_I: FloatArray | None) -> tuple[Constants, list[onnx.NodeProto]]:
    """Scale a tensor by its ranges, if it has any, to -1 to 1 and quantise it, which clips."""
    scaled, scale = f"int8.{source}.scaled", f"int8.{source}.scale"
    given = source if range_I is None else scaled
    quantized = helper.make_node("QuantizeLinear", [given, "int8.unit", "int8.middle"], [f"int8.{source}"])
    if range_I is None:
        return {}, [quantized]
    return {scale: (1 / range_I).astype(np.float32)}, [helper.make_node("Mul", [source, scale], [scaled]), quantized]


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
    keep_weights(model.graph, read)
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
