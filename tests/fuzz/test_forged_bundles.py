"""Bundles forged by somebody who knows the format: what opens serves, and what does not is refused in one line.

What is wrong is what a manifest says, its bytes, a number or a word in a file, or bytes of a file; every hash is
right. 300 of them; ``MQAN_FUZZ_CASES`` beyond that makes more.
"""

import asyncio
import hashlib
import json
import math
import multiprocessing
import random
import resource
import shutil
import struct
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
from mqan_core.answer.types import Source
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
from tests.fuzz.conftest import damaged

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
    way = chance.choice(["manifest"] * 12 + ["numbers", "words"] * 2 + ["bytes", "bytes of the manifest"])
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
            _sign(folder, manifest, name, damaged((folder / name).read_bytes(), chance))
    content = json.dumps(manifest).encode()
    (folder / MANIFEST).write_bytes(damaged(content, chance) if way == "bytes of the manifest" else content)
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
    for token in answer.tokens:
        if token.span is not None:
            text = _CONTEXT if token.source is Source.CONTEXT else _QUESTION
            assert text[token.span.start : token.span.end] == token.text
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


def test_forged_bundles_are_refused_in_one_line_or_serve(tiny_bundle: Path, tmp_path: Path, num_cases: int) -> None:
    num_forged = max(_FORGED, num_cases)
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
    for way in ("manifest", "numbers", "words", "bytes", "bytes of the manifest"):
        assert outcomes[f"{way}: refused"], way


Forge = Callable[[Path, dict[str, Any]], object]


def step_of(manifest: dict[str, Any]) -> str:
    return str(manifest["graphs"]["cpu"]["decoder_step"])


def in_graph(change: Callable[[onnx.ModelProto], object]) -> Forge:
    def forge_it(folder: Path, manifest: dict[str, Any]) -> None:
        model = onnx.load_model_from_string((folder / step_of(manifest)).read_bytes())
        change(model)
        _sign(folder, manifest, step_of(manifest), model.SerializeToString())

    return forge_it


def in_words(change: Callable[[dict[str, Any]], object]) -> Forge:
    def forge_it(folder: Path, manifest: dict[str, Any]) -> None:
        lists = json.loads((folder / VOCABULARY).read_bytes())
        change(lists)
        _sign(folder, manifest, VOCABULARY, json.dumps(lists).encode())

    return forge_it


def in_sizes(name: str, change: Callable[[int], int]) -> Forge:
    return lambda _, manifest: manifest["sizes"].update({name: change(manifest["sizes"][name])})


def said(**changes: Any) -> Forge:
    return lambda _, manifest: manifest.update(changes)


def numbers(name: str, value: float) -> Forge:
    def forge_it(folder: Path, manifest: dict[str, Any]) -> None:
        tensors = {key: values.copy() for key, values in load((folder / VECTORS).read_bytes()).items()}
        tensors[name] = np.full(tensors[name].shape, value, np.float32)
        _sign(folder, manifest, VECTORS, save(tensors))

    return forge_it


def outside(tensor: onnx.TensorProto) -> None:
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"


def outside_in_a_node(model: onnx.ModelProto) -> None:
    attribute = model.graph.node.add(op_type="Constant", output=["far"]).attribute.add(name="value")
    attribute.type = onnx.AttributeProto.TENSOR
    attribute.t.data_type, attribute.t.dims[:] = onnx.TensorProto.FLOAT, [1]
    outside(attribute.t)


def add_loop(model: onnx.ModelProto) -> None:
    body = model.graph.node.add(op_type="Loop").attribute.add(name="body", type=onnx.AttributeProto.GRAPH)
    body.g.name = "body"


def weigh(number: float) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        floats = (tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT)
        tensor = max(floats, key=lambda tensor: len(tensor.raw_data))
        tensor.raw_data = tensor.raw_data[:-4] + struct.pack("<f", number)

    return change


def add_a_tebibyte(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.array([2**20, 2**18], np.int64), "shape"))
    model.graph.node.append(helper.make_node("ConstantOfShape", ["shape"], ["large"]))
    model.graph.node.append(helper.make_node("ReduceSum", ["large"], ["sum"]))


def turn_in_a_circle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = model.graph.node[len(model.graph.node) - 1].output[0]


def swap_graphs(folder: Path, manifest: dict[str, Any]) -> None:
    graphs = manifest["graphs"]["cpu"]
    one, other = ((folder / graphs[part]).read_bytes() for part in ("reader", "decoder_step"))
    _sign(folder, manifest, graphs["reader"], other)
    _sign(folder, manifest, graphs["decoder_step"], one)


_SIZES = "does not run with the sizes that manifest.json states"
_NO_WEIGHTS = "holds numbers that are no weights, beyond 1e+10"
_DIMENSIONS = "does not run with the dimensions that the manifest states"
_PIECES: dict[str, tuple[Forge, str]] = {
    "words that are numbers": (in_words(lambda lists: lists.update(pieces=[1, 2])), "expected a list of strings"),
    "fewer words": (in_words(lambda lists: lists["pieces"].pop()), "do not have the sizes"),
    "fewer word pieces": (in_words(lambda lists: lists["word_pieces"].pop()), "do not have the sizes"),
    "a lone surrogate among the words": (
        in_words(lambda lists: lists["pieces"].__setitem__(0, "\ud800")),
        "end of hex escape",
    ),
    "deep words": (
        lambda folder, manifest: _sign(folder, manifest, VOCABULARY, b'{"pieces":' + b"[" * 200_000),
        "recursion limit exceeded",
    ),
    "a name above": (
        lambda _, manifest: manifest["files"].update({"../evil": {"num_bytes": 1, "sha256": "0" * 64}}),
        "lists the files ['../evil', ",
    ),
    "a whole path": (
        lambda _, manifest: manifest["files"].update({"/etc/passwd": manifest["files"].pop("README.md")}),
        "lists the files ['/etc/passwd', ",
    ),
    "a NUL in a name": (
        lambda _, manifest: manifest["files"].update({"README.md\0": manifest["files"].pop("README.md")}),
        "lists the files ['README.md\\x00', ",
    ),
    "a huge width": (in_sizes("width", lambda _: 2**31 - 1), "sizes.width: Input should be less"),
    "another width": (in_sizes("width", lambda width: 2 * width), _SIZES),
    "more layers": (in_sizes("num_layers", lambda number: 2 * number), "reader-int8.onnx: has the outputs"),
    "more heads": (in_sizes("num_heads", lambda number: 2 * number), _SIZES),
    "wider heads": (in_sizes("head_width", lambda width: 2 * width), _SIZES),
    "huge positions": (said(max_positions=2**31 - 1), "max_positions: Input should be less"),
    "a graph of another name": (
        lambda _, manifest: manifest["graphs"]["cpu"].update(reader="../reader.onnx"),
        "graphs.cpu.reader: ",
    ),
    "no graphs": (said(graphs={}), "graphs: Dictionary should have at least 1 item"),
    "escapes in the name": (said(name='x\x1b[31m\r\n{"event": 1}'), "name: holds characters that cannot be printed"),
    "a surrogate in the name": (said(name="\ud800"), "Invalid JSON: unexpected end of hex escape"),
    "a long name": (said(name="n" * 101), "name: String should have at most 100 characters"),
    "a score that is no number": (said(scores={"a": {"b": math.nan}}), "scores.a.b: Input should be a finite number"),
    "a huge score": (said(scores={"a": {"b": 10**400}}), "scores.a.b: Input should be a finite number"),
    "a number of 4,000 digits": (said(training={"seconds": 10**4000}), "training: numbers must be finite"),
    "an offset that is no number": (said(refusal_offset=math.nan), "refusal_offset: Input should be a finite number"),
    "a calibration that overflows": (
        said(calibration={"context": {"scale": 1e6, "offset": 0.0}}),
        "calibration.context.scale: Input should",
    ),
    "a weight that is no number": (in_graph(weigh(math.nan)), _NO_WEIGHTS),
    "an infinite weight": (in_graph(weigh(math.inf)), _NO_WEIGHTS),
    "a weight beyond all": (in_graph(weigh(1e30)), _NO_WEIGHTS),
    "weights elsewhere": (in_graph(lambda model: outside(model.graph.initializer[0])), "lies outside the file"),
    "weights elsewhere in a node": (in_graph(outside_in_a_node), "lies outside the file"),
    "a function": (in_graph(lambda model: setattr(model.functions.add(), "name", "f")), "holds functions"),
    "a loop": (in_graph(add_loop), "Loop holds a sub-graph"),
    "an operator of others": (
        in_graph(lambda model: setattr(model.graph.node[0], "domain", "evil.example")),
        "operator evil.example.Cast; only",
    ),
    "another operator of onnxruntime": (
        in_graph(
            lambda model: model.graph.node[0].MergeFrom(onnx.NodeProto(domain="com.microsoft", op_type="Tokenizer"))
        ),
        "com.microsoft.Tokenizer; only",
    ),
    "a circle": (in_graph(turn_in_a_circle), "INVALID_ARGUMENT : Non-zero status code"),
    "a negative dimension": (
        in_graph(lambda model: model.graph.initializer[0].dims.__setitem__(0, -5)),
        "onnxruntime cannot run this graph",
    ),
    "a huge dimension": (
        in_graph(lambda model: model.graph.initializer[0].dims.__setitem__(0, 2**40)),
        "its weights are malformed",
    ),
    "a tensor of a tebibyte": (in_graph(add_a_tebibyte), _SIZES),
    "no graph": (
        lambda folder, manifest: _sign(folder, manifest, step_of(manifest), random.Random(1).randbytes(100_000)),
        "not an ONNX graph",
    ),
    "swapped graphs": (swap_graphs, "reader-int8.onnx: has the inputs"),
}
_WORDS: dict[str, tuple[Forge, str]] = {
    "more heads": (_PIECES["more heads"][0], _DIMENSIONS),
    "another width": (_PIECES["another width"][0], _DIMENSIONS),
    "a circle": (in_graph(turn_in_a_circle), "the graph is not acyclic"),
    **{
        f"{name} of {value}": (numbers(name, value), "numbers beyond 10000")
        for name in ("scales", "ngrams")
        for value in (1e38, math.inf, math.nan, 1e5)
    },
}


def verify(folder: Path) -> tuple[int, str, str]:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    result = CliRunner().invoke(app, ["verify", str(folder), "--provider", "cpu"])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def another_process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize(
    ("kind", "name"), [("small_bundle", name) for name in _PIECES] + [("tiny_bundle", name) for name in _WORDS]
)
def test_what_cannot_run_is_refused_in_one_line(
    kind: str, name: str, tmp_path: Path, another_process: ProcessPoolExecutor, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(request.getfixturevalue(kind), folder)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    forge_it, told = (_PIECES if kind == "small_bundle" else _WORDS)[name]
    forge_it(folder, manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    status, output, error = another_process.submit(verify, folder).result(300)
    assert (status, output) == (2, "")
    [line] = error.splitlines()
    assert line.isprintable()
    assert len(line) <= _LONGEST_LINE
    assert told in line


def test_the_bundles_that_are_forged_run(
    small_bundle: Path, tiny_bundle: Path, another_process: ProcessPoolExecutor
) -> None:
    for bundle in (small_bundle, tiny_bundle):
        assert another_process.submit(verify, bundle).result(300)[0] == 0
