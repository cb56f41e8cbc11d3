"""Store the weights of a graph in half the space: float16 with a Cast after each, as any runtime reads it.

``mqan export`` rounds the network to numbers that float16 holds before it compares anything, so the graph computes what
torch does.
"""

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from mqan_core.text.vectors import FloatArray

_HALF = ".half"  # end of the name of the stored weights; what reads them keeps their own name
_LEAST_SIZE = 1024  # smaller ones would save nothing


def as_half(array: FloatArray) -> npt.NDArray[np.float16] | None:
    """Return the same numbers in float16, or None where it does not hold them."""
    with np.errstate(over="ignore"):  # what overflows differs
        half = array.astype(np.float16)
    return half if np.array_equal(half, array) else None


def store_half(model: onnx.ModelProto) -> None:
    """Store the float32 weights that float16 holds exactly as float16, in place."""
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT:
            continue
        array = numpy_helper.to_array(tensor)
        half = as_half(array) if array.size >= _LEAST_SIZE else None
        if half is not None:
            casts.append(helper.make_node("Cast", [tensor.name + _HALF], [tensor.name], to=TensorProto.FLOAT))
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name + _HALF))
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*casts, *nodes])
