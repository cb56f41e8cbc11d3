"""Go on from a trained network with other tasks: the vocabulary grows without touching learned rows (section 4.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mqan_core.vectors import quantize_rows
from mqan_core.vocab import Vocabulary
from mqan_training.checkpoint import Checkpoint
from mqan_training.config import ModelConfig
from mqan_training.model.embeddings import StaticVectors, load_vectors, principal_axes
from mqan_training.model.network import Network
from mqan_training.runlog import console

_PROJECTIONS = ("mqan.encoder.projection.weight", "mqan.decoder.projection.weight")  # they read [static ; n-grams]
_GENERATOR = ("mqan.decoder.generator.weight", "mqan.decoder.generator.bias")  # one row a piece, the end first
_SOURCE = "from.txt"  # in the folder of a run: which network it started from
_GAINS = {  # switches of parts that a network can gain, and their weights
    "self_alignment": "mqan.encoder.self_alignment.",
    "pointer_shift": "mqan.decoder.shift.",
    "coverage": "mqan.decoder.cover_query.",
    "contextual_layers": "contextual.",
}
_FOR_TRAINING = "contextual.span."
_ALIGNMENT_READERS = "mqan.encoder.context_tail.compression."  # they read one more part where there is an alignment
_MAY_DIFFER = frozenset({"dropout", "attention_dropout", "attention_block", "contextual_dropout"})  # not in any weight


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


def vectors_for(pretrained: Pretrained, path: Path) -> StaticVectors:
    """Return the vectors of a run that goes on: those of a file that extends the learned ones, or the learned ones."""
    if not path.is_file():
        return pretrained.vectors
    given = load_vectors(path)
    if extends(given, pretrained.vectors):
        return replace(given, pieces=pretrained.vectors.pieces)
    if given.width > pretrained.vectors.width:
        console.print(
            f"{path} does not begin with the word vectors of {pretrained.source}: it is left alone, those stay",
            markup=False,
        )
    return pretrained.vectors


def with_fewer_columns(pretrained: Pretrained, num_columns: int) -> Pretrained:
    """Return nearly the same network with word vectors of fewer columns.

    All that it does with a vector is to project it, once for the encoder and once for the decoder: a product with one
    matrix of 2 D rows. Of all vectors of the given width those are chosen whose projections are nearest to the learned
    ones' over all words, by least squares (Eckart and Young 1936), and scaled to the learned ones' mean norm.

    Args:
        pretrained: the network.
        num_columns: how many columns the vectors get.

    Raises:
        ValueError: the vectors have fewer columns, or the projections do not tell so many apart.
    """
    vectors, width = pretrained.vectors, pretrained.vectors.width
    projections = [pretrained.weights[name] for name in _PROJECTIONS]
    most = min(width, sum(weight.shape[0] for weight in projections))
    if num_columns > most:
        raise ValueError(
            f"vector_columns is {num_columns}, but the vectors of {pretrained.source} have {width}, of which its "
            f"projections tell {most} apart"
        )
    rows = vectors.dequantized()
    projected = rows @ torch.cat(projections)[:, :width].numpy().T
    kept = principal_axes(projected, num_columns).astype(np.float32)
    fewer = projected @ kept
    scale = np.linalg.norm(rows, axis=1).mean() / np.linalg.norm(fewer, axis=1).mean()
    narrow, first = {}, 0
    for name, weight in zip(_PROJECTIONS, projections, strict=True):
        own = torch.from_numpy(kept[first : first + weight.shape[0]] / scale)
        narrow[name] = torch.cat([own, weight[:, width:]], dim=1)
        first += weight.shape[0]
    quantized, scales = quantize_rows(fewer * scale)
    return replace(
        pretrained,
        vectors=replace(vectors, rows=quantized, scales=scales),
        weights={**pretrained.weights, **narrow},
    )


def extends(vectors: StaticVectors, known: StaticVectors) -> bool:
    """Return whether vectors are wider than those that are known and begin with their words and columns.

    As ``mqan embed --beside`` makes them: their rows were rounded anew, so the columns are equal but for that.
    """
    num_known = len(known.words)
    if vectors.width <= known.width or vectors.words[:num_known] != known.words:
        return False
    kept = vectors.dequantized()[:num_known, : known.width]
    return bool((np.abs(kept - known.dequantized()) <= vectors.scales[:num_known, None]).all())


def differing_settings(one: ModelConfig, other: ModelConfig) -> list[str]:
    """Return the settings in which a model differs from one that may go on from it.

    Those on which no weights depend are left out, and so are the parts that the other one gains.
    """
    given, expected, gained = asdict(one), asdict(other), _gained(one, other)
    may_differ = _MAY_DIFFER | gained.keys()
    if not one.contextual_layers:
        may_differ |= {"contextual_heads", "contextual_ffn_width"}  # of nothing
    return [key for key in expected if key not in may_differ and given[key] != expected[key]]


def _gained(one: ModelConfig, other: ModelConfig) -> dict[str, str]:
    """Return the switches of the parts that the other model has and the one has not, with their weights' prefixes."""
    return {key: weights for key, weights in _GAINS.items() if getattr(other, key) and not getattr(one, key)}


@torch.no_grad()
def adopt(network: Network, pretrained: Pretrained) -> None:
    """Copy trained weights into a network whose generator may have more pieces, and whose vectors more columns.

    New rows of the generator keep their random start; the weights of new columns of the vectors start at zero, so that
    the network answers as before. The weights of a
    ``pointer_shift`` or a ``coverage``, and those that read a ``self_alignment`` or a contextual encoder, start at
    zero, too, where the trained network did not have it.

    Raises:
        ValueError: the networks differ in more than that; the message names what.
    """
    known, width = pretrained.vectors.width, network.embedder.vectors.width
    model = network.mqan.config
    gained = _gained(pretrained.model, model)
    differing = differing_settings(pretrained.model, model)
    if differing:
        given, expected = asdict(pretrained.model), asdict(model)
        pairs = ", ".join(f"{key} is {given[key]}, the recipe says {expected[key]}" for key in differing)
        raise ValueError(f"{pretrained.source} is another model: {pairs}")
    for name, parameter in network.state_dict().items():
        if name.startswith(tuple(gained.values())):
            continue
        if name not in pretrained.weights and name.startswith(_FOR_TRAINING):
            continue  # a bundle does not hold it
        if name not in pretrained.weights:
            raise ValueError(f"{pretrained.source} has no weights {name}")
        source = pretrained.weights[name]
        if name in _GENERATOR and source.shape[0] <= parameter.shape[0] and source.shape[1:] == parameter.shape[1:]:
            parameter[: source.shape[0]] = source
        elif name in _PROJECTIONS and width > known and source.shape[1] - known == parameter.shape[1] - width:
            parameter.zero_()
            parameter[:, :known] = source[:, :known]
            parameter[:, width:] = source[:, known:]
        elif (
            "self_alignment" in gained
            and name.startswith(_ALIGNMENT_READERS)
            and source.dim() == 2
            and source.shape[1] < parameter.shape[1]
        ):
            parameter.zero_()
            parameter[:, : source.shape[1]] = source
        elif source.shape == parameter.shape:
            parameter.copy_(source)
        else:
            raise ValueError(
                f"{pretrained.source}: {name} has the shape {list(source.shape)}, expected {list(parameter.shape)}"
            )
