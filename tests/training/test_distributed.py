"""Two processes take the steps that one takes; a run goes on with another number of processes."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from mqan_cli.training_run import run_recipe
from mqan_training import stream
from mqan_training.distributed import joined_processes
from mqan_training.losses import Mean, value_of
from mqan_training.recipe import Recipe, load_recipe
from tests.training import test_loop

NUM_STEPS = 14
CUT_AT = 7
# No dropout, and no moment so small that rounding decides the sign of a step. Few rows a batch: some have but one.
SETTINGS = {
    "steps": NUM_STEPS,
    "batch_size": 60,
    "checkpoint_every": CUT_AT,
    "validate_every": CUT_AT,
    "reader.model.dropout": 0.0,
    "reader.model.attention_dropout": 0.0,
    "epsilon": 1e-5,
}
WITH_DROPOUT = SETTINGS | {"reader.model.dropout": 0.3, "reader.model.attention_dropout": 0.3}
# First runs in a process group that somebody else made, as Ray Train does; then the command line, which makes its own.
CHILD = """
import json, os, shutil, sys
from pathlib import Path
from torch import distributed
from mqan_cli.main import app
from mqan_cli.training_run import run_recipe
from mqan_training.recipe import load_recipe
from tests.training import test_loop
recipe, data, folder, jobs, encoder, *command = sys.argv[1:]
rank = int(os.environ["RANK"])
distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
for job in json.loads(jobs):
    run = Path(folder) / job["name"]
    if job["start"] and rank == 0:
        start = Path(job["start"])
        shutil.copytree(start, run / start.name)
        shutil.copyfile(start.parent / "log.jsonl", run / "log.jsonl")
    distributed.barrier()
    run_recipe(load_recipe(Path(recipe), job["settings"]), Path(data), run, resume=True, start=None)
usual = {name: vars(test_loop.stream)[name] for name in test_loop.SMALL}
vars(test_loop.stream).update(test_loop.SMALL)
test_loop.run(test_loop.two_processes_recipe(Path(encoder)), Path(folder) / "pieces")
vars(test_loop.stream).update(usual)
distributed.destroy_process_group()
app(command)
"""

# The command line, in a Ray cluster of this machine alone that has just the two processors that it needs.
ON_RAY = """
import sys
import ray
from mqan_cli.main import app
ray.init(num_cpus=2, include_dashboard=False)
app(sys.argv[1:])
"""


def run(*command: str, timeout: int) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    environment |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environment |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    ran = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=timeout)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def torchrun(*arguments: str) -> str:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    launcher += ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]  # any free port
    return run(*launcher, *arguments, timeout=170)


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def step_folder(step: int) -> str:
    return f"step-{step:07d}"


def assert_same_run(one: Path, other: Path) -> None:
    expected, found = records(one), records(other)
    assert [r["step"] for r in expected] == list(range(1, NUM_STEPS + 1))
    for left, right in zip(expected, found, strict=True):
        for key in ("step", "task", "share_of_rate"):
            assert left[key] == right[key]
        assert right["answer"] == pytest.approx(left["answer"], rel=1e-4), left["step"]
    for name in ("model.safetensors", "resume.safetensors"):
        wanted = load_file(one / step_folder(NUM_STEPS) / name)
        for key, tensor in load_file(other / step_folder(NUM_STEPS) / name).items():
            torch.testing.assert_close(tensor, wanted[key], rtol=1e-3, atol=1e-5)


def overrides(settings: dict[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in settings.items()}


@dataclass(frozen=True)
class Alone:
    path: Path
    data: Path
    recipe: Recipe
    folder: Path


@pytest.fixture(scope="module")
def alone(tiny_recipe: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Alone:
    path, data = tiny_recipe
    recipe = load_recipe(path, overrides(SETTINGS))
    folder = tmp_path_factory.mktemp("alone")
    run_recipe(recipe, data, folder, resume=False, start=None)
    return Alone(path, data, recipe, folder)


@pytest.fixture(scope="module")
def runs(alone: Alone, encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two-processes")
    plain, dropping = overrides(SETTINGS), overrides(WITH_DROPOUT)
    jobs = [
        {"name": "from-one", "start": str(alone.folder / step_folder(CUT_AT)), "settings": plain},
        {"name": "dropout", "start": None, "settings": dropping},
        {"name": "resumed", "start": str(folder / "dropout" / step_folder(CUT_AT)), "settings": dropping},
    ]
    together = folder / "together"
    command = ["train", str(alone.path), "--data", str(alone.data), "--output", str(together)]
    command += [f"--set={key}={value}" for key, value in SETTINGS.items()]
    (folder / "child.py").write_text(CHILD)
    inputs = [str(alone.path), str(alone.data), str(folder), json.dumps(jobs), str(encoder)]
    printed = torchrun(str(folder / "child.py"), *inputs, *command)
    assert printed == f"{together / step_folder(NUM_STEPS)}\n", "one of the processes says where the checkpoint is"
    return folder


def test_two_processes_take_the_steps_of_one(alone: Alone, runs: Path) -> None:
    document = json.loads((runs / "together" / step_folder(NUM_STEPS) / "checkpoint.json").read_text())
    assert document["training"]["processes"] == 2
    assert_same_run(alone.folder, runs / "together")


def test_two_processes_train_the_default_model_as_one_does(
    encoder: Path, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in test_loop.SMALL.items():
        monkeypatch.setattr(stream, name, number)
    test_loop.run(test_loop.two_processes_recipe(encoder), tmp_path)
    expected, found = records(tmp_path), records(runs / "pieces")
    assert [record["step"] for record in found] == [record["step"] for record in expected]
    for left, right in zip(expected, found, strict=True):
        for key in ("answer", "span", "similarity", "evidence", "norm"):
            assert right[key] == pytest.approx(left[key], rel=1e-3, abs=1e-5), (left["step"], key)


def test_two_processes_write_each_record_once(alone: Alone, runs: Path) -> None:
    lines = [json.loads(line) for line in (runs / "together" / "validation.jsonl").read_text().splitlines()]
    assert [(line["step"], line["task"]) for line in lines] == [
        (step, task) for step in (CUT_AT, NUM_STEPS) for task in alone.recipe.sources
    ]
    assert len(list((runs / "together" / "tensorboard").iterdir())) == 1


def test_one_process_goes_on_where_two_were(alone: Alone, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "together" / step_folder(CUT_AT), tmp_path / step_folder(CUT_AT))
    shutil.copyfile(runs / "together" / "log.jsonl", tmp_path / "log.jsonl")
    run_recipe(alone.recipe, alone.data, tmp_path, resume=True, start=None)
    assert_same_run(alone.folder, tmp_path)


def test_two_processes_go_on_where_one_was(alone: Alone, runs: Path) -> None:
    assert_same_run(alone.folder, runs / "from-one")


def test_two_processes_that_go_on_draw_the_same_dropout(alone: Alone, runs: Path) -> None:
    losses = [[record["answer"] for record in records(runs / name)] for name in ("dropout", "resumed")]
    assert losses[0] == losses[1]
    assert losses[0] != [record["answer"] for record in records(alone.folder)]
    for name in ("model.safetensors", "resume.safetensors"):
        last = Path(step_folder(NUM_STEPS)) / name
        assert (runs / "dropout" / last).read_bytes() == (runs / "resumed" / last).read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_workers_of_ray_train_go_on_where_one_process_was(alone: Alone, tmp_path: Path) -> None:
    pytest.importorskip("ray.train", reason="needs the extra `cluster`", exc_type=ImportError)
    folder = tmp_path / "run"
    shutil.copytree(alone.folder / step_folder(CUT_AT), folder / step_folder(CUT_AT))
    shutil.copyfile(alone.folder / "log.jsonl", folder / "log.jsonl")
    (tmp_path / "on_ray.py").write_text(ON_RAY)
    command = ["train", str(alone.path), "--data", str(alone.data), "--output", str(folder), "--resume"]
    command += [f"--set={key}={value}" for key, value in SETTINGS.items()]
    printed = run(str(tmp_path / "on_ray.py"), *command, "--ray-workers=2", timeout=380)
    assert printed.splitlines()[-1] == str(folder / step_folder(NUM_STEPS))
    document = json.loads((folder / step_folder(NUM_STEPS) / "checkpoint.json").read_text())
    assert document["training"]["processes"] == 2
    assert_same_run(alone.folder, folder)


def test_one_process_leaves_everything_as_it_is() -> None:
    with joined_processes() as processes:
        module = torch.nn.Linear(2, 1)
        assert processes.wrap(module, has_unused_weights=True) is module
        own = {
            "answer": (Mean(torch.tensor(6.0), torch.tensor(2)),),
            "watched": (Mean(torch.ones(()), torch.tensor(0)),),
        }
        objective, losses = processes.merge(own, {"answer": 0.5}, counts=True)
        assert (objective.item(), losses["answer"].item(), losses["watched"].item()) == (1.5, 3, 1)
        assert value_of(()).item() == 0
        assert processes.is_first
        assert processes.all_same(4)


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ValueError, match="process 2 of this machine has no GPU, there are 2"), joined_processes():
        pass
