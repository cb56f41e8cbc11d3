"""A training run killed with SIGKILL and resumed takes the very steps of one that was never cut."""

import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqan_training.checkpoint import latest_checkpoint, load_checkpoint
from mqan_training.config import TrainConfig, load_config
from mqan_training.embeddings import save_vectors
from mqan_training.errors import CheckpointError
from mqan_training.train import train

NUM_STEPS = 30
RECIPE = f"""
name: tiny
steps: {NUM_STEPS}
vectors: {{vectors}}
num_generated: 60
batch_tokens: 260
max_answer_tokens: 8
validate_every: 15
validate_examples: 4
checkpoint_every: 5
log_every: 1
model: {{{{width: 16, ffn_width: 12, num_heads: 2, head_width: 8, num_layers: 1, ngram_buckets: 64, ngram_width: 4}}}}
optim: {{{{peak_rate: 3e-3, warmup_steps: 5, schedule: cosine, average_decay: 0.9, weight_decay: 0.01}}}}
phases:
  - steps: 6
    weights: {{{{sst: 1}}}}
tasks:
  - name: sst
    weight: 2
    rename_rate: 0.5
    rename_after: 3
    class_names: [[negative, positive], [bad, good], [sour-faced, glad]]
  - {{{{name: mwsc}}}}
"""
CHILD = """
import sys
from pathlib import Path
from mqan_training.config import load_config
from mqan_training.train import train
how, recipe, data, *folders = sys.argv[1:]
for folder in folders:
    train(load_config(Path(recipe)), Path(data), Path(folder), resume=how == "resume")
"""
TEXT = "the film is a dull warm odd long bright story of two old friends and no plot at all 1999 it's well-made"
WORDS = TEXT.split()


def write_data(folder: Path) -> None:
    """Write SST and MWSC files of our own in the official formats."""
    rng = random.Random(2)
    (folder / "sst").mkdir(parents=True)
    for split, num_rows in (("train", 60), ("dev", 6)):
        rows = [f"{rng.randint(0, 1)},{' '.join(rng.choices(WORDS, k=rng.randint(3, 12)))}" for _ in range(num_rows)]
        (folder / "sst" / f"{split}_binary_sent.csv").write_text("\n".join(["label,sentence", *rows, ""]))
    (folder / "mwsc").mkdir()
    schemas = []
    for _ in range(95):
        one, two = rng.sample(("Ann", "Bob", "Carl", "the cat", "the dog"), 2)
        schemas.append(f"{one} told {two} that [he/she] was late.\nWho was [late/early]?\n{one}/{two}\n\n")
    (folder / "mwsc" / "schema.txt").write_text("".join(schemas))


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
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    tmp = tmp_path_factory.mktemp("resume")
    write_data(tmp / "data")
    words = sorted({word.lower() for word in [*WORDS, "negative", "positive", "ann", "review", "or"]})
    vectors = np.random.default_rng(0).standard_normal((len(words), 10), np.float32)
    save_vectors(tmp / "vectors.safetensors", words, vectors)
    recipe = tmp / "tiny.yaml"
    recipe.write_text(RECIPE.format(vectors=tmp / "vectors.safetensors"))
    killed_at = NUM_STEPS
    while killed_at == NUM_STEPS:  # once more if the machine let it end first
        shutil.rmtree(tmp / "resumed", ignore_errors=True)
        killed_at = start_and_kill(recipe, tmp / "data", tmp / "resumed", 10)
    whole, resumed = tmp / "whole", tmp / "resumed"

    half_written = resumed / "step-0000099.tmp"  # as a run leaves it that is killed while it saves
    half_written.mkdir()
    (half_written / "model.safetensors").write_bytes(b"\x10\x00")
    with (resumed / "log.jsonl").open("a") as file:
        file.write('{"step": 99, "lo')

    process = start("resume", recipe, tmp / "data", whole, resumed)
    _, errors = process.communicate(timeout=150)
    assert process.returncode == 0, errors.decode()
    assert f"resuming at step {killed_at} of {NUM_STEPS}" in errors.decode()
    return Runs(load_config(recipe), tmp / "data", whole, resumed, killed_at)


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
    recipe = runs.whole.parent / "tiny.yaml"
    with pytest.raises(CheckpointError, match="the weights do not fit the model of the recipe"):
        train(load_config(recipe, {"model.width": "20"}), runs.data, tmp_path, resume=True)
