"""Open an onnxruntime session from verified bytes, and say which provider really runs it."""

import ctypes.util
from collections.abc import Sequence
from typing import Literal

import onnx
import onnxruntime
from google.protobuf.message import DecodeError

from mqan_core.errors import BundleError

Provider = Literal["auto", "cpu", "cuda"]

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
_PROVIDERS: dict[Provider, tuple[str, ...]] = {"cpu": (CPU,), "cuda": (CUDA, CPU), "auto": (CUDA, CPU)}


def open_session(
    content: bytes, name: str, inputs: Sequence[str], *, provider: Provider, num_threads: int
) -> onnxruntime.InferenceSession:
    """Open a session over the bytes of a graph.

    Args:
        content: the graph, as hashed.
        name: name of the file, for messages.
        inputs: names of the inputs it must have.
        provider: where to run; ``auto`` takes a GPU when there is one.
        num_threads: threads within an operator.

    Raises:
        BundleError: the graph is malformed, refers to data outside itself, holds operators of another domain,
            functions or sub-graphs, or has other inputs than expected.
        RuntimeError: ``cuda`` was asked for and does not run here.
    """
    check_graph(content, name)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    wanted = [p for p in _PROVIDERS[provider] if p == CPU or (provider == "cuda" or _has_cuda())]
    try:
        session = onnxruntime.InferenceSession(content, options, providers=wanted)
    except Exception as error:  # onnxruntime raises many types, all meaning that the graph cannot be run
        raise BundleError(f"{name}: onnxruntime cannot run this graph: {error}") from error
    running = session.get_providers()[0]
    if provider == "cuda" and running != CUDA:
        raise RuntimeError(
            "provider cuda was asked for, but onnxruntime fell back to the CPU: install mqan[gpu], CUDA 13 and "
            "cuDNN 9, or set provider to cpu"
        )
    found = [node.name for node in session.get_inputs()]
    if sorted(found) != sorted(inputs):
        raise BundleError(f"{name}: has the inputs {found}, expected {list(inputs)}")
    return session


def check_graph(content: bytes, name: str) -> None:
    """Refuse a graph that could reach outside itself.

    Raises:
        BundleError: what it holds that is not allowed.
    """
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError as error:
        raise BundleError(f"{name}: not an ONNX graph") from error
    if model.functions:
        raise BundleError(f"{name}: holds functions, which are not allowed")
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx"):
            raise BundleError(
                f"{name}: holds the operator {node.domain}.{node.op_type}; only standard ones are allowed"
            )
        for attribute in node.attribute:
            if attribute.HasField("g") or attribute.graphs:
                raise BundleError(f"{name}: the operator {node.op_type} holds a sub-graph, which is not allowed")
            _refuse_external(attribute.t, name)
            for tensor in attribute.tensors:
                _refuse_external(tensor, name)
    for tensor in model.graph.initializer:
        _refuse_external(tensor, name)
    if model.graph.sparse_initializer:
        raise BundleError(f"{name}: holds sparse weights, which are not allowed")


def _refuse_external(tensor: onnx.TensorProto, name: str) -> None:
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise BundleError(f"{name}: the tensor {tensor.name!r} lies outside the file, which is not allowed")


def _has_cuda() -> bool:
    """Whether asking for CUDA can succeed; the list of providers alone says only how onnxruntime was built."""
    return CUDA in onnxruntime.get_available_providers() and ctypes.util.find_library("cuda") is not None
