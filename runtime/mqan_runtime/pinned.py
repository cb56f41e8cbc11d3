"""The cell value at which onnxruntime's LSTM gives its largest output on this processor.

A tanh computed by a quotient of polynomials passes 1 by a digit or two of float32 for a few arguments near 9, and a
trained model's cells get there. What is to bound the outputs of all other units must be as large as theirs can be.
"""

from functools import cache

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper

_FAR = 30.0  # where a sigmoid is 0 or 1, and a tanh 1 or next to it
_FIRST, _LAST = (int(np.float32(x).view(np.int32)) for x in (7.5, 9.5))  # all that passes 1 lies between, as bits
_TOGETHER = 1 << 17

Shape = list[int | str]


@cache
def largest_cell(width: int) -> float:
    """Return the value of a cell, in the last but one of ``width`` hidden units, that bounds the outputs of all."""
    cells = _arguments_of_the_largest_tanh()
    outputs = _lstm_outputs(cells, width)
    return float(cells[outputs[:, -2].argmax()])


def _arguments_of_the_largest_tanh() -> npt.NDArray[np.float32]:
    """Return every float32 of which the tanh is the largest there is."""
    tanh = _session([helper.make_node("Tanh", ["x"], ["y"])], {"x": ["N"]}, {"y": ["N"]})
    found, largest = np.array([_FAR], np.float32), np.float32(1)
    for first in range(_FIRST, _LAST, _TOGETHER):
        x = np.arange(first, min(first + _TOGETHER, _LAST), dtype=np.int32).view(np.float32)
        y = tanh.run(None, {"x": x})[0]
        if y.max() > largest:
            found, largest = found[:0], y.max()
        if y.max() == largest > 1:
            found = np.concatenate([found, x[y == largest]])
    return found


def _lstm_outputs(cells: npt.NDArray[np.float32], width: int) -> npt.NDArray[np.float32]:
    """Return what each unit of an LSTM of open gates gives for cells of these values, [len(cells), width]."""
    constants = {
        "w": np.zeros((1, 4 * width, 1), np.float32),
        "r": np.zeros((1, 4 * width, width), np.float32),
        "b": np.repeat(np.array([-_FAR, _FAR, _FAR, 0, 0, 0, 0, 0], np.float32), width)[None],  # i o f c
        "x": np.zeros((1, len(cells), 1), np.float32),
        "h": np.zeros((1, len(cells), width), np.float32),
        "c": np.repeat(cells[:, None], width, axis=1)[None],
    }
    node = helper.make_node("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["", "y"], hidden_size=width)
    lstm = _session([node], {name: list(array.shape) for name, array in constants.items()}, {"y": [1, "N", width]})
    outputs: npt.NDArray[np.float32] = lstm.run(None, constants)[0][0]
    return outputs


def _session(
    nodes: list[onnx.NodeProto], inputs: dict[str, Shape], outputs: dict[str, Shape]
) -> onnxruntime.InferenceSession:
    def describe(tensors: dict[str, Shape]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in tensors.items()]

    graph = helper.make_graph(nodes, "pinned", describe(inputs), describe(outputs))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
