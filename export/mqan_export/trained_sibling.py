"""The models that ``mqan siblings`` writes, behind one description: what export needs of either system."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor

from mqan_core.classifying import Kind, MemorySizes
from mqan_export.classifying_graphs import class_probabilities, mt_dnn_graphs, shared_memory_graphs
from mqan_training.mt_dnn import learning as mt_dnn
from mqan_training.mt_dnn.packing import packer_of, stack
from mqan_training.sentence_encoder import encoder_folder
from mqan_training.shared_memory import learning as shared_memory
from mqan_training.shared_memory.architectures import SharedMemoryNetwork
from mqan_training.shared_memory.words import Numbered
from mqan_training.siblings.folders import kind_of
from mqan_training.siblings.recipes import MtDnnRecipe, SharedMemoryRecipe
from mqan_training.siblings.tasks import sibling_task

Classify = Callable[[str, Sequence[tuple[str, ...]]], Tensor]
Graphs = Callable[[], Iterator[tuple[str, onnx.ModelProto]]]


@dataclass(frozen=True, slots=True)
class TrainedSibling:
    """A trained model of either system.

    Attributes:
        kind: which.
        name: of its recipe.
        seed: of its recipe.
        tasks: names of its tasks.
        lists: what it reads, as ``vocab.json`` has it.
        most_read: most words or word pieces that it reads.
        memory: sizes of shared memory; None for MT-DNN.
        training: provenance.
        graphs: makes its graphs, each with the name of its task, or of the encoder's file.
        probabilities: torch's, of a task's classes [N, C], for some texts or pairs.
    """

    kind: Kind
    name: str
    seed: int
    tasks: tuple[str, ...]
    lists: Mapping[str, list[str]]
    most_read: int
    memory: MemorySizes | None
    training: Mapping[str, Any]
    graphs: Graphs
    probabilities: Classify


def load_sibling(folder: Path) -> TrainedSibling:
    """Read a model that ``mqan siblings`` trained.

    Raises:
        CheckpointError: it is missing or damaged.
        MissingEncoderError: the word pieces of its encoder are not there.
        ValueError: it is of an unknown kind.
    """
    kinds: Mapping[str, Callable[[Path], TrainedSibling]] = {
        shared_memory.KIND: _shared_memory,
        mt_dnn.KIND: _mt_dnn,
    }
    kind = kind_of(folder)
    if kind not in kinds:
        raise ValueError(f"{folder} holds a model of the kind {kind!r}, which is unknown to this release")
    return kinds[kind](folder)


def _shared_memory(folder: Path) -> TrainedSibling:
    network, lexicon, labels, recipe = shared_memory.load_network(folder)

    @torch.no_grad()
    def classify(task: str, texts: Sequence[tuple[str, ...]]) -> Tensor:
        numbered = Numbered([lexicon.numbers(text, recipe.most_words) for (text,) in texts], [0] * len(texts))
        words_NT, lengths_N, _ = numbered.batch(range(len(texts)))
        return torch.softmax(network(task, words_NT, lengths_N), dim=-1)

    sizes = _memory_sizes(network, recipe)
    return TrainedSibling(
        kind="shared-memory",
        name=recipe.name,
        seed=recipe.seed,
        tasks=tuple(labels),
        lists={"words": list(lexicon.words)},
        most_read=recipe.most_words,
        memory=sizes,
        training=_provenance(recipe, tuple(labels)),
        graphs=lambda: shared_memory_graphs(network, sizes),
        probabilities=classify,
    )


def _mt_dnn(folder: Path) -> TrainedSibling:
    network, recipe = mt_dnn.load_network(folder)
    packer = packer_of(encoder_folder(recipe.encoder), recipe.most_pieces)

    @torch.no_grad()
    def classify(task: str, texts: Sequence[tuple[str, ...]]) -> Tensor:
        output = network(task, stack([packer.pack(*some) for some in texts]))
        return class_probabilities(sibling_task(task).form, output)

    return TrainedSibling(
        kind="mt-dnn",
        name=recipe.name,
        seed=recipe.seed,
        tasks=tuple(network.heads),
        lists={"word_pieces": list(packer.word_pieces.pieces)},
        most_read=recipe.most_pieces,
        memory=None,
        training=_provenance(recipe, tuple(network.heads)),
        graphs=lambda: mt_dnn_graphs(network),
        probabilities=classify,
    )


def _memory_sizes(network: SharedMemoryNetwork, recipe: SharedMemoryRecipe) -> MemorySizes:
    number = len(network.memories_of(next(iter(network.outputs))))
    return MemorySizes(recipe.hidden_width, number, recipe.segments, recipe.segment_width)


def _provenance(recipe: SharedMemoryRecipe | MtDnnRecipe, tasks: tuple[str, ...]) -> dict[str, Any]:
    settings = recipe.model_dump(mode="json", exclude={"encoder", "vectors"})  # those name places of this machine
    return {"recipe": recipe.name, "tasks": list(tasks), "settings": settings}
