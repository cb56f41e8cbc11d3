"""Checkpoints: whole or not at all, and what is read is what was written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from mqan_core.text.vocab import Vocabulary
from mqan_training.checkpoint import (
    VECTORS,
    Checkpoint,
    CheckpointError,
    latest_checkpoint,
    load_checkpoint,
    prune_checkpoints,
    restore_run,
    save_checkpoint,
)
from mqan_training.model.embeddings import load_vectors, quantized_vectors, write_vectors
from mqan_training.model.network import Network
from mqan_training.optim import WeightAverage, make_optimizer
from mqan_training.recipe import ModelConfig, Recipe, WordsConfig
from mqan_training.start import load_network

MODEL = ModelConfig(width=8, ffn_width=6, num_heads=1, head_width=4, num_layers=1, ngram_buckets=20, ngram_width=4)
PIECES = (" yes ", "? ")
OF_READER = ("embedder.", "mqan.encoder.")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "v.safetensors"
    write_vectors(
        path, quantized_vectors(["yes", "no", "ß"], np.random.default_rng(1).standard_normal((3, 6), np.float32))
    )
    return path


class Trained:
    def __init__(self, vectors: Path, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.vectors = vectors
        words = WordsConfig(kind="words", vectors=str(vectors), model=MODEL)
        self.recipe = Recipe(name="t", reader=words, sources={"sst": 2}, order="by_task", steps=9, weight_decay=0.1)
        static = load_vectors(vectors)
        self.network = Network(MODEL, static, Vocabulary(PIECES, static.words))
        self.optimizer = make_optimizer(self.network, self.recipe, OF_READER)
        self.average = WeightAverage(self.network, 0.9)

    def step(self, number: int) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = 0.01
        for parameter in self.network.parameters():
            parameter.grad = torch.randn_like(parameter)
        self.optimizer.step()
        self.average.update(self.network, number)

    def save(self, folder: Path, step: int = 3, averaged: bool = True) -> None:
        weights, average = self.network.state_dict(), self.average.tensors if averaged else {}
        training, drawn = {"seconds": 1.5, "torch": torch.__version__}, {"pool": 0, "index": step}
        checkpoint = Checkpoint(folder, self.recipe, step, drawn, PIECES, weights, average, training)
        save_checkpoint(checkpoint, {VECTORS: self.vectors}, self.optimizer)


@pytest.fixture(scope="module")
def trained(vectors: Path) -> Trained:
    trained = Trained(vectors)
    for number in range(1, 4):
        trained.step(number)
    return trained


@pytest.fixture
def folder(trained: Trained, tmp_path: Path) -> Path:
    trained.save(tmp_path / "step-0000003")
    return tmp_path / "step-0000003"


def weights_of(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def test_a_checkpoint_is_read_as_it_was_written(trained: Trained, folder: Path) -> None:
    checkpoint = load_checkpoint(folder)
    assert checkpoint.recipe == trained.recipe
    assert (checkpoint.step, dict(checkpoint.drawn), checkpoint.tokens) == (3, {"pool": 0, "index": 3}, PIECES)
    assert checkpoint.training["seconds"] == 1.5
    for read, written in (
        (checkpoint.weights, weights_of(trained.network)),
        (checkpoint.average, trained.average.tensors),
    ):
        assert read.keys() == written.keys()
        assert all(torch.equal(read[name], written[name]) for name in written)
    assert not torch.equal(checkpoint.weights["mqan.decoder.start"], checkpoint.average["mqan.decoder.start"])


def test_a_checkpoint_is_complete_in_itself(trained: Trained, folder: Path) -> None:
    """Copied elsewhere, without the vectors that the recipe names, it gives the averaged network."""
    moved = folder.parent / "elsewhere"
    shutil.copytree(folder, moved)
    shutil.rmtree(folder)
    network = load_network(load_checkpoint(moved))
    assert not network.training
    assert network.vocabulary.words == ("yes", "no", "ß")
    average = trained.average.tensors
    assert all(torch.equal(tensor, average[name]) for name, tensor in network.named_parameters())
    assert (
        load_vectors(load_checkpoint(moved).vectors_path).rows.tolist() == load_vectors(trained.vectors).rows.tolist()
    )


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 0x10
    path.unlink()  # vectors are linked, not copied
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["model.safetensors", "resume.safetensors"])
def test_a_damaged_bit_is_noticed(trained: Trained, folder: Path, name: str) -> None:
    flip_a_bit(folder / name)
    with pytest.raises(CheckpointError, match=rf"step-0000003: {name} does not have the SHA-256"):
        restore_run(load_checkpoint(folder), trained.network, trained.optimizer)


@pytest.mark.parametrize("name", ["checkpoint.json", "model.safetensors", "vectors.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=rf"is not a checkpoint: .*{name} is missing"):
        load_checkpoint(folder)


def test_only_going_on_needs_the_moments(trained: Trained, folder: Path) -> None:
    (folder / "resume.safetensors").unlink()
    checkpoint = load_checkpoint(folder)
    assert load_network(checkpoint).vocabulary.pieces[1:] == PIECES
    with pytest.raises(CheckpointError, match=r"cannot go on from it: .*resume\.safetensors is missing"):
        restore_run(checkpoint, trained.network, trained.optimizer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document.update(format_version=99), "format version 99 is unknown to this release"),
        (lambda document: document.pop("format_version"), "malformed checkpoint: 'format_version'"),
        (lambda document: document.pop("pieces"), "malformed checkpoint: 'pieces'"),
        (lambda document: document.pop("sha256"), "malformed checkpoint: 'sha256'"),
        (lambda document: document["config"].update(speed=1), "config: speed: Extra inputs"),
        (
            lambda document: document["config"]["reader"]["model"].update(width="wide"),
            r"model\.width: .*integer",
        ),
    ],
)
def test_a_manifest_of_another_kind_is_refused(
    folder: Path, change: Callable[[dict[str, object]], object], message: str
) -> None:
    path = folder / "checkpoint.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


def test_another_model_does_not_take_the_weights(trained: Trained, folder: Path) -> None:
    static = load_vectors(trained.vectors)
    other = Network(MODEL, static, Vocabulary((*PIECES, "more"), static.words))
    with pytest.raises(CheckpointError, match="the weights do not fit the model of the recipe"):
        restore_run(load_checkpoint(folder), other, make_optimizer(other, trained.recipe, OF_READER))


# --- The checkpoints of a run


def test_the_newest_is_found_by_number_and_half_written_ones_do_not_count(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "nowhere") is None
    for name in ("step-0000009", "step-0000010", "step-10000000", "step-20000000.tmp", "step-old", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-99999999").write_text("a file")
    assert latest_checkpoint(tmp_path) == tmp_path / "step-10000000"


@pytest.mark.parametrize(("keep", "left"), [(5, [1, 9, 10, 200]), (2, [10, 200]), (1, [200]), (0, [])])
def test_older_checkpoints_are_deleted(tmp_path: Path, keep: int, left: list[int]) -> None:
    others = [tmp_path / "step-0000300.tmp", tmp_path / "tensorboard"]
    for path in (*(tmp_path / f"step-{step:07d}" for step in (9, 200, 10, 1)), *others):
        path.mkdir()
        (path / "file").write_bytes(b"x")
    prune_checkpoints(tmp_path, keep)
    assert sorted(tmp_path.glob("step-*[0-9]")) == [tmp_path / f"step-{step:07d}" for step in left]
    assert all((path / "file").exists() for path in others)


def test_a_run_of_a_gpu_goes_on_on_a_cpu(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "step-0000003"

    def as_on_a_gpu(tensors: dict[str, torch.Tensor], path: Path) -> None:
        random = {"random.cuda": torch.zeros(16, dtype=torch.uint8)} if "random.cpu" in tensors else {}
        save_file({**tensors, **random}, path)

    with monkeypatch.context() as patch:
        patch.setattr("mqan_training.checkpoint.save_file", as_on_a_gpu)
        trained.save(folder)
    assert "random.cuda" in load_file(folder / "resume.safetensors")
    resumed = Trained(trained.vectors, seed=1)
    restore_run(load_checkpoint(folder), resumed.network, resumed.optimizer)
    for name, tensor in trained.network.state_dict().items():
        assert torch.equal(resumed.network.state_dict()[name], tensor)


@pytest.mark.gpu
def test_the_random_state_of_a_gpu_comes_back(trained: Trained, tmp_path: Path) -> None:
    on_gpu = Trained(trained.vectors)
    on_gpu.network.cuda()
    on_gpu.optimizer = make_optimizer(on_gpu.network, on_gpu.recipe, OF_READER)
    on_gpu.average = WeightAverage(on_gpu.network, 0.9)
    on_gpu.step(1)
    on_gpu.save(tmp_path / "step-0000001", 1)
    drawn = torch.rand(5, device="cuda")
    torch.manual_seed(99)
    restore_run(load_checkpoint(tmp_path / "step-0000001"), on_gpu.network, on_gpu.optimizer)
    assert torch.equal(torch.rand(5, device="cuda"), drawn)
    on_gpu.step(2)
