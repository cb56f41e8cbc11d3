"""Checkpoint with a pretrained reader to bundle: ``mqan export CHECKPOINT BUNDLE``, format 6.

- Weights are rounded to what float16 holds, the vectors of pieces and the generator's words to 8 bits with one scale a
  row, before anything is compared: so the float32 graphs compute what torch does, in half the space.
- All graphs are float32.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import onnx
import torch
from torch import Tensor

from mqan_core.answering import (
    EMBEDDINGS,
    MOST_BYTES,
    AnsweringManifest,
    Device,
    Graphs,
    Sizes,
    describe_answering_files,
    open_answering_bundle,
    write_answering_manifest,
)
from mqan_core.example import Example
from mqan_core.manifest import MANIFEST, MODEL_CARD, VOCABULARY
from mqan_core.vocab import NUM_SPECIAL
from mqan_export.answering_parity import AnsweringParity, check_answering_parity
from mqan_export.answering_step_graph import AnsweringStepGraph
from mqan_export.embeddings_graph import EmbeddingsGraph
from mqan_export.export import round_weights
from mqan_export.reader_graph import ReaderGraph
from mqan_export.trace import traced
from mqan_runtime.answering_engine import AnsweringEngine
from mqan_runtime.answering_graphs import (
    DYNAMIC,
    EMBEDDINGS_INPUTS,
    EMBEDDINGS_OUTPUTS,
    READER_INPUTS,
    reader_outputs,
    step_constants,
    step_state,
)
from mqan_runtime.graphs import NEXT
from mqan_runtime.half import store_half
from mqan_training.checkpoint import Checkpoint
from mqan_training.collate import word_ids
from mqan_training.trained import Trained, load_trained

OPSET: Final = 23  # the first with attention as an operator
READER_FLOAT32 = "reader-float32.onnx"
STEP_FLOAT32 = "decoder_step-float32.onnx"
GRAPHS: Final[Mapping[Device, Graphs]] = {
    "cpu": Graphs("float32", READER_FLOAT32, STEP_FLOAT32),
    "cuda": Graphs("float32", READER_FLOAT32, STEP_FLOAT32),
}


def export_answering_bundle(
    checkpoint: Checkpoint,
    folder: Path,
    examples: Sequence[Example],
    *,
    name: str,
    version: str,
    model_card: str,
) -> AnsweringParity:
    """Write a bundle and check that it computes what the checkpoint does; the manifest is written only if it does.

    Args:
        checkpoint: what to export.
        folder: where the bundle goes; what is there of an earlier bundle is replaced.
        examples: real examples for the parity check.
        name: name of the model.
        version: version of the model.
        model_card: text of the bundle's README.

    Raises:
        ParityError: the graphs and torch disagree; the bundle is left without a manifest.
        ValueError: the bundle is larger than one may be, or no example can be read.
    """
    trained = load_trained(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    generator_inputs = write_answering_files(trained, folder, model_card)
    manifest = AnsweringManifest(
        name=name,
        version=version,
        sizes=sizes_of(trained),
        max_positions=trained.network.config.max_positions,
        graphs=GRAPHS,
        files=describe_answering_files(folder, GRAPHS),
        training={
            "recipe": checkpoint.recipe.name,
            "tasks": list(checkpoint.recipe.sources),
            "steps": checkpoint.step,
            "model": checkpoint.recipe.decoder.model_dump(),
            **checkpoint.training,
        },
    )
    num_bytes = sum(entry.num_bytes for entry in manifest.files.values())
    if num_bytes > MOST_BYTES:
        raise ValueError(f"{folder}: the bundle has {num_bytes:,} bytes, at most {MOST_BYTES:,} are allowed")
    aside = folder / ".unchecked"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(folder, aside)
    try:
        write_answering_manifest(aside, manifest)
        bundle = open_answering_bundle(aside)
        engine = AnsweringEngine(bundle, provider="cpu", precision="float32")
        report = check_answering_parity(trained, generator_inputs, engine, engine, examples)
    finally:
        shutil.rmtree(aside)
    write_answering_manifest(folder, manifest)
    return report


def write_answering_files(trained: Trained, folder: Path, model_card: str) -> Tensor:
    """Write every file of a bundle but the manifest; the network's weights are rounded in place.

    Returns:
        The decoder's inputs for the generator's words as the graphs hold them, [V, D].
    """
    network = trained.network
    round_weights(network)
    embeddings = EmbeddingsGraph(network.bert.pieces.weight)
    inputs, outputs = EMBEDDINGS_INPUTS, list(EMBEDDINGS_OUTPUTS)
    save_graph(folder / EMBEDDINGS, traced(embeddings, embeddings.example_inputs(), inputs, outputs, DYNAMIC, OPSET))
    with torch.no_grad():
        network.bert.pieces.weight.copy_(embeddings.table())
        pieces = torch.from_numpy(word_ids(trained.layout.word_pieces, trained.vocabulary.pieces))
        generator_inputs = network.decoder.project(network.word_vectors(pieces))
    reader = trace_reader(ReaderGraph(network), network.config.num_layers)
    save_graph(folder / READER_FLOAT32, reader)
    step = AnsweringStepGraph(network, generator_inputs)
    state = step_state(network.config.num_layers)
    axes = {**step_constants(network.config.num_layers), **state}
    names = [NEXT + name for name in state]
    save_graph(folder / STEP_FLOAT32, traced(step, step.example_inputs(), axes, names, DYNAMIC, OPSET))
    lists = {
        "pieces": list(trained.vocabulary.pieces[NUM_SPECIAL:]),
        "word_pieces": list(trained.layout.word_pieces.pieces),
    }
    (folder / VOCABULARY).write_text(json.dumps(lists, ensure_ascii=False), encoding="utf-8")
    (folder / MODEL_CARD).write_text(model_card, encoding="utf-8")
    return step.step.table()


def trace_reader(graph: ReaderGraph, num_layers: int) -> onnx.ModelProto:
    """Return the float32 graph of a reader."""
    return traced(graph, graph.example_inputs(), READER_INPUTS, list(reader_outputs(num_layers)), DYNAMIC, OPSET)


def save_graph(path: Path, model: onnx.ModelProto) -> None:
    """Write a graph, with the weights that float16 holds in half the space."""
    store_half(model)
    path.write_bytes(model.SerializeToString(deterministic=True))


def sizes_of(trained: Trained) -> Sizes:
    """Return the sizes of a network's graphs."""
    config = trained.network.config
    return Sizes(
        width=config.width,
        reader_width=trained.network.bert.config.hidden_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        head_width=config.head_width,
        num_generated=trained.vocabulary.num_generated,
        num_word_pieces=len(trained.layout.word_pieces.pieces),
    )
