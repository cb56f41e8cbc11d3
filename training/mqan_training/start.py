"""Trained networks out of checkpoints, and the weights of a trained model that a run begins with.

The vocabulary may grow then; learned rows stay (section 4.3).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from mqan_core.text.layout import Layout
from mqan_core.text.vocab import Vocabulary
from mqan_training.checkpoint import ENCODER_CONFIG, Checkpoint, CheckpointError
from mqan_training.model.bert import WORD_PIECES, Bert, BertConfig, read_word_pieces
from mqan_training.model.embeddings import load_vectors
from mqan_training.model.network import Network
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.recipe import Recipe, WordsConfig

_GENERATOR: Final = ("decoder.generator.weight", "decoder.generator.bias")  # one row a token, the special ones first
_OLDER: Final = "evidence."  # weights that bundles did not always have; untrained where there are none
_ORIGIN: Final = "from.txt"  # in the folder of a run, from before its first checkpoint on


@dataclass(frozen=True, slots=True)
class Start:
    """A trained model to begin with."""

    weights: Mapping[str, Tensor]
    tokens: tuple[str, ...]
    origin: str
    tasks: tuple[str, ...] = ()  # that the weights were trained on
    words: WordsConfig | None = None  # the reader of the paper's network
    vectors: Path | None = None  # that it was learnt on


def start_from_checkpoint(checkpoint: Checkpoint) -> Start:
    weights, origin = checkpoint.average or checkpoint.weights, str(checkpoint.folder.resolve())
    start = Start(weights, checkpoint.tokens, origin, tuple(checkpoint.all_tasks()))
    reader = checkpoint.recipe.reader
    return replace(start, words=reader, vectors=checkpoint.vectors_path) if isinstance(reader, WordsConfig) else start


@torch.no_grad()
def adopt(network: nn.Module, start: Start) -> None:
    """Copy weights into a network whose generator may have more tokens; the rows of these keep their random start."""
    for name, parameter in network.state_dict().items():
        weights = start.weights.get(name)
        if weights is None:
            if name.startswith(_OLDER):
                continue
            raise ValueError(f"{start.origin} does not fit the model of the recipe: it has no weights {name}")
        grows = name.endswith(_GENERATOR) and weights.shape[1:] == parameter.shape[1:]
        if not (grows and len(weights) <= len(parameter)) and weights.shape != parameter.shape:
            raise ValueError(
                f"{start.origin} does not fit the model of the recipe: {name} has the shape {list(weights.shape)}, "
                f"expected {list(parameter.shape)}"
            )
        (parameter[: len(weights)] if grows else parameter).copy_(weights)
    if unknown := start.weights.keys() - network.state_dict().keys():
        raise ValueError(f"{start.origin} does not fit the model of the recipe, which has no {min(unknown)}")


def refuse_other_start(
    folder: Path, checkpoint: Checkpoint | None, recipe: Recipe, start: Start | None, *, resume: bool
) -> None:
    """Check that a run goes on with what it began with, of which it may keep a share."""
    if recipe.start_share and start is None:
        raise ValueError(f"recipe {recipe.name}: start_share is of the weights that --from gives; resume with it, too")
    if checkpoint is None:
        begun = folder / _ORIGIN
        had = begun.read_text(encoding="utf-8") if resume and begun.exists() else None
        if had is not None and (start is None or start.origin != had):
            raise ValueError(f"{folder} has no checkpoint yet and began with {had}: give that with --from again")
        return
    if start is not None:
        had = checkpoint.training.get("began_from", "")
        if start.origin != had:
            raise ValueError(
                f"the run in {folder} began with {had or 'random weights'}, not with {start.origin}: give that to go "
                "on with it, or name another folder with --output"
            )
        if start.tokens != checkpoint.tokens[: len(start.tokens)]:
            raise ValueError(f"{start.origin} has other words than when the run in {folder} began with it")
    if recipe.start_share and checkpoint.step == checkpoint.recipe.steps and recipe.steps > checkpoint.step:
        raise ValueError(
            f"the run in {folder} has ended, and its weights hold the share that start_share keeps: begin another run, "
            "from its bundle"
        )


def record_origin(folder: Path, start: Start | None) -> None:
    if start is None:
        (folder / _ORIGIN).unlink(missing_ok=True)
    else:
        (folder / _ORIGIN).write_text(start.origin, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Trained:
    network: PretrainedNetwork
    vocabulary: Vocabulary
    layout: Layout


def load_trained(checkpoint: Checkpoint) -> Trained:
    config, folder = checkpoint.recipe.pieces, checkpoint.folder
    try:
        sizes = BertConfig.model_validate(json.loads((folder / ENCODER_CONFIG).read_text(encoding="utf-8")))
        word_pieces = read_word_pieces(folder)
    except (OSError, ValueError, ValidationError) as error:
        raise CheckpointError(f"{folder}: {ENCODER_CONFIG} or {WORD_PIECES} cannot be read: {error}") from error
    vocabulary = Vocabulary(checkpoint.tokens, refuses=True)
    network = PretrainedNetwork(config.decoder.model_config_of(), Bert(sizes, 0.0), vocabulary.num_generated)
    _load(network, checkpoint)
    return Trained(network, vocabulary, Layout(word_pieces))


def load_network(checkpoint: Checkpoint) -> Network:
    config, vectors = checkpoint.recipe.words, load_vectors(checkpoint.vectors_path)
    network = Network(config.model, vectors, Vocabulary(checkpoint.tokens, vectors.words))
    _load(network, checkpoint)
    return network


def _load(network: nn.Module, checkpoint: Checkpoint) -> None:
    try:
        network.load_state_dict({**checkpoint.weights, **checkpoint.average})  # buffers are not averaged
    except RuntimeError as error:
        message = f"{checkpoint.folder}: the weights do not fit the model of the recipe: {error}"
        raise CheckpointError(message) from error
    network.eval()
