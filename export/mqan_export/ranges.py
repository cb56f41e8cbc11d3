"""Measure the ranges of what products and LSTMs read, for the 8-bit graphs of a CPU."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from mqan_core.vectors import FloatArray
from mqan_runtime.half import restore_float32
from mqan_runtime.quantize import quantized_inputs

_ROOM = 1.1  # for what these examples did not show; values beyond are clipped
_LEAST_RANGE = 1e-3


def measure_input_ranges(
    graph: bytes, batches: Iterable[Mapping[str, npt.NDArray[np.generic]]]
) -> dict[str, FloatArray]:
    """Return, by the name of each tensor of ``quantized_inputs``, the largest absolute value of each feature [I].

    Args:
        graph: the float32 graph.
        batches: its inputs for real requests, one at a time, so that nothing is padding; at least one.

    Raises:
        ValueError: there are no requests.
    """
    model = onnx.load_model_from_string(graph)
    restore_float32(model)
    names = quantized_inputs(model)
    outputs = {output.name for output in model.graph.output} | {given.name for given in model.graph.input}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in outputs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = [output.name for output in session.get_outputs()]
    largest: dict[str, FloatArray] = {}
    for batch in batches:
        values = {**batch, **dict(zip(wanted, session.run(wanted, batch), strict=True))}
        for name in names:
            seen_I = np.abs(values[name]).max(axis=tuple(range(values[name].ndim - 1)))
            largest[name] = np.maximum(largest[name], seen_I) if name in largest else seen_I
    if not largest:
        raise ValueError("input ranges cannot be measured without requests")
    return {name: np.maximum(seen * _ROOM, _LEAST_RANGE).astype(np.float32) for name, seen in largest.items()}
