"""Go on from a trained network with other tasks: the vocabulary grows without touching learned rows (section 4.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from mqan_core.text.vocab import Vocabulary
from mqan_training.checkpoint import Checkpoint
from mqan_training.config import ModelConfig
from mqan_training.model.embeddings import StaticVectors, load_vectors
from mqan_training.model.network import Network

_GENERATOR = ("mqan.decoder.generator.weight", "mqan.decoder.generator.bias")  # one row a piece, the end first
_SOURCE = "from.txt"  # in the folder of a run: which network it started from
_MAY_DIFFER = frozenset({"dropout", "attention_dropout"})  # not in any weight


@dataclass(frozen=True, slots=True)
class Pretrained:
    """A trained network to go on from.

    Attributes:
        source: where it was read from, for messages.
        model: its configuration.
        pieces: the generator's pieces without the end.
        vectors: its frozen word vectors; a run that goes on keeps their columns, for the weights were learnt on them.
        weights: by the names of ``Network``.
    """

    source: str
    model: ModelConfig
    pieces: tuple[str, ...]
    vectors: StaticVectors
    weights: Mapping[str, Tensor]


def pretrained_of(checkpoint: Checkpoint) -> Pretrained:
    """Return what a new run can take over of a checkpoint: its averaged weights where there are any.

    Raises:
        CheckpointError: its reader is a pretrained one.
    """
    return Pretrained(
        str(checkpoint.folder),
        checkpoint.train_config.model,
        checkpoint.pieces,
        load_vectors(checkpoint.vectors_path),
        checkpoint.best_weights(),
    )


def network_of(pretrained: Pretrained) -> Network:
    """Build the network itself, in evaluation mode."""
    vocabulary = Vocabulary(pretrained.pieces, pretrained.vectors.words)
    network = Network(pretrained.model, pretrained.vectors, vocabulary)
    adopt(network, pretrained)
    return network.eval()


def record_source(folder: Path, source: str | None) -> None:
    """Record in a run's folder which network the run starts from; None: from random weights."""
    if source is None:
        (folder / _SOURCE).unlink(missing_ok=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _SOURCE).write_text(source, encoding="utf-8")


def recorded_source(folder: Path) -> str | None:
    """Return which network the run in a folder started from; None if from random weights."""
    path = folder / _SOURCE
    return path.read_text(encoding="utf-8") if path.exists() else None


def grow_pieces(known: Sequence[str], wanted: Sequence[str], num_generated: int) -> tuple[str, ...]:
    """Return the known pieces, in their order, and as many of the wanted ones as fit (the end takes one place).

    Raises:
        ValueError: there are more known pieces than places.
    """
    room = num_generated - 1 - len(known)
    if room < 0:
        raise ValueError(
            f"num_generated is {num_generated}, but the network to go on from generates {len(known) + 1} pieces; "
            "a vocabulary can only grow"
        )
    seen = set(known)
    return (*known, *[piece for piece in wanted if piece not in seen][:room])


def differing_settings(one: ModelConfig, other: ModelConfig) -> list[str]:
    """Return the settings on which weights depend in which a model differs from one that may go on from it."""
    given, expected = asdict(one), asdict(other)
    return [key for key in expected if key not in _MAY_DIFFER and given[key] != expected[key]]


@torch.no_grad()
def adopt(network: Network, pretrained: Pretrained) -> None:
    """Copy trained weights into a network whose generator may have more pieces; their rows keep their random start.

    Raises:
        ValueError: the networks differ in more than that; the message names what.
    """
    model = network.mqan.config
    differing = differing_settings(pretrained.model, model)
    if differing:
        given, expected = asdict(pretrained.model), asdict(model)
        pairs = ", ".join(f"{key} is {given[key]}, the recipe says {expected[key]}" for key in differing)
        raise ValueError(f"{pretrained.source} is another model: {pairs}")
    for name, parameter in network.state_dict().items():
        if name not in pretrained.weights:
            raise ValueError(f"{pretrained.source} has no weights {name}")
        source = pretrained.weights[name]
        if name in _GENERATOR and source.shape[0] <= parameter.shape[0] and source.shape[1:] == parameter.shape[1:]:
            parameter[: source.shape[0]] = source
        elif source.shape == parameter.shape:
            parameter.copy_(source)
        else:
            raise ValueError(
                f"{pretrained.source}: {name} has the shape {list(source.shape)}, expected {list(parameter.shape)}"
            )
