"""Exporting the paper's network."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from mqan_core.bundle import verify_files
from mqan_core.example import Example
from mqan_export import bundle
from mqan_training.checkpoint import Checkpoint
from mqan_training.model.network import Network
from mqan_training.recipe import Recipe, WordsConfig

EXAMPLES = [Example("t", "1", "The old harbour was closed.", "What was closed?", ("harbour",))]


def test_the_papers_network_is_exported_as_the_default_model_is(
    tiny_network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "load_network", lambda _: copy.deepcopy(tiny_network))
    words = WordsConfig(kind="words", vectors="v", model=tiny_network.mqan.config)
    recipe = Recipe(name="tiny", reader=words, sources={"sst": 1}, steps=1)
    checkpoint = Checkpoint(Path(), recipe, 1, {}, (), {}, {}, {})
    named = {"name": "tiny", "version": "1", "model_card": "# tiny\n"}
    with pytest.raises(ValueError, match="parity cannot be checked without examples: give questions with a text"):
        bundle.export_bundle(checkpoint, tmp_path / "bundle", [], **named)
    assert not (tmp_path / "bundle").exists()
    report = bundle.export_bundle(checkpoint, tmp_path / "bundle", EXAMPLES, **named)
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
        bundle.export_bundle(checkpoint, tmp_path / "bundle", EXAMPLES, name="rung", version="1", model_card="")
    assert not (tmp_path / "bundle").exists()
