"""What makes training on a CPU faster must not get in anybody's way."""

import json
import os
from pathlib import Path

import pytest

from mqan_training.config import load_config
from mqan_training.cpu import tune_process
from mqan_training.train import train


def test_the_cache_of_kernels_is_as_large_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")  # so that it is put back afterwards
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    tune_process()
    assert int(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) > 1024
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    tune_process()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"


def test_a_recipe_in_bfloat16_trains_in_float32_where_that_is_faster(
    tiny_recipe: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path, data = tiny_recipe

    def losses(name: str, autocast: str, *, has_instructions: bool) -> list[float]:
        monkeypatch.setattr("mqan_training.cpu.has_bfloat16", lambda: has_instructions)
        overrides = {"autocast": autocast, "steps": "8", "validate_every": "8"}
        train(load_config(path, overrides), data, tmp_path / name)
        return [json.loads(line)["loss"] for line in (tmp_path / name / "log.jsonl").read_text().splitlines()]

    whole = losses("whole", "none", has_instructions=True)
    assert "float32" not in capfd.readouterr().err
    assert losses("without", "bfloat16", has_instructions=False) == whole
    assert "this CPU has no bfloat16 instructions, training in float32" in capfd.readouterr().err
    assert losses("with", "bfloat16", has_instructions=True) != whole
