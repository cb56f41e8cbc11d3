"""Graphs made in a test, run as the engine runs a bundle's."""

import onnx
import onnxruntime

from mqan_runtime.session import CPU, session_options


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """Open a graph that no bundle holds."""
    return onnxruntime.InferenceSession(model.SerializeToString(), session_options(1), providers=[CPU])
