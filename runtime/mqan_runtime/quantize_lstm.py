"""Rewrite an LSTM of a graph to onnxruntime's ``DynamicQuantizeLSTM``, so that no row of a batch moves another.

The operator takes its scale from the least and largest value that it finds, 0 included, so these are pinned: inputs are
shifted to be positive and one more feature always holds the largest value; two more hidden units always hold 1 and -1.
The weights of all three are 0. Inputs are quantised and read back before it, which clips and shifts them, and lets them
be transposed and padded as bytes; the operator then finds the same 8-bit numbers again. The hidden units hold what no
other can pass on this processor (``pinned``).

Shape letters: T steps, B batch, I inputs, H hidden units of one direction, G = 4 H gates.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from mqan_core.vectors import FloatArray, quantize_rows
from mqan_runtime.pinned import largest_cell
from mqan_runtime.rewrite import DOMAIN

Constants = dict[str, npt.NDArray[np.generic]]

_PINNED_UNITS = 2
_UNIT = np.float32(2 / 255.01)  # -1 and 1 round to the first and last byte, which all beyond becomes too
_SATURATED = 30.0  # a gate's bias at which its sigmoid is 0 or 1


def int8_lstm(
    node: onnx.NodeProto, weights: Mapping[str, FloatArray], range_I: FloatArray
) -> tuple[Constants, list[onnx.NodeProto]]:
    """Return the constants and nodes that replace an LSTM.

    Args:
        node: a bidirectional LSTM that reads sequences and their lengths.
        weights: by name.
        range_I: largest absolute value of each input; inputs are clipped to it.

    Raises:
        ValueError: the node has another form, or the range another width.
    """
    require(node, {"direction": b"bidirectional"}, {"hidden_size": None, "input_forget": 0, "layout": 0})
    if len(node.input) != 5 or any(node.output[1:]):
        raise ValueError(f"{node.name}: expected an LSTM with five inputs and one output")
    w_2GI, r_2GH, b_2G = (weights[name] for name in node.input[1:4])
    hidden_width = r_2GH.shape[2]
    own = _lstm_constants(node.output[0], w_2GI, r_2GH, b_2G, range_I)
    return {**_shared_constants(hidden_width), **own}, _lstm_nodes(node, hidden_width)


def require(node: onnx.NodeProto, needed: Mapping[str, Any], allowed: Mapping[str, Any]) -> None:
    """Refuse a node with other attributes than the replacement computes; None allows any value."""
    found = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    known = {**allowed, **needed}
    wrong = [name for name, value in found.items() if name not in known or known[name] not in (None, value)]
    wrong += [name for name in needed if name not in found]
    if wrong:
        raise ValueError(f"{node.op_type} {node.name}: unexpected {', '.join(wrong)}")


def _shared_constants(hidden_width: int) -> Constants:
    wide = hidden_width + _PINNED_UNITS
    return {
        "int8.input_unit": np.array(_UNIT),
        "int8.largest": np.array(255, np.uint8),
        "int8.least": np.array(0, np.uint8),
        "int8.one_feature": np.array([0, 0, 0, 0, 0, 1], np.int64),  # at the end of the last of three axes
        "int8.first_hidden": _pinned_state(wide, 1.0),
        "int8.first_cell": _pinned_state(wide, largest_cell(wide)),
        "int8.directions": np.array([2], np.int64),
        "int8.wide": np.array([wide], np.int64),
        "int8.first": np.array([0], np.int64),
        "int8.hidden_width": np.array([hidden_width], np.int64),
        "int8.last_axis": np.array([-1], np.int64),
    }


def _lstm_constants(
    name: str, w_2GI: FloatArray, r_2GH: FloatArray, b_2G: FloatArray, range_I: FloatArray
) -> Constants:
    if range_I.shape != w_2GI.shape[2:]:
        raise ValueError(f"{name} has {w_2GI.shape[2]} inputs, the ranges are of {range_I.size}")
    hidden_width = r_2GH.shape[2]
    w_int8, w_scales = quantize_rows(np.pad(_widen_gates(w_2GI * range_I), ((0, 0), (0, 0), (0, 1))))
    # one scale a direction: the operator spends a sixth of its time on scales a gate, at each step
    r_wide = np.pad(_widen_gates(r_2GH), ((0, 0), (0, 0), (0, _PINNED_UNITS)))
    r_int8, r_scales = quantize_rows(r_wide.reshape(2, -1))
    r_int8 = r_int8.reshape(r_wide.shape)
    # the operator reads x / range + 128 units, which lies in 0 to 255 units: what that adds is taken away again
    shift_2G = (w_int8[..., :-1].astype(np.float32) * w_scales[..., None]).sum(axis=2) * (128 * _UNIT)
    input_bias, recurrent_bias = (_widen_gates(part[..., None])[..., 0] for part in np.split(b_2G, 2, axis=1))
    pinned_24H = np.zeros((2, 4, hidden_width + _PINNED_UNITS), np.float32)
    for gate, value in enumerate((-_SATURATED, _SATURATED, _SATURATED, 0.0)):  # i o f c: the cell stays as it is
        pinned_24H[:, gate, hidden_width:] = value
    bias = input_bias - shift_2G + pinned_24H.reshape(2, -1)
    return {
        f"int8.{name}.scale": (1 / range_I).astype(np.float32),
        f"int8.{name}.w": np.ascontiguousarray(w_int8.transpose(0, 2, 1)),
        f"int8.{name}.w_scales": w_scales,
        f"int8.{name}.w_zeros": np.zeros(w_scales.shape, np.int8),
        f"int8.{name}.r": np.ascontiguousarray(r_int8.transpose(0, 2, 1)),
        f"int8.{name}.r_scales": r_scales,
        f"int8.{name}.r_zeros": np.zeros(r_scales.shape, np.int8),
        f"int8.{name}.b": np.concatenate([bias, recurrent_bias], axis=1).astype(np.float32),
    }


def _lstm_nodes(node: onnx.NodeProto, hidden_width: int) -> list[onnx.NodeProto]:
    x_TBI, lengths, y_T2BH = node.input[0], node.input[4], node.output[0]

    def value(name: str) -> str:
        return f"int8.{y_T2BH}.{name}"

    def make(op: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
        return helper.make_node(op, inputs, [output], **attributes)

    weights = [value(part) for part in ("w", "r", "b")]
    scales = [value(part) for part in ("w_scales", "w_zeros", "r_scales", "r_zeros")]
    lstm_inputs = [value("x"), *weights, lengths, value("h"), value("c"), "", *scales]
    width = hidden_width + _PINNED_UNITS
    return [
        make("Mul", [x_TBI, value("scale")], value("scaled")),
        make("QuantizeLinear", [value("scaled"), "int8.input_unit", "int8.middle"], value("quantized")),
        make("Pad", [value("quantized"), "int8.one_feature", "int8.largest"], value("padded")),
        make("DequantizeLinear", [value("padded"), "int8.input_unit", "int8.least"], value("x")),
        make("Shape", [lengths], value("batch")),
        make("Concat", ["int8.directions", value("batch"), "int8.wide"], value("state_shape"), axis=0),
        make("Expand", ["int8.first_hidden", value("state_shape")], value("h")),
        make("Expand", ["int8.first_cell", value("state_shape")], value("c")),
        make(
            "DynamicQuantizeLSTM",
            lstm_inputs,
            value("y"),
            domain=DOMAIN,
            direction="bidirectional",
            hidden_size=width,
        ),
        make("Slice", [value("y"), "int8.first", "int8.hidden_width", "int8.last_axis"], y_T2BH),
    ]


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
