"""Exporting a network: float32 graphs compute what torch does, 8-bit ones nearly."""

import copy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from mqan_core.bundle import open_bundle, verify_files
from mqan_core.errors import BundleError
from mqan_core.example import Example
from mqan_core.manifest import MANIFEST, MODEL_CARD
from mqan_export import bundle as exported
from mqan_export.bundle import PiecesModel, WordsModel, export_bundle
from mqan_export.int8 import BalancedLinear
from mqan_export.parity import Parity, ParityError, check_parity
from mqan_export.step_graph import round_generator
from mqan_runtime.engine import Engine
from mqan_training.checkpoint import Checkpoint, load_checkpoint
from mqan_training.model.network import Network
from mqan_training.recipe import Recipe, WordsConfig
from tests.answering import make_examples, make_trained, write_small_bundle

Patch = pytest.MonkeyPatch
EXAMPLES = [Example("t", "1", "The old harbour was closed.", "What was closed?", ("harbour",))]


def test_the_bundle_answers_as_torch_does(small_export: tuple[Path, Parity]) -> None:
    folder, report = small_export
    assert report.num_examples == 30
    assert report.num_choices == 10
    assert report.max_probability_difference < 1e-4
    assert report.int8_agreement is not None
    assert report.int8_agreement > 0.5
    verify_files(folder)
    assert not list(folder.parent.glob("bundle.unchecked*"))


def test_another_network_is_found_out(small_export: tuple[Path, Parity]) -> None:
    engine = Engine.open(small_export[0], provider="cpu", precision="float32")
    other = make_trained(4)
    with pytest.raises(ParityError, match="torch answers"):
        check_parity(PiecesModel(other).answer, engine, make_examples(9))


@pytest.fixture
def graphs_are_there(small_export: tuple[Path, Parity], monkeypatch: Patch) -> None:
    """Lets an export of the small network take the graphs of another of it: tracing them takes half a minute."""
    done, report = small_export

    def write(model: PiecesModel, folder: Path) -> None:
        model._generator_inputs = torch.zeros(())
        for path in done.iterdir():
            if path.suffix in (".json", ".onnx") and path.name != MANIFEST and "int8" not in path.name:
                (folder / path.name).write_bytes(path.read_bytes())

    monkeypatch.setattr(PiecesModel, "write", write)
    monkeypatch.setattr(exported, "check_parity", lambda *_: (report, []))
    monkeypatch.setattr(exported, "quantise_reader", lambda *_: onnx.load(done / "reader-int8.onnx"))
    monkeypatch.setattr(exported, "quantise_step", lambda *_: onnx.load(done / "decoder_step-int8.onnx"))


@pytest.mark.usefixtures("graphs_are_there")
@pytest.mark.parametrize("check", ["check_parity", "agreement"])
def test_a_check_that_fails_leaves_no_manifest(
    check: str, small_export: tuple[Path, Parity], small_checkpoint: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Also not the one of an earlier bundle; nor a folder beside it, where a user's own of such a name stays."""

    def disagree(*_: object) -> None:
        raise ParityError("they disagree")

    folder, kept = tmp_path / "bundle", tmp_path / "bundle.unchecked" / "notes.txt"
    folder.mkdir()
    kept.parent.mkdir()
    kept.write_text("mine")
    (folder / MANIFEST).write_bytes((small_export[0] / MANIFEST).read_bytes())
    monkeypatch.setattr(exported, check, disagree)
    monkeypatch.chdir(folder)
    with pytest.raises(ParityError, match="they disagree"):
        write_small_bundle(small_checkpoint, Path())
    assert (folder / "reader-float32.onnx").exists()
    assert not (folder / MANIFEST).exists()
    assert kept.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "bundle.unchecked"]


def test_a_name_that_no_bundle_may_have_is_refused_first(small_checkpoint: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(small_checkpoint)
    for names, message in (({"name": "", "version": "1"}, "name of"), ({"name": "n", "version": "1\n"}, "version of")):
        with pytest.raises(BundleError, match=f"{message} a bundle"):
            export_bundle(checkpoint, tmp_path / "bundle", make_examples(3), **names, model_card="")
    assert not (tmp_path / "bundle").exists()


def test_a_file_that_is_missing_is_named(small_export: tuple[Path, Parity], tmp_path: Path) -> None:
    for path in small_export[0].iterdir():
        if path.name != "reader-float32.onnx":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    bundle = open_bundle(tmp_path)  # a CPU does not need it
    Engine(bundle, provider="cpu")
    with pytest.raises(BundleError, match="cannot read reader-float32.onnx"):
        verify_files(tmp_path)
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(BundleError, match="format_version: Field required"):
        open_bundle(tmp_path)


def test_eight_bit_weights_have_seven_bits(small_export: tuple[Path, Parity]) -> None:
    """Or an x86 CPU without VNNI would add up their products otherwise than one with it."""
    for name in ("reader-int8.onnx", "decoder_step-int8.onnx"):
        model = onnx.load(small_export[0] / name)
        arrays = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
        products = [n for n in model.graph.node if n.op_type in ("MatMulIntegerToFloat", "QGemm")]
        weights = [arrays[n.input[1 if n.op_type == "MatMulIntegerToFloat" else 3]] for n in products]
        assert len(weights) >= 8
        assert all(w.dtype == np.int8 and abs(w.astype(int)).max() <= 64 for w in weights)


@torch.no_grad()
def test_a_balanced_product_is_the_same_function() -> None:
    torch.manual_seed(0)
    linear = torch.nn.Linear(12, 7)
    x = torch.randn(2, 5, 12)
    balanced = BalancedLinear(linear, torch.rand(12) + 0.1, [3, 8])
    torch.testing.assert_close(balanced(x), linear(x))
    assert not balanced.rest.weight[:, [3, 8]].any()


@torch.no_grad()
def test_a_rounded_generator_is_not_rounded_again() -> None:
    decoder = make_trained().network.decoder
    before = decoder.generator.weight.clone()
    round_generator(decoder)
    once = decoder.generator.weight.clone()
    round_generator(decoder)
    assert 0 < float((once - before).abs().max()) < float(before.abs().max()) / 200
    torch.testing.assert_close(decoder.generator.weight, once, rtol=0, atol=1e-7)


def test_the_papers_network_is_exported_as_the_default_model_is(
    tiny_network: Network, tiny_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: WordsModel, folder: Path) -> None:
        for path in tiny_bundle.iterdir():  # it wrote them, too, which takes half a minute
            if path.name not in (MANIFEST, MODEL_CARD):
                shutil.copy(path, folder)

    monkeypatch.setattr(WordsModel, "write", write)
    monkeypatch.setattr(exported, "load_network", lambda _: copy.deepcopy(tiny_network))
    words = WordsConfig(kind="words", vectors="v", model=tiny_network.mqan.config)
    recipe = Recipe(name="tiny", reader=words, sources={"sst": 1}, steps=1)
    checkpoint = Checkpoint(Path(), recipe, 1, {}, (), {}, {}, {})
    named = {"name": "tiny", "version": "1", "model_card": "# tiny\n"}
    with pytest.raises(ValueError, match="parity cannot be checked without examples: give questions with a text"):
        export_bundle(checkpoint, tmp_path / "bundle", [], **named)
    assert not (tmp_path / "bundle").exists()
    report = export_bundle(checkpoint, tmp_path / "bundle", EXAMPLES, **named)
    assert report.num_examples == 1
    assert verify_files(tmp_path / "bundle").manifest.reader == "words"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.parametrize("part", ["coattention", "question_pointer"])
def test_an_ablation_is_refused_before_anything_is_written(tiny_network: Network, tmp_path: Path, part: str) -> None:
    model = tiny_network.mqan.config
    model = replace(model, coattention=False) if part == "coattention" else replace(model, question_pointer=False)
    words = WordsConfig(kind="words", vectors="v", model=model)
    recipe = Recipe(name="rung", reader=words, sources={"sst": 1}, steps=1)
    checkpoint = Checkpoint(Path(), recipe, 1, {}, (), {}, {}, {})
    with pytest.raises(ValueError, match="ablations of the paper's table 2 .* are not exported"):
        export_bundle(checkpoint, tmp_path / "bundle", EXAMPLES, name="rung", version="1", model_card="")
    assert not (tmp_path / "bundle").exists()
