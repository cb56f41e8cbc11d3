"""What the engine refuses, and what it says of itself."""

import json
import multiprocessing
import os
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import onnx
import pytest

from mqan_core.answer.types import Source
from mqan_core.ask.options import YES_NO, Options, choices_of
from mqan_core.errors import BundleError, InputError
from mqan_core.manifest import MANIFEST
from mqan_runtime.engine import Engine
from mqan_runtime.session import _blame, open_session, session_options
from tests.processes import held_by


@pytest.fixture(scope="module")
def engine(tiny_bundle: Path) -> Engine:
    return Engine.open(tiny_bundle)


def test_cuda_without_a_device_is_an_error_not_a_silent_fallback(tiny_bundle: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a CUDA device")
    with pytest.raises((RuntimeError, BundleError)):
        Engine.open(tiny_bundle, provider="cuda")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (Options(choices_of(["a", "b"])), "choices"),
        (Options(YES_NO, explain=True), "yes_no"),
        (Options(choices_of(["a", "b"]), is_scale=True), "scale"),
        (Options(sources=frozenset([Source.CONTEXT])), "sources"),
        (Options(contiguous=True), "contiguous"),
        (Options(every=True), "all"),
        (Options(alternatives=1), "alternatives"),
        (Options(min_probability=0.5), "min_probability"),
        (Options(explain=True), "explain"),
    ],
)
def test_what_only_other_kinds_can_do_is_refused(engine: Engine, options: Options, field: str) -> None:
    with pytest.raises(InputError, match=field) as raised:
        engine.read("The kettle is red.", "What is red?", options)
    assert (raised.value.code, raised.value.field) == ("option_not_supported", field)


def test_a_bundle_of_format_7_answers_as_one_of_today(tiny_bundle: Path, tmp_path: Path, engine: Engine) -> None:
    manifest = json.loads((tiny_bundle / MANIFEST).read_text())
    names = {"reader-float32.onnx": "encoder.onnx", "decoder_step-float32.onnx": "decoder_step.onnx"}
    sizes = {name: manifest["sizes"][name] for name in ("width", "num_layers", "num_heads", "head_width")}
    sizes |= {"num_generated": manifest["sizes"]["num_generated"], "vector_width": manifest["sizes"]["reader_width"]}
    kept = {name: manifest[name] for name in ("name", "version", "max_positions", "scores", "training")}
    files = {names.get(name, name): entry for name, entry in manifest["files"].items()}
    for name in manifest["files"]:
        (tmp_path / names.get(name, name)).write_bytes((tiny_bundle / name).read_bytes())
    (tmp_path / MANIFEST).write_text(json.dumps({**kept, "format_version": 7, "dimensions": sizes, "files": files}))
    older = Engine.open(tmp_path, provider="cpu")
    asked = "Ada wrote notes on the Engine.", "Who wrote?"
    assert older.answer([older.read(*asked)], [20]) == engine.answer([engine.read(*asked)], [20])


@pytest.mark.parametrize("limit", [0, 128, -1])
def test_limits_out_of_range_are_refused(engine: Engine, limit: int) -> None:
    request = engine.read("Ada wrote notes.", "Who wrote?")
    with pytest.raises(ValueError, match="1 to 127"):
        engine.answer([request], [limit])


def make_graph() -> bytes:
    given, out = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "g", [given], [out])
    opsets = [onnx.helper.make_opsetid("", 18)]
    return bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def test_a_session_does_not_keep_the_bytes_that_it_was_opened_from() -> None:
    content = make_graph()
    before = sys.getrefcount(content)
    session = open_session(content, "m.onnx", ["x"], ["y"], provider="cpu", num_threads=1)
    assert session.get_inputs()[0].name == "x"
    assert sys.getrefcount(content) == before


def test_a_gpu_that_fails_is_not_the_fault_of_the_bundle() -> None:
    good = make_graph()
    error = _blame(good, session_options(1), "encoder.onnx", RuntimeError("CUDA failure 700"))
    assert isinstance(error, RuntimeError)
    assert str(error).startswith(
        "encoder.onnx: runs on the CPU, but not on the GPU: CUDA failure 700. Check the driver"
    )
    assert isinstance(_blame(good[:-20], session_options(1), "encoder.onnx", RuntimeError("no graph")), BundleError)


def _memory_around_long_requests(bundle: Path) -> tuple[int, int, int]:
    """Return what a process of its own holds before long requests, the most that it held, and after them, in KiB."""
    engine = Engine.open(bundle, provider="cpu")
    short, long = (engine.read("Ada wrote notes. " * count, "Who wrote?") for count in (3, 1000))
    held = []
    for requests in ([short], [long] * 2):
        engine.answer(requests, [1] * len(requests))
        held.append(held_by(os.getpid()).memory_kib)
    return held[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, held[1]


def test_the_memory_of_long_requests_is_given_back(tiny_bundle: Path) -> None:
    """Else a server would keep that of the largest batch that it ever met.

    In a process of its own: where something has been trained, the process keeps what it once had.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        before, most, after = pool.submit(_memory_around_long_requests, tiny_bundle).result()
    assert after - before < (most - before) / 2
