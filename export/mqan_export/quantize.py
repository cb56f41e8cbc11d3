"""Rewrite the graphs of a bundle to 8-bit products for a CPU, in memory when the bundle is opened.

What dominates is replaced by the operators of onnxruntime's own domain: the generator's product, and the LSTMs. Scales
are fixed beforehand and never taken from a batch, so an answer does not move with its batch-mates:

- The generator reads a tanh, which lies in (-1, 1).
- The inputs of the LSTMs are scaled, feature by feature, by the ranges measured at export, and clipped to them.
- ``DynamicQuantizeLSTM`` takes its scale from the least and largest value that it finds, 0 included, so these are
  pinned: inputs are shifted to be positive and one more feature always holds the largest value; two more hidden units
  always hold 1 and -1. The weights of all three are 0.

Shape letters: T steps, B batch, I inputs, H hidden units of one direction, G = 4 H gates, D width, V generator pieces.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from mqan_core.vectors import FloatArray, quantize_rows

Constants = dict[str, npt.NDArray[np.generic]]

GENERATOR = "step.decoder.generator.weight"
_DOMAIN = "com.microsoft"
_PINNED_UNITS = 2
_SATURATED = 30.0  # a gate's bias at which its sigmoid is 0 or 1, and a cell's value at which its tanh is 1


def quantize_step(model: onnx.ModelProto) -> None:
    """Replace the product of the generator (equation 11), in place.

    Raises:
        ValueError: the graph has no such product.
    """
    weights = _initializers(model)
    for node in model.graph.node:
        if node.op_type == "Gemm" and node.input[1] == GENERATOR:
            _require(node, {"transB": 1}, {"transA": 0, "alpha": 1.0, "beta": 1.0})
            quantized_VD, scales_V = quantize_rows(weights[GENERATOR])
            constants: Constants = {
                "int8.unit": np.array(1 / 127, np.float32),
                "int8.middle": np.array(128, np.uint8),
                "int8.generator": np.ascontiguousarray(quantized_VD.T),
                "int8.generator_scales": scales_V,
                "int8.generator_zeros": np.zeros(len(scales_V), np.int8),
            }
            c_tilde, _, *bias = node.input
            quantized = helper.make_node("QuantizeLinear", [c_tilde, "int8.unit", "int8.middle"], ["int8.hidden"])
            factors = ["int8.hidden", "int8.generator", "int8.unit", "int8.generator_scales", "int8.middle"]
            product = helper.make_node(
                "MatMulIntegerToFloat", [*factors, "int8.generator_zeros", *bias], list(node.output), domain=_DOMAIN
            )
            _replace(model, {node.output[0]: [quantized, product]}, constants)
            return
    raise ValueError(f"no product with {GENERATOR}")


def quantize_encoder(model: onnx.ModelProto, ranges: Mapping[str, FloatArray]) -> None:
    """Replace the LSTMs, in place.

    Args:
        model: the encoder.
        ranges: name of each LSTM's module -> largest absolute value of each of its inputs [I].

    Raises:
        ValueError: a range is missing, or the graph has no LSTM.
    """
    weights = _initializers(model)
    constants: Constants = {}
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        if node.op_type != "LSTM":
            continue
        _require(node, {"direction": b"bidirectional"}, {"hidden_size": None, "input_forget": 0, "layout": 0})
        if len(node.input) != 5 or any(node.output[1:]):
            raise ValueError(f"{node.name}: expected an LSTM with five inputs and one output")
        module = node.input[1].removesuffix(".w")
        if module not in ranges:
            raise ValueError(f"no range of the inputs of {module}")
        w_2GI, r_2GH, b_2G = (weights[name] for name in node.input[1:4])
        hidden_width = r_2GH.shape[2]
        constants.update(_shared_constants(hidden_width))
        constants.update(_lstm_constants(module, w_2GI, r_2GH, b_2G, ranges[module]))
        replacements[node.output[0]] = _lstm_nodes(node, module, hidden_width)
    if not replacements:
        raise ValueError("no LSTM")
    _replace(model, replacements, constants)


def _shared_constants(hidden_width: int) -> Constants:
    wide = hidden_width + _PINNED_UNITS
    return {
        "int8.one": np.array(1, np.float32),
        "int8.zero": np.array(0, np.float32),
        "int8.two": np.array(2, np.float32),
        "int8.one_feature": np.array([0, 0, 0, 0, 0, 1], np.int64),  # at the end of the last of three axes
        "int8.first_hidden": _pinned_state(wide, 1.0),
        "int8.first_cell": _pinned_state(wide, _SATURATED),
        "int8.directions": np.array([2], np.int64),
        "int8.wide": np.array([wide], np.int64),
        "int8.first": np.array([0], np.int64),
        "int8.hidden_width": np.array([hidden_width], np.int64),
        "int8.last_axis": np.array([-1], np.int64),
    }


def _lstm_constants(
    module: str, w_2GI: FloatArray, r_2GH: FloatArray, b_2G: FloatArray, range_I: FloatArray
) -> Constants:
    if range_I.shape != w_2GI.shape[2:]:
        raise ValueError(f"{module} has {w_2GI.shape[2]} inputs, the ranges are of {range_I.size}")
    hidden_width = r_2GH.shape[2]
    w_int8, w_scales = quantize_rows(np.pad(_widen_gates(w_2GI * range_I), ((0, 0), (0, 0), (0, 1))))
    r_int8, r_scales = quantize_rows(np.pad(_widen_gates(r_2GH), ((0, 0), (0, 0), (0, _PINNED_UNITS))))
    # the operator reads x / range + 1, which lies in 0 to 2: what the 1 adds is taken away again
    shift_2G = (w_int8[..., :-1].astype(np.float32) * w_scales[..., None]).sum(axis=2)
    input_bias, recurrent_bias = (_widen_gates(part[..., None])[..., 0] for part in np.split(b_2G, 2, axis=1))
    pinned_24H = np.zeros((2, 4, hidden_width + _PINNED_UNITS), np.float32)
    for gate, value in enumerate((-_SATURATED, _SATURATED, _SATURATED, 0.0)):  # i o f c: the cell stays as it is
        pinned_24H[:, gate, hidden_width:] = value
    bias = input_bias - shift_2G + pinned_24H.reshape(2, -1)
    return {
        f"int8.{module}.scale": (1 / range_I).astype(np.float32),
        f"int8.{module}.w": np.ascontiguousarray(w_int8.transpose(0, 2, 1)),
        f"int8.{module}.w_scales": w_scales,
        f"int8.{module}.w_zeros": np.zeros(w_scales.shape, np.int8),
        f"int8.{module}.r": np.ascontiguousarray(r_int8.transpose(0, 2, 1)),
        f"int8.{module}.r_scales": r_scales,
        f"int8.{module}.r_zeros": np.zeros(r_scales.shape, np.int8),
        f"int8.{module}.b": np.concatenate([bias, recurrent_bias], axis=1).astype(np.float32),
    }


def _lstm_nodes(node: onnx.NodeProto, module: str, hidden_width: int) -> list[onnx.NodeProto]:
    x_TBI, lengths, y_T2BH = node.input[0], node.input[4], node.output[0]

    def weight(part: str) -> str:
        return f"int8.{module}.{part}"

    def value(name: str) -> str:
        return f"int8.{y_T2BH}.{name}"

    def make(op: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
        return helper.make_node(op, inputs, [output], **attributes)

    weights = [weight(part) for part in ("w", "r", "b")]
    scales = [weight(part) for part in ("w_scales", "w_zeros", "r_scales", "r_zeros")]
    lstm_inputs = [value("x"), *weights, lengths, value("h"), value("c"), "", *scales]
    width = hidden_width + _PINNED_UNITS
    return [
        make("Mul", [x_TBI, weight("scale")], value("scaled")),
        make("Add", [value("scaled"), "int8.one"], value("shifted")),
        make("Clip", [value("shifted"), "int8.zero", "int8.two"], value("clipped")),
        make("Pad", [value("clipped"), "int8.one_feature", "int8.two"], value("x")),
        make("Shape", [lengths], value("batch")),
        make("Concat", ["int8.directions", value("batch"), "int8.wide"], value("state_shape"), axis=0),
        make("Expand", ["int8.first_hidden", value("state_shape")], value("h")),
        make("Expand", ["int8.first_cell", value("state_shape")], value("c")),
        make(
            "DynamicQuantizeLSTM",
            lstm_inputs,
            value("y"),
            domain=_DOMAIN,
            direction="bidirectional",
            hidden_size=width,
        ),
        make("Slice", [value("y"), "int8.first", "int8.hidden_width", "int8.last_axis"], y_T2BH),
    ]


def _require(node: onnx.NodeProto, needed: Mapping[str, Any], allowed: Mapping[str, Any]) -> None:
    """Refuse a node with other attributes than the replacement computes; None allows any value."""
    found = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    known = {**allowed, **needed}
    wrong = [name for name, value in found.items() if name not in known or known[name] not in (None, value)]
    wrong += [name for name in needed if name not in found]
    if wrong:
        raise ValueError(f"{node.op_type} {node.name}: unexpected {', '.join(wrong)}")


def _widen_gates(array_2GX: FloatArray) -> FloatArray:
    """Make room for the pinned units in each gate of [2, 4 H, X]: [2, 4 (H + 2), X]."""
    gates_24HX = array_2GX.reshape(2, 4, -1, array_2GX.shape[2])
    wide: FloatArray = np.pad(gates_24HX, ((0, 0), (0, 0), (0, _PINNED_UNITS), (0, 0)))
    return wide.reshape(2, -1, array_2GX.shape[2])


def _pinned_state(width: int, value: float) -> FloatArray:
    """Return the state before the first step [2, 1, width]: 0, but ``value`` and its negative in the pinned units."""
    state = np.zeros((2, 1, width), np.float32)
    state[..., -2], state[..., -1] = value, -value
    return state


def _initializers(model: onnx.ModelProto) -> dict[str, FloatArray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


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
    model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
