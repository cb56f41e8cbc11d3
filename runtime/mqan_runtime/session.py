"""Open an onnxruntime session from verified bytes, and say which provider really runs it."""

import ctypes
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import onnxruntime
from google.protobuf.message import DecodeError

from mqan_core.errors import BundleError
from mqan_runtime.onnx_graph_pb2 import ModelProto, TensorProto

Provider = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "int8"]

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
_SLOWER = ["SkipLayerNormFusion"]  # its operator takes several times as long as the two that it replaces on a CPU
# what onnxruntime's own tools put into 8-bit graphs
_ALLOWED: Final = frozenset(
    ("com.microsoft", name) for name in ("MatMulIntegerToFloat", "QGemm", "BiasGelu", "FusedMatMul", "FusedGemm")
)
_LARGE = 1024  # pieces or words read at once, whose memory onnxruntime shall not keep for ever
_LARGEST_WEIGHT = 1e10  # a mask has 1e9; products of larger ones could overflow
_LARGEST_HALF = 65_504  # the largest finite number of float16
_FLOAT, _FLOAT16 = 1, 10  # types of tensors, as ONNX numbers them
# what reading weights of the wrong form raises
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_CUDA_OPTIONS = {"use_tf32": "0"}  # float32 is to be float32
_FRUGAL = {"arena_extend_strategy": "kSameAsRequested"}  # a capture may need more than its trials took, so not there

_MXCSR = 7  # its place among the 32-bit words of glibc's fenv_t on x86-64
_FLUSH = 0x8040  # FTZ and DAZ: what is computed, and what is read
_Environment = ctypes.c_uint32 * 8
_has_glibc = platform.libc_ver()[0] == "glibc"
_libm = ctypes.CDLL("libm.so.6") if _has_glibc and platform.machine().lower() in ("x86_64", "amd64") else None


def is_int8(provider: Provider, precision: Precision) -> bool:
    """Whether graphs run with 8-bit products: on a CPU, unless float32 is asked for; on a GPU they are refused."""
    on_cpu = provider == "cpu" or (provider == "auto" and not has_cuda())
    if precision == "int8" and not on_cpu:
        raise ValueError("precision int8 is for the CPU: set provider to cpu, or precision to auto")
    return on_cpu and precision != "float32"


def session_options(num_threads: int) -> onnxruntime.SessionOptions:
    """Return how sessions run: within so many threads, and adding up 8-bit products exactly."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # it keeps a plan, and a block of memory, for each shape that it has met
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # 8-bit weights have 7 bits, so that sums do not overflow on an x86 CPU without VNNI: no slower products are needed
    options.add_session_config_entry("session.x64quantprecision", "0")
    return options


def run_options(session: onnxruntime.InferenceSession, num_read: int) -> onnxruntime.RunOptions | None:
    """Return how a reader runs over pieces or words, padding included: after many it gives a CPU's memory back."""
    if num_read <= _LARGE or session.get_providers() != [CPU]:
        return None
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


def open_session(
    content: bytes,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    provider: Provider,
    num_threads: int,
    fix: Callable[[bytes], bytes] | None = None,
) -> onnxruntime.InferenceSession:
    """Open a session over a graph that runs as it is hashed; it may hold some of onnxruntime's operators.

    ``fix`` fixes the sizes of the checked graph, so that on CUDA its runs are captured as CUDA graphs; no node may then
    be left to the CPU. BundleError: the graph is none that may run, or has other inputs or outputs than expected;
    RuntimeError: ``cuda`` was asked for and does not run here, or the GPU fails where a CPU does not.
    """
    check_graph(content, name)
    is_captured = fix is not None
    if fix is not None:
        try:
            content = fix(content)
        except _MALFORMED as error:
            raise BundleError(f"{name}: its inputs or outputs are malformed: {error}") from error
    options = session_options(num_threads)
    wanted: list[str | tuple[str, dict[str, str]]] = [CPU]
    if provider != "cpu" and (provider == "cuda" or has_cuda()):
        if CUDA in onnxruntime.get_available_providers():
            onnxruntime.preload_dlls()  # those that pip has installed, which the system's loader does not find
        own = {"enable_cuda_graph": "1"} if is_captured else {"enable_cuda_graph": "0", **_FRUGAL}
        wanted.insert(0, (CUDA, {**own, **_CUDA_OPTIONS}))
        if is_captured:
            wanted.pop()
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        session = onnxruntime.InferenceSession(content, options, providers=wanted, disabled_optimizers=_SLOWER)
    except Exception as error:  # onnxruntime raises many types
        if len(wanted) > 1 or is_captured:
            raise _blame(content, options, name, error) from error
        raise BundleError(f"{name}: onnxruntime cannot run this graph: {error}") from error
    session._model_bytes = None  # kept to open it with another provider, which is never done here
    give_back_memory()  # a graph is opened with several copies of it
    if provider == "cuda" and session.get_providers()[0] != CUDA:
        raise RuntimeError(
            "provider cuda was asked for, but onnxruntime fell back to the CPU: install onnxruntime-gpu in "
            "its place, CUDA 13 and cuDNN 9, or set provider to cpu"
        )
    for kind, nodes, expected in (("in", session.get_inputs(), inputs), ("out", session.get_outputs(), outputs)):
        found = [node.name for node in nodes]
        if sorted(found) != sorted(expected):
            raise BundleError(f"{name}: has the {kind}puts {found}, expected {list(expected)}")
    return session


def give_back_memory() -> None:
    """Give the system what has been freed, which glibc would keep."""
    if _has_glibc:
        ctypes.CDLL(None).malloc_trim(0)


def _blame(content: bytes, options: onnxruntime.SessionOptions, name: str, error: Exception) -> Exception:
    """Say whose fault it is that a GPU does not run a graph: the graph's if a CPU does not run it either."""
    try:
        onnxruntime.InferenceSession(content, options, providers=[CPU], disabled_optimizers=_SLOWER)
    except Exception:
        return BundleError(f"{name}: onnxruntime cannot run this graph: {error}")
    return RuntimeError(
        f"{name}: runs on the CPU, but not on the GPU: {error}. Check the driver, CUDA 13, cuDNN 9 and the free memory "
        "of the GPU (nvidia-smi), or set provider to cpu"
    )


def check_graph(content: bytes, name: str) -> None:
    """Refuse a graph that could reach outside itself, or whose weights are none."""
    model = _check_structure(content, name)
    for tensor in model.graph.initializer:
        if tensor.data_type in (_FLOAT, _FLOAT16):
            try:
                array = _array_of(tensor)
            except _MALFORMED as error:
                raise BundleError(f"{name}: its weights are malformed: {error}") from error
            most = np.float32(_LARGEST_WEIGHT) if array.dtype == np.float32 else np.float16(_LARGEST_HALF)
            if not (np.abs(array) <= most).all():
                found = f"{tensor.name!r} holds numbers that are no weights, beyond {_LARGEST_WEIGHT:g}"
                raise BundleError(f"{name}: {found}")


def _array_of(tensor: TensorProto) -> npt.NDArray[np.floating[Any]]:
    if tensor.HasField("segment"):
        raise ValueError("a tensor in segments")
    kind = np.dtype("<f4" if tensor.data_type == _FLOAT else "<f2")
    if tensor.HasField("raw_data"):
        array = np.frombuffer(tensor.raw_data, kind)
    elif tensor.data_type == _FLOAT:
        array = np.array(tensor.float_data, kind)
    else:
        array = np.array(tensor.int32_data, np.uint16).view(kind)
    return array.reshape(tuple(tensor.dims))


def _check_structure(content: bytes, name: str) -> ModelProto:
    """Read a graph without data outside itself, functions, sub-graphs, and operators that are not allowed."""
    try:
        model = ModelProto.FromString(content)
    except DecodeError as error:
        raise BundleError(f"{name}: not an ONNX graph") from error
    if model.functions:
        raise BundleError(f"{name}: holds functions, which are not allowed")
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx") and (node.domain, node.op_type) not in _ALLOWED:
            message = f"{name}: holds the operator {node.domain}.{node.op_type}; only standard ones are allowed"
            raise BundleError(message)
        for attribute in node.attribute:
            if attribute.HasField("g") or attribute.graphs:
                raise BundleError(f"{name}: the operator {node.op_type} holds a sub-graph, which is not allowed")
            if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
                raise BundleError(f"{name}: the operator {node.op_type} holds sparse weights, which are not allowed")
            _refuse_external(attribute.t, name)
            for tensor in attribute.tensors:
                _refuse_external(tensor, name)
    for tensor in model.graph.initializer:
        _refuse_external(tensor, name)
    if model.graph.sparse_initializer:
        raise BundleError(f"{name}: holds sparse weights, which are not allowed")
    return model


def _refuse_external(tensor: TensorProto, name: str) -> None:
    if tensor.data_location or tensor.external_data:
        raise BundleError(f"{name}: the tensor {tensor.name!r} lies outside the file, which is not allowed")


def has_cuda() -> bool:
    """Whether there is a GPU to see; the list of providers alone says only how onnxruntime was built."""
    if CUDA not in onnxruntime.get_available_providers():
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    number = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(number)) == 0 and number.value > 0


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Count numbers below float32's normal form as 0 in this thread, on x86-64 Linux; takes about 3 microseconds.

    A trained model's attention is full of them, and a CPU takes many times as long for each. onnxruntime's own setting
    for it changes the thread that opens a session, for good and for whatever else that thread computes.
    """
    if _libm is None:
        yield
        return
    before = _Environment()
    _libm.fegetenv(before)
    within = _Environment.from_buffer_copy(before)
    within[_MXCSR] |= _FLUSH
    _libm.fesetenv(within)
    try:
        yield
    finally:
        _libm.fesetenv(before)
