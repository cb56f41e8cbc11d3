"""Checkpoints: safetensors and JSON in one folder, written aside and renamed, so that a half-written one never counts.

checkpoint.json       step, place in the stream, recipe, the generator's tokens; written last
model.safetensors     weights (the averaged ones under ``average.`` where there are any)
vectors.safetensors   the frozen word vectors, so that a checkpoint is complete; not beside a pretrained reader
encoder.json, vocab.txt  the pretrained reader's sizes and word pieces, where there is one
resume.safetensors    optimiser moments and random state; only a training run needs them
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mqan_core.errors import MqanError
from mqan_data.files import sha256_of
from mqan_training.recipe import Recipe, WordsConfig, parse_recipe

FORMAT_VERSION = 2
_MANIFEST = "checkpoint.json"
_MODEL = "model.safetensors"
VECTORS = "vectors.safetensors"
ENCODER_CONFIG = "encoder.json"
_RESUME = "resume.safetensors"
_AVERAGE = "average."
_MAY_CHANGE = {  # in a run that is resumed: folders of the same files, and what a diverged run needs changed
    "name", "reader_rate", "decoder_rate", "grad_clip", "steps", "phases", "cooldown_steps", "log_every",
    "checkpoint_every", "validate_every", "validate_examples", "validate_sources", "reader.encoder", "reader.vectors",
    "autocast",
}  # fmt: skip
_RANDOM_CPU = "random.cpu"
_RANDOM_CUDA = "random.cuda"


class CheckpointError(MqanError):
    """A checkpoint is missing, incomplete or damaged; the message says which file and why."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    folder: Path
    recipe: Recipe
    step: int
    drawn: Mapping[str, int]  # the place in the stream: pool and index
    tokens: tuple[str, ...]  # the generator's without the special ones
    weights: Mapping[str, Tensor]
    average: Mapping[str, Tensor]  # empty when the run keeps none
    training: Mapping[str, Any]  # provenance: seconds of training, versions, what the run began with

    @property
    def vectors_path(self) -> Path:
        return self.folder / VECTORS

    def all_tasks(self) -> list[str]:
        """Return the tasks that its weights were trained on, those of the runs before among them."""
        return list(dict.fromkeys([*self.recipe.sources, *self.training.get("tasks_before", ())]))


def save_checkpoint(checkpoint: Checkpoint, frozen: Mapping[str, Path], optimizer: torch.optim.Optimizer) -> None:
    """Write a checkpoint, with files that training does not change by name; its folder appears whole or not at all."""
    folder = checkpoint.folder
    aside = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    tensors = {**checkpoint.weights, **{_AVERAGE + name: tensor for name, tensor in checkpoint.average.items()}}
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, aside / _MODEL)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    resume = {
        f"{index}.{key}": value.detach().cpu().contiguous()
        for index, parameter in enumerate(parameters)
        for key, value in optimizer.state[parameter].items()
    }
    resume[_RANDOM_CPU] = torch.get_rng_state()
    if parameters[0].is_cuda:
        resume[_RANDOM_CUDA] = torch.cuda.get_rng_state(parameters[0].device)
    save_file(resume, aside / _RESUME)
    for name, path in frozen.items():
        try:
            os.link(path, aside / name)
        except OSError:
            shutil.copyfile(path, aside / name)
    for name in (_MODEL, _RESUME):
        _sync(aside / name)
    document = {
        "format_version": FORMAT_VERSION,
        "step": checkpoint.step,
        "drawn": dict(checkpoint.drawn),
        "config": checkpoint.recipe.model_dump(mode="json"),
        "pieces": list(checkpoint.tokens),
        "training": dict(checkpoint.training),
        "sha256": {name: sha256_of(aside / name) for name in (_MODEL, _RESUME)},
    }
    with (aside / _MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(document, file)
    _sync(aside / _MANIFEST)
    aside.rename(folder)


def load_checkpoint(folder: Path) -> Checkpoint:
    try:
        document = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if document["format_version"] != FORMAT_VERSION:
            raise CheckpointError(f"{folder}: format version {document['format_version']!r} is unknown to this release")
        _check_sha256(folder, document, _MODEL)
        recipe = parse_recipe(document["config"], f"{folder / _MANIFEST}: config")
        if isinstance(recipe.reader, WordsConfig) and not (folder / VECTORS).is_file():
            raise CheckpointError(f"{folder} is not a checkpoint: {folder / VECTORS} is missing")
        tensors = load_file(folder / _MODEL)
        return Checkpoint(
            folder,
            recipe,
            document["step"],
            document["drawn"],
            tuple(document["pieces"]),
            {name: tensor for name, tensor in tensors.items() if not name.startswith(_AVERAGE)},
            {name.removeprefix(_AVERAGE): t for name, t in tensors.items() if name.startswith(_AVERAGE)},
            document["training"],
        )
    except FileNotFoundError as error:
        raise CheckpointError(f"{folder} is not a checkpoint: {error.filename} is missing") from error
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"{folder}: malformed checkpoint: {error}") from error


def is_checkpoint(folder: Path) -> bool:
    return (folder / _MANIFEST).exists()


def restore_run(checkpoint: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    folder = checkpoint.folder
    try:
        _check_sha256(folder, json.loads((folder / _MANIFEST).read_text(encoding="utf-8")), _RESUME)
    except FileNotFoundError as error:
        raise CheckpointError(f"{folder}: a run cannot go on from it: {error.filename} is missing") from error
    try:
        model.load_state_dict(dict(checkpoint.weights))
    except RuntimeError as error:
        raise CheckpointError(f"{folder}: the weights do not fit the model of the recipe: {error}") from error
    saved = load_file(folder / _RESUME)
    torch.set_rng_state(saved.pop(_RANDOM_CPU))
    random_cuda = saved.pop(_RANDOM_CUDA, None)  # of a run on a GPU, since it is saved
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if random_cuda is not None and parameters[0].is_cuda:
        torch.cuda.set_rng_state(random_cuda, parameters[0].device)
    for name, tensor in saved.items():
        index, key = name.split(".")
        parameter = parameters[int(index)]
        optimizer.state[parameter][key] = tensor.to(parameter.device)


def refuse_other_recipe(checkpoint: Checkpoint, given: Recipe) -> None:
    """Check that a run may go on by a recipe, of which only ``_MAY_CHANGE`` may have changed."""
    had, has = (_flat(recipe.model_dump(mode="json")) for recipe in (checkpoint.recipe, given))
    other = [
        f"{key} was {had.get(key, 'not there')}, is {has.get(key, 'not there')}"
        for key in dict.fromkeys((*had, *has))
        if key not in _MAY_CHANGE and had.get(key) != has.get(key)
    ]
    if not other and list(checkpoint.recipe.sources) != list(given.sources):
        other = ["the sources are in another order, which decides what is drawn"]
    if other:
        raise ValueError(
            f"{checkpoint.folder} is of a run by another recipe: {'; '.join(other)}; to go on with it give the recipe "
            "that it began with, or name another folder with --output"
        )


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def latest_checkpoint(folder: Path) -> Path | None:
    return max(_checkpoints(folder), default=(0, None))[1]


def step_folder(folder: Path, step: int) -> Path:
    return folder / f"step-{step:07d}"


def prune_checkpoints(folder: Path, keep: int = 2) -> None:
    found = sorted(_checkpoints(folder))
    for _, path in found[: max(len(found) - keep, 0)]:
        shutil.rmtree(path)


def _checkpoints(folder: Path) -> list[tuple[int, Path]]:
    numbers = ((path.name.removeprefix("step-"), path) for path in folder.glob("step-*") if path.is_dir())
    return [(int(number), path) for number, path in numbers if number.isdecimal()]


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())  # so that the renamed folder is whole even after a power cut


def _check_sha256(folder: Path, document: Mapping[str, Any], name: str) -> None:
    if sha256_of(folder / name) != document["sha256"][name]:
        raise CheckpointError(f"{folder}: {name} does not have the SHA-256 that {_MANIFEST} states")
