"""Where an answer's time goes, and how far each operator is from what the core can do: one core, the shipped bundle.

The core's rates are measured first: 8-bit and float32 products of large matrices in onnxruntime, and copying in memory
that no cache holds. Then onnxruntime's own profile gives the time of each operator, and its shapes the multiplications
that it must do: its floor is these over the core's rate for its kind. Operators that only move, mask or scale have no
floor here; theirs is in the bytes, which the caches mostly hold. The profiler itself makes short operators look longer,
so the whole is timed without it, too.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import json
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from turns import CONTEXT, QUESTION

from mqan_runtime.engine import Engine

DOMAIN = "com.microsoft"  # onnxruntime's own operators
SIDE = 1024  # of the matrices that the rates are measured with
COPIED_BYTES = 2**28
LARGEST_OF = 12  # runs; a rate is the best of them
NUM_TOKENS = 3  # of the answer; a step more for its end

Shapes = list[list[int]]


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--runs", type=int, default=40)
    given = parser.parse_args()
    rates = {"int8": products_a_second(is_int8=True), "float32": products_a_second(is_int8=False)}
    bytes_a_second = best_rate(copy_once(), 2 * COPIED_BYTES)
    measured = ", ".join(f"{name} {rate / 1e9:.0f} G multiplications a second" for name, rate in rates.items())
    print(f"this core: {measured}; memory {bytes_a_second / 1e9:.1f} GB a second")

    engine = Engine.open(given.bundle, provider="cpu", num_threads=1)
    request = engine.read(CONTEXT, QUESTION)
    times = []
    for _ in range(given.runs):
        begun = time.perf_counter()
        engine.answer([request], [NUM_TOKENS])
        times.append(time.perf_counter() - begun)
    whole = statistics.median(times)
    size = f"{request.num_context_tokens} context and {request.num_question_tokens} question tokens"
    print(
        f"{size}, at most {NUM_TOKENS} of answer: {1e3 * whole:.2f} ms without the profiler, the median of {given.runs}"
    )
    report(list(profiled(given.bundle, given.runs)), rates, bytes_a_second, given.runs, whole)
    return 0


def report(
    nodes: Sequence[dict[str, Any]], rates: dict[str, float], bytes_a_second: float, num_runs: int, whole: float
) -> None:
    """Print a row for each operator that takes 1 % or more, then the floors of all."""
    spent: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    products: Counter[str] = Counter()
    floors: dict[str, float] = defaultdict(float)
    num_bytes = 0
    for node in nodes:
        arguments = node["args"]
        name = arguments["op_name"]
        spent[name] += node["dur"]
        calls[name] += 1
        number, kind = multiplications(
            name, shapes(arguments["input_type_shape"]), shapes(arguments["output_type_shape"])
        )
        products[name] += number
        floors[name] += number / rates[kind]
        num_bytes += (
            int(arguments["activation_size"]) + int(arguments["output_size"]) + int(arguments["parameter_size"])
        )
    total = sum(spent.values())
    print("| operator | calls | ms | of all | M multiplications | at least, ms | of the core's rate |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, microseconds in spent.most_common():
        if microseconds < total / 100:
            break
        milliseconds, floor = microseconds / num_runs / 1e3, 1e3 * floors[name] / num_runs
        row = f"| {name} | {calls[name] / num_runs:.0f} | {milliseconds:.2f} | {microseconds / total:.0%} |"
        work = (
            f" {products[name] / num_runs / 1e6:.1f} | {floor:.2f} | {floor / milliseconds:.0%} |"
            if floor
            else " | | |"
        )
        print(row + work)
    floor, moved = sum(floors.values()) / num_runs, num_bytes / num_runs / bytes_a_second
    print(f"all operators: {total / num_runs / 1e3:.2f} ms under the profiler")
    print(f"multiplications alone: at least {1e3 * floor:.2f} ms, {floor / whole:.0%} of the time without the profiler")
    print(f"all that is read and written, if it were in memory and not in caches: {1e3 * moved:.2f} ms")


def multiplications(operator: str, inputs: Shapes, outputs: Shapes) -> tuple[int, str]:
    """Return how many multiplications an operator's products need, and their kind."""
    if operator == "MatMulIntegerToFloat":
        return prod(outputs[0]) * inputs[0][-1], "int8"
    if operator == "Attention":  # of queries, keys and values that were projected before
        batch, length, width = outputs[0]
        return 2 * batch * length * length * width, "float32"
    if operator in ("MatMul", "FusedMatMul"):
        shared = inputs[0][-1] if len(inputs[0]) < 2 or inputs[0][-2] == outputs[0][-2] else inputs[0][-2]
        return prod(outputs[0]) * shared, "float32"
    return 0, "float32"


def shapes(types: list[dict[str, list[int]]]) -> Shapes:
    """Return the shapes of the tensors in a profile; weights that onnxruntime has packed are left out there."""
    return [shape for of_type in types for shape in of_type.values()]


def profiled(bundle: Path, num_runs: int) -> Iterator[dict[str, Any]]:
    """Answer so often with onnxruntime's profiler on; yield its record of each operator that ran, of the last runs."""
    sessions: list[onnxruntime.InferenceSession] = []
    plain = onnxruntime.InferenceSession
    with tempfile.TemporaryDirectory() as folder:

        class Profiled(plain):  # type: ignore[misc, valid-type]  # the engine has no use for a switch
            def __init__(self, content: bytes, options: onnxruntime.SessionOptions, **others: Any) -> None:
                options.enable_profiling = True
                options.profile_file_prefix = str(Path(folder) / str(len(sessions)))
                super().__init__(content, options, **others)
                sessions.append(self)

        onnxruntime.InferenceSession = Profiled
        try:
            engine = Engine.open(bundle, provider="cpu", num_threads=1)
        finally:
            onnxruntime.InferenceSession = plain
        request = engine.read(CONTEXT, QUESTION)
        begun = [session.get_profiling_start_time_ns() for session in sessions]
        first = time.perf_counter_ns()
        for _ in range(num_runs):
            engine.answer([request], [NUM_TOKENS])
        for session, start in zip(sessions, begun, strict=True):
            for event in json.loads(Path(session.end_profiling()).read_text()):
                if event.get("cat") == "Node" and 1000 * event["ts"] + start >= first:  # not of the warm-up
                    yield event


def products_a_second(*, is_int8: bool) -> float:
    """Return the rate of multiplying two square matrices on one thread."""
    square = [SIDE, SIDE]
    rng = np.random.default_rng(0)
    if is_int8:
        node = helper.make_node("MatMulIntegerToFloat", ["x", "w", "x_scale", "w_scale"], ["y"], domain=DOMAIN)
        weights = {
            "w": rng.integers(-127, 128, square).astype(np.int8),
            "x_scale": np.float32(0.01),
            "w_scale": np.full(SIDE, 0.01, np.float32),
        }
        fed = rng.integers(0, 256, square).astype(np.uint8)
    else:
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        weights = {"w": rng.standard_normal(square).astype(np.float32)}
        fed = rng.standard_normal(square).astype(np.float32)
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(fed.dtype), square)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, square)],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return best_rate(lambda: session.run(None, {"x": fed}), SIDE**3)


def copy_once() -> Callable[[], object]:
    """Return a function that copies more than the caches hold."""
    source = np.ones(COPIED_BYTES, np.uint8)
    target = np.zeros_like(source)
    return lambda: np.copyto(target, source)


def best_rate(call: Callable[[], object], amount: int) -> float:
    """Return the most of an amount that a call does in a second."""
    times = []
    for _ in range(LARGEST_OF):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return amount / min(times)


if __name__ == "__main__":
    sys.exit(main())
