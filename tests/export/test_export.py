"""Exporting the paper's network: a bundle that does not compute what its checkpoint does gets no manifest."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

from mqan_core.example import Example
from mqan_core.manifest import MANIFEST
from mqan_export import bundle
from mqan_export.parity import ParityError
from mqan_training.checkpoint import Checkpoint
from mqan_training.model.network import Network
from mqan_training.recipe import Recipe, WordsConfig

EXAMPLES = [Example("t", "1", "The old harbour was closed.", "What was closed?", ("harbour",))]


@pytest.fixture
def write(tiny_network: Network, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Exports the small network."""
    monkeypatch.setattr(bundle, "load_network", lambda _: copy.deepcopy(tiny_network))
    words = WordsConfig(kind="words", vectors="v", model=tiny_network.mqan.config)
    recipe = Recipe(name="tiny", reader=words, sources={"sst": 1}, steps=1)
    checkpoint = Checkpoint(Path(), recipe, 1, {}, (), {}, {}, {})
    told = {"name": "tiny", "version": "1", "model_card": "# tiny\n"}
    return lambda folder, examples: bundle.export_bundle(checkpoint, folder, examples, **told)


def test_a_check_that_fails_leaves_no_manifest(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert write(tmp_path, EXAMPLES).num_examples == 1
    assert (tmp_path / MANIFEST).exists()

    def disagree(*_: object) -> None:
        raise ParityError("they disagree")

    monkeypatch.setattr(bundle, "check_parity", disagree)
    monkeypatch.setattr(bundle, "trace_words", lambda _: onnx.load(tmp_path / "reader-float32.onnx"))
    with pytest.raises(ParityError, match="they disagree"):
        write(tmp_path, EXAMPLES)
    assert (tmp_path / "reader-float32.onnx").exists()
    assert not (tmp_path / MANIFEST).exists()
    assert [path for path in tmp_path.parent.glob("*.unchecked-*")] == []


def test_nothing_is_written_without_examples(write: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="parity cannot be checked without examples: give questions with a text"):
        write(tmp_path / "bundle", [])
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("part", ["coattention", "question_pointer"])
def test_an_ablation_is_refused_before_anything_is_written(tiny_network: Network, tmp_path: Path, part: str) -> None:
    model = tiny_network.mqan.config
    model = replace(model, coattention=False) if part == "coattention" else replace(model, question_pointer=False)
    words = WordsConfig(kind="words", vectors="v", model=model)
    recipe = Recipe(name="rung", reader=words, sources={"sst": 1}, steps=1)
    checkpoint = Checkpoint(Path(), recipe, 1, {}, (), {}, {}, {})
    with pytest.raises(ValueError, match="ablations of the paper's table 2 .* are not exported"):
        bundle.export_bundle(checkpoint, tmp_path / "bundle", EXAMPLES, name="rung", version="1", model_card="")
    assert not (tmp_path / "bundle").exists()
