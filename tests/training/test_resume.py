"""A training run killed with SIGKILL and resumed takes the very steps of one that was never cut."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mqan_training.checkpoint import latest_checkpoint, load_checkpoint
from mqan_training.config import TrainConfig, load_config
from mqan_training.errors import CheckpointError, DivergedError
from mqan_training.train import find_start, train
from mqan_training.transfer import record_source, recorded_source

NUM_STEPS = 30
CHILD = """
import sys
from pathlib import Path
from mqan_training.config import load_config
from mqan_training.train import train
how, recipe, data, *folders = sys.argv[1:]
for folder in folders:
    train(load_config(Path(recipe)), Path(data), Path(folder), resume=how == "resume")
"""


def start(how: str, recipe: Path, data: Path, *folders: Path) -> subprocess.Popen[bytes]:
    """Start a process that trains in one folder after the other."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", CHILD, how, *map(str, (recipe, data, *folders))]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def start_and_kill(recipe: Path, data: Path, folder: Path, at_step: int) -> int:
    """Kill a run as soon as it has a checkpoint at or after a step; return the step of that checkpoint."""
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
    """Read the log of a run without what a clock decides."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "tokens_per_s"} for line in lines]


@dataclass(frozen=True)
class Runs:
    """Two runs of one recipe: one never cut, one killed and resumed."""

    config: TrainConfig
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
    return Runs(load_config(recipe), data, whole, resumed, killed_at)


def test_the_resumed_run_takes_the_same_steps_bit_for_bit(runs: Runs) -> None:
    whole, resumed = records(runs.whole), records(runs.resumed)
    assert 10 <= runs.killed_at < NUM_STEPS
    assert [record["step"] for record in whole] == list(range(1, NUM_STEPS + 1))
    assert resumed == whole
    assert len({record["loss"] for record in whole}) == NUM_STEPS  # a guard: the runs did learn something


@pytest.mark.parametrize("name", ["model.safetensors", "resume.safetensors", "vectors.safetensors"])
def test_the_resumed_run_ends_with_the_same_weights_moments_and_random_state(runs: Runs, name: str) -> None:
    last = f"step-{NUM_STEPS:07d}"
    assert (runs.resumed / last / name).read_bytes() == (runs.whole / last / name).read_bytes()


def test_the_last_checkpoint_is_found_and_older_ones_are_gone(runs: Runs) -> None:
    assert latest_checkpoint(runs.resumed) == runs.resumed / f"step-{NUM_STEPS:07d}"
    kept = sorted(path.name for path in runs.resumed.glob("step-*") if path.suffix != ".tmp")
    assert kept == ["step-0000025", f"step-{NUM_STEPS:07d}"]
    checkpoint = load_checkpoint(runs.resumed / kept[-1])
    assert checkpoint.config == runs.config
    assert sum(checkpoint.drawn.values()) == checkpoint.step == NUM_STEPS


def test_tensorboard_shows_every_step_once(runs: Runs) -> None:
    module = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    events = module.EventAccumulator(str(runs.resumed / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("rate")] == list(range(1, NUM_STEPS + 1))


def test_every_validation_is_recorded_once(runs: Runs) -> None:
    whole, resumed = (
        [json.loads(line) for line in (folder / "validation.jsonl").read_text().splitlines()]
        for folder in (runs.whole, runs.resumed)
    )
    assert [(record["step"], record["task"]) for record in whole] == [
        (step, task.name) for step in (15, NUM_STEPS) for task in runs.config.tasks
    ]
    for record in whole:
        assert record["num_examples"] == 4
        assert 0 <= record["scores"]["em"] <= 100
    assert 0 < whole[0]["seconds"] < whole[-1]["seconds"]
    assert [record | {"seconds": 0} for record in resumed] == [record | {"seconds": 0} for record in whole]


def test_a_run_is_not_begun_over_another(runs: Runs) -> None:
    before = records(runs.whole)
    with pytest.raises(ValueError, match="already holds a run; resume it with --resume, or name another folder"):
        train(runs.config, runs.data, runs.whole)
    assert records(runs.whole) == before


def test_a_finished_run_stays_as_it_is(runs: Runs) -> None:
    before = records(runs.whole)
    assert train(runs.config, runs.data, runs.whole, resume=True) == runs.whole / f"step-{NUM_STEPS:07d}"
    assert records(runs.whole) == before


@pytest.mark.parametrize("name", ["model.safetensors", "resume.safetensors"])
def test_a_damaged_checkpoint_is_not_gone_on_from(runs: Runs, tmp_path: Path, name: str) -> None:
    last = tmp_path / f"step-{NUM_STEPS:07d}"
    shutil.copytree(runs.whole / last.name, last)
    content = bytearray((last / name).read_bytes())
    content[-9] ^= 1
    (last / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{name} does not have the SHA-256"):
        train(runs.config, runs.data, tmp_path, resume=True)


def test_a_run_does_not_go_on_with_another_model(runs: Runs, tmp_path: Path) -> None:
    last = f"step-{NUM_STEPS:07d}"
    shutil.copytree(runs.whole / last, tmp_path / last)
    other = replace(runs.config, model=replace(runs.config.model, width=20))
    with pytest.raises(ValueError, match=r"another recipe: model\.width was 16, is 20; to go on"):
        train(other, runs.data, tmp_path, resume=True)
    longer = replace(
        runs.config, steps=NUM_STEPS + 1, phases=(), log_every=2, optim=replace(runs.config.optim, cooldown_steps=1)
    )
    assert train(longer, runs.data, tmp_path, resume=True).name == f"step-{NUM_STEPS + 1:07d}"


def test_a_run_that_diverges_ends_before_it_is_saved(runs: Runs, tmp_path: Path) -> None:
    wild = replace(runs.config, optim=replace(runs.config.optim, peak_rate=1e30, warmup_steps=1))
    with pytest.raises(DivergedError, match=r"the gradient of sst not finite: .* lower optim\.peak_rate"):
        train(wild, runs.data, tmp_path)
    assert latest_checkpoint(tmp_path) is None


def test_a_run_goes_on_from_its_own_source_only(tmp_path: Path) -> None:
    run, checkpoint = tmp_path / "run", tmp_path / "run" / "step-0000005"
    assert find_start(run, resume=True, source="bundle") is None  # nothing there yet
    record_source(run, "bundle")
    assert find_start(run, resume=True, source=str(Path("bundle").resolve())) is None
    assert find_start(run, resume=False, source="other") is None  # begins anew
    with pytest.raises(ValueError, match="no checkpoint yet and started from bundle: give --from bundle again"):
        find_start(run, resume=True, source=None)
    with pytest.raises(ValueError, match=r"started from bundle, not from other: give --from bundle to go on"):
        find_start(run, resume=True, source="other")
    checkpoint.mkdir()
    assert find_start(run, resume=True, source=None) == find_start(run, resume=True, source="bundle") == checkpoint
    with pytest.raises(ValueError, match=r"started from bundle, not from other: leave --from out to go on"):
        find_start(run, resume=True, source="other")
    record_source(run, None)
    assert recorded_source(run) is None
    with pytest.raises(ValueError, match="started from random weights, not from bundle: leave --from out"):
        find_start(run, resume=True, source="bundle")
