"""A training run killed with SIGKILL and resumed takes the very steps of one that was never cut."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mqan_cli.training_run import run_recipe
from mqan_training.batch import tune_process
from mqan_training.checkpoint import latest_checkpoint, load_checkpoint
from mqan_training.optim import DivergedError
from mqan_training.recipe import Recipe, load_recipe

NUM_STEPS = 30
CHILD = """
import sys
from pathlib import Path
from mqan_cli.training_run import run_recipe
from mqan_training.recipe import load_recipe
how, recipe, data, *folders = sys.argv[1:]
for folder in folders:
    run_recipe(load_recipe(Path(recipe)), Path(data), Path(folder), resume=how == "resume", start=None)
"""


def start(how: str, recipe: Path, data: Path, *folders: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", CHILD, how, *map(str, (recipe, data, *folders))]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def start_and_kill(recipe: Path, data: Path, folder: Path, at_step: int) -> int:
    process = start("start", recipe, data, folder)
    try:
        while process.poll() is None:
            newest = latest_checkpoint(folder)
            if newest is not None and newest.name >= f"step-{at_step:07d}":
                break
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
    killed_at = latest_checkpoint(folder)
    assert killed_at is not None, errors.decode()
    return load_checkpoint(killed_at).step


def records(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if not key.endswith(("per_s", "per_step"))} for line in lines]


@dataclass(frozen=True)
class Runs:
    recipe: Recipe
    data: Path
    whole: Path
    resumed: Path
    killed_at: int


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, tiny_recipe: tuple[Path, Path]) -> Runs:
    recipe, data = tiny_recipe
    tmp = tmp_path_factory.mktemp("resume")
    killed_at = NUM_STEPS
    while killed_at == NUM_STEPS:  # once more if the machine let it end first
        shutil.rmtree(tmp / "resumed", ignore_errors=True)
        killed_at = start_and_kill(recipe, data, tmp / "resumed", 10)
    whole, resumed = tmp / "whole", tmp / "resumed"

    half_written = resumed / "step-0000099.tmp"  # as a run leaves it that is killed while it saves
    half_written.mkdir()
    (half_written / "model.safetensors").write_bytes(b"\x10\x00")
    with (resumed / "log.jsonl").open("a") as file:
        file.write('{"step": 99, "lo')
    with (resumed / "validation.jsonl").open("a") as file:
        file.write('{"step": 30, "seconds": 1.0, "task": "sst", "scores": {"em": 50.0}, "num_examples": 4}\n')

    process = start("resume", recipe, data, whole, resumed)
    _, errors = process.communicate(timeout=150)
    assert process.returncode == 0, errors.decode()
    assert f"resuming at step {killed_at} of {NUM_STEPS}" in errors.decode()
    return Runs(load_recipe(recipe), data, whole, resumed, killed_at)


def test_the_resumed_run_takes_the_same_steps_bit_for_bit(runs: Runs) -> None:
    whole, resumed = records(runs.whole), records(runs.resumed)
    assert 10 <= runs.killed_at < NUM_STEPS
    assert [record["step"] for record in whole] == list(range(1, NUM_STEPS + 1))
    assert resumed == whole
    assert len({record["answer"] for record in whole}) == NUM_STEPS  # a guard: the runs did learn something


@pytest.mark.parametrize("name", ["model.safetensors", "resume.safetensors", "vectors.safetensors"])
def test_the_resumed_run_ends_with_the_same_weights_moments_and_random_state(runs: Runs, name: str) -> None:
    last = f"step-{NUM_STEPS:07d}"
    assert (runs.resumed / last / name).read_bytes() == (runs.whole / last / name).read_bytes()


def test_tensorboard_shows_every_step_once(runs: Runs) -> None:
    module = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    events = module.EventAccumulator(str(runs.resumed / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("share_of_rate")] == list(range(1, NUM_STEPS + 1))


def test_every_validation_is_recorded_once(runs: Runs) -> None:
    whole, resumed = (
        [json.loads(line) for line in (folder / "validation.jsonl").read_text().splitlines()]
        for folder in (runs.whole, runs.resumed)
    )
    assert [(record["step"], record["task"]) for record in whole] == [
        (step, task) for step in (15, NUM_STEPS) for task in runs.recipe.sources
    ]
    for record in whole:
        assert record["num_examples"] == 4
        assert 0 <= record["scores"]["em"] <= 100
    assert 0 < whole[0]["seconds"] < whole[-1]["seconds"]
    assert [record | {"seconds": 0} for record in resumed] == [record | {"seconds": 0} for record in whole]


def test_a_finished_run_stays_as_it_is(runs: Runs) -> None:
    before = records(runs.whole)
    assert (
        run_recipe(runs.recipe, runs.data, runs.whole, resume=True, start=None) == runs.whole / f"step-{NUM_STEPS:07d}"
    )
    assert records(runs.whole) == before


def test_a_run_that_diverges_ends_before_it_is_saved(runs: Runs, tmp_path: Path) -> None:
    wild = runs.recipe.model_copy(update={"reader_rate": 1e30, "decoder_rate": 1e30, "warmup_steps": 1})
    with pytest.raises(DivergedError, match=r"not finite: .* lower reader_rate"):
        run_recipe(wild, runs.data, tmp_path, resume=False, start=None)
    assert latest_checkpoint(tmp_path) is None


def test_a_recipe_in_bfloat16_trains_in_float32_where_that_is_faster(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def losses(name: str, *, autocast: bool, has_instructions: bool) -> list[float]:
        monkeypatch.setattr("mqan_training.batch.has_bfloat16", lambda: has_instructions)
        recipe = runs.recipe.model_copy(update={"autocast": autocast, "steps": 7, "validate_every": 8})
        run_recipe(recipe, runs.data, tmp_path / name, resume=False, start=None)
        return [record["answer"] for record in records(tmp_path / name)]

    whole = losses("whole", autocast=False, has_instructions=True)
    assert "float32" not in capfd.readouterr().err
    assert losses("without", autocast=True, has_instructions=False) == whole
    assert "this CPU has no bfloat16 instructions, training in float32" in capfd.readouterr().err
    assert losses("with", autocast=True, has_instructions=True) != whole


def test_the_cache_of_kernels_is_as_large_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")  # so that it is put back afterwards
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    tune_process()
    assert int(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) > 1024
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    tune_process()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
