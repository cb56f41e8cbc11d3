"""Bundles forged by somebody who knows the format: what opens serves, and what does not is refused in one line.

Every hash is right. What is wrong is what a manifest says, a number or a word in a file, or bytes of a file. 300 of
them; ``MQAN_FUZZ_CASES`` beyond that makes more.
"""

import asyncio
import hashlib
import json
import math
import multiprocessing
import random
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from pydantic_core import to_json
from safetensors.numpy import load, save
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_core.bundle import open_bundle
from mqan_core.errors import BundleError, EngineFailedError
from mqan_core.manifest import MANIFEST, VECTORS, VOCABULARY
from mqan_runtime.engine import Engine
from mqan_serving.contract.answers import document_of
from mqan_serving.contract.model import model_document
from mqan_serving.observability.metrics import Metrics
from mqan_serving.rpc.messages import answer_response, model_response
from mqan_serving.service.answer_service import Service
from mqan_serving.settings import Settings
from tests.fuzz.test_bundles import damage

_FORGED = 300
_MOST_BYTES = 16 * 2**30  # of address space
_LONGEST_LINE = 600
_CONTEXT, _QUESTION = "the old harbour was closed in 1923", "When was it closed ?"

_TEXTS = [
    "", " ", "\ud800", "x\ud83d", "\x00", "a\nb", "a\r\n{\"event\": 1}", "\x1b[31mred", "\u202egnp", "\u2028", "\x85",
    "x" * 101, "y" * 1000, "z" * 200_000, "../../etc/passwd", "{0.__class__}", "%s%n", "\ufffe", "mqan\u200b", "é" * 90,
]  # fmt: skip
_NUMBERS: list[Any] = [
    math.nan, math.inf, -math.inf, 10**400, -(10**400), 10**18, 2**31, 2**31 - 1, 2**63, 2**64, -1, 0, -0.0, 0.5, 1e308,
    5e-324, 1e38, 1e30, True, 3,
]  # fmt: skip
_ODD: list[Any] = [None, [], {}, [[]], {"": {}}, "1", {"a": {"b": 10**400}}, {"a": {"b": math.nan}}]
_FLOATS = [math.nan, math.inf, -math.inf, 1e38, -1e38, 3e38, 1e30, 1e12, -1e12, 1e5, 0.0, -1.0, 1e-45]


def forge(folder: Path, chance: random.Random) -> str:
    """Forge a bundle in one of the ways there are; return which."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    way = chance.choice(["manifest"] * 12 + ["numbers", "words"] * 2 + ["bytes"])
    match way:
        case "manifest":
            for _ in range(chance.randint(1, 2)):
                _forge_a_place(manifest, chance)
        case "numbers":
            _sign(folder, manifest, VECTORS, _forge_a_tensor((folder / VECTORS).read_bytes(), chance))
        case "words":
            lists = json.loads((folder / VOCABULARY).read_bytes())
            words = lists[chance.choice(sorted(lists))]
            words[chance.randrange(len(words))] = chance.choice([*_TEXTS, *_ODD, 7])
            _sign(folder, manifest, VOCABULARY, json.dumps(lists).encode())
        case "bytes":
            name = chance.choice(sorted(manifest["files"]))
            _sign(folder, manifest, name, damage((folder / name).read_bytes(), chance))
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return way


def _forge_a_place(manifest: dict[str, Any], chance: random.Random) -> None:
    place, key = chance.choice(list(_places(manifest)))
    match chance.randrange(6):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[chance.choice([*_TEXTS, "unknown", "format_version"])] = place.pop(key)
        case 2 if isinstance(place, dict):
            place[chance.choice([*_TEXTS, "extra"])] = chance.choice([*_NUMBERS, *_TEXTS, *_ODD])
        case 3:
            deep: Any = 1
            for _ in range(chance.choice([5, 50, 500])):
                deep = {"a": deep} if chance.random() < 0.5 else [deep]
            place[key] = deep
        case _:
            place[key] = chance.choice([*_NUMBERS, *_TEXTS, *_ODD])


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a document: what holds it, and its key there."""
    keys = list(document) if isinstance(document, dict) else range(len(document))
    for key in keys:
        yield document, key
        if isinstance(document[key], dict | list):
            yield from _places(document[key])


def _forge_a_tensor(content: bytes, chance: random.Random) -> bytes:
    tensors = {name: values.copy() for name, values in load(content).items()}
    name = chance.choice(sorted(tensors))
    values = tensors[name]
    match chance.randrange(5):
        case 0:
            tensors[name] = values.astype(chance.choice([np.float16, np.float64, np.int32, np.bool_]))
        case 1:
            tensors[name] = values[: len(values) // 2].copy()
        case 2:
            tensors[name] = values[None].copy()
        case _ if values.dtype.kind == "f":
            most = chance.choice([1, max(1, values.size // 2), values.size])
            with np.errstate(over="ignore"):
                values.reshape(-1)[:most] = chance.choice(_FLOATS)
        case _:
            del tensors[name]
    return save(tensors)


def _sign(folder: Path, manifest: dict[str, Any], name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    manifest["files"][name] = {"num_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def refusal_of(call: Callable[[], object]) -> str | None:
    try:
        call()
    except (BundleError, EngineFailedError) as error:
        return str(error)
    return None


def serve_it(folder: Path) -> str | None:
    """Return the line that refuses a bundle, or None where all that a server tells of it and with it can be told."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    try:
        engine = Engine.open(folder, provider="cpu")
        (answer,) = engine.answer([engine.read(_CONTEXT, _QUESTION)], [min(3, engine.max_answer_tokens)])
    except (BundleError, EngineFailedError) as error:
        return str(error)
    assert 0 <= answer.probability <= 1
    metrics = Metrics()
    service: Service = Service(engine, Settings(), meter=metrics)
    documents = model_document(service.model, []), document_of(answer, service.model)
    told = [*(to_json(document, inf_nan_mode="null").decode() for document in documents), metrics.render().decode()]
    assert json.loads(told[0])["model"]["name"] == service.model.name
    assert all(math.isfinite(score.value) for score in service.model.scores)
    assert model_response(documents[0]).SerializeToString()
    assert answer_response(documents[1]).SerializeToString()
    assert f"{service.model.name} {service.model.version}".isprintable(), "a line of the log"
    asyncio.run(service.close())
    return None


@pytest.fixture(scope="module")
def num_forged(num_cases: int) -> int:
    return max(_FORGED, num_cases)


def test_forged_bundles_are_refused_in_one_line_or_serve(tiny_bundle: Path, tmp_path: Path, num_forged: int) -> None:
    outcomes: Counter[str] = Counter()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # a crash is told, and is not ours
        for number in range(num_forged):
            folder = tmp_path / f"{number}"
            shutil.copytree(tiny_bundle, folder)
            way = forge(folder, random.Random(number))
            # What opens is also run, in the other process.
            line = refusal_of(lambda: open_bundle(folder)) or pool.submit(serve_it, folder).result()  # noqa: B023
            if line is not None:
                assert line.isprintable(), (number, way, line)
                assert len(line) <= _LONGEST_LINE, (number, way, line)
            outcomes[f"{way}: {'served' if line is None else 'refused'}"] += 1
            shutil.rmtree(folder)
    print(f"\nforged bundles: {dict(sorted(outcomes.items()))}")
    assert outcomes.total() == num_forged
    for way in ("manifest", "numbers", "words", "bytes"):
        assert outcomes[f"{way}: refused"], way


_HOSTILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a lone surrogate": lambda manifest: manifest.update(name="\ud800"),
    "an escape": lambda manifest: manifest.update(name='x\x1b[31m\r\n{"event": 1}'),
    "a long name": lambda manifest: manifest.update(name="n" * 101),
    "a score of 10^400": lambda manifest: manifest.update(scores={"a": {"b": 10**400}}),
    "a score that is no number": lambda manifest: manifest.update(scores={"a": {"b": math.nan}}),
    "positions": lambda manifest: manifest.update(max_positions=2**31 - 1),
    "a calibration that overflows": lambda manifest: manifest.update(
        calibration={"context": {"scale": 1e6, "offset": 0.0}}
    ),
    "a number of 5,000 digits": lambda manifest: manifest.update(training={"seconds": 10**4000}),
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_verify_refuses_as_opening_does(tiny_bundle: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, folder)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    _HOSTILE[name](manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BundleError) as raised:
        open_bundle(folder)
    result = CliRunner().invoke(app, ["verify", str(folder)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"mqan: {raised.value}\n"


@pytest.mark.parametrize("value", [1e38, math.inf, math.nan, 1e5])
@pytest.mark.parametrize("name", ["scales", "ngrams"])
def test_vectors_that_no_sum_can_hold_are_refused(tiny_bundle: Path, tmp_path: Path, name: str, value: float) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, folder)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    tensors = {key: values.copy() for key, values in load((folder / VECTORS).read_bytes()).items()}
    tensors[name] = np.full(tensors[name].shape, value, np.float32)
    _sign(folder, manifest, VECTORS, save(tensors))
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="numbers beyond 10000"):
        open_bundle(folder)


def _in_graph(change: Callable[[onnx.ModelProto], object]) -> Callable[[Path, dict[str, Any]], None]:
    def forge_it(folder: Path, manifest: dict[str, Any]) -> None:
        name = next(name for name in sorted(manifest["files"]) if name.startswith("decoder_step"))
        for each in {name, name.replace("float32", "int8")} & set(manifest["files"]):
            model = onnx.load_model_from_string((folder / each).read_bytes())
            change(model)
            _sign(folder, manifest, each, model.SerializeToString())

    return forge_it


def _weights_elsewhere(model: onnx.ModelProto) -> None:
    node = model.graph.node.add(op_type="Constant", output=["far"])
    attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.data_type, attribute.t.dims[:] = onnx.TensorProto.FLOAT, [1]
    attribute.t.data_location = onnx.TensorProto.EXTERNAL
    entry = attribute.t.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"


def _add_a_tebibyte(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.array([2**20, 2**18], np.int64), "shape"))
    model.graph.node.append(helper.make_node("ConstantOfShape", ["shape"], ["large"]))
    model.graph.node.append(helper.make_node("ReduceSum", ["large"], ["sum"]))


def _turn_in_a_circle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = model.graph.node[len(model.graph.node) - 1].output[0]


def _swap_graphs(folder: Path, manifest: dict[str, Any]) -> None:
    graphs = manifest["graphs"]["cpu"]
    one, other = ((folder / graphs[part]).read_bytes() for part in ("reader", "decoder_step"))
    _sign(folder, manifest, graphs["reader"], other)
    _sign(folder, manifest, graphs["decoder_step"], one)


def _double(name: str) -> Callable[[Path, dict[str, Any]], None]:
    def forge_it(_: Path, manifest: dict[str, Any]) -> None:
        manifest["sizes"][name] *= 2

    return forge_it


def _open(folder: Path) -> str | None:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    return refusal_of(lambda: Engine.open(folder, provider="cpu"))


_DO_NOT_RUN: dict[str, Callable[[Path, dict[str, Any]], object]] = {
    "heads": _double("num_heads"),
    "width of a head": _double("head_width"),
    "width": _double("width"),
    "layers": _double("num_layers"),
    "a tensor of a tebibyte": _in_graph(_add_a_tebibyte),
    "weights elsewhere, in a node": _in_graph(_weights_elsewhere),
    "a circle": _in_graph(_turn_in_a_circle),
    "a negative dimension": _in_graph(lambda model: model.graph.initializer[0].dims.__setitem__(0, -5)),
    "a huge dimension": _in_graph(lambda model: model.graph.initializer[0].dims.__setitem__(0, 2**40)),
    "swapped graphs": _swap_graphs,
    "no graphs": lambda _, manifest: manifest.update(graphs={}),
    "an offset that is no number": lambda _, manifest: manifest.update(refusal_offset=math.nan),
}


@pytest.fixture(scope="module")
def another_process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize(
    ("kind", "name"),
    [("pieces", name) for name in _DO_NOT_RUN] + [("words", name) for name in ("heads", "width", "a circle")],
)
def test_what_cannot_run_is_refused_in_one_line(
    repository: Path, tiny_bundle: Path, tmp_path: Path, another_process: ProcessPoolExecutor, kind: str, name: str
) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle if kind == "words" else repository / "serving/bundles/default", folder)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    _DO_NOT_RUN[name](folder, manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    line = another_process.submit(_open, folder).result()
    assert line is not None
    assert line.isprintable()
    assert len(line) <= _LONGEST_LINE
