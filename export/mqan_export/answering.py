"""Checkpoint with a pretrained reader to bundle: ``mqan export CHECKPOINT BUNDLE``, format 6.

- Before anything is compared, weights are rounded to what float16 holds; the vectors of pieces, and the generator's
  weights and inputs, to 8 bits with one scale a row. So the float32 graphs compute what torch does, in half the space
  or a quarter.
- The graphs for CPUs have 8-bit products (``eight_bit.py``).
"""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from mqan_core.bundle import open_bundle, write_manifest
from mqan_core.example import Example
from mqan_core.manifest import (
    EMBEDDINGS,
    MANIFEST,
    MODEL_CARD,
    VOCABULARY,
    Device,
    Graphs,
    Manifest,
    Sizes,
    check_names,
)
from mqan_core.text.vocab import NUM_SPECIAL
from mqan_data.mixture import validation_examples
from mqan_export.answering_parity import AnsweringParity, agreement, check_answering_parity
from mqan_export.eight_bit import quantise_reader, quantise_step
from mqan_export.embeddings_graph import EmbeddingsGraph
from mqan_export.export import round_weights
from mqan_export.reader_graph import ReaderGraph, trace_reader
from mqan_export.step_graph import TableStep, round_generator, trace_step
from mqan_export.trace import OPSET, save_graph, traced
from mqan_runtime.engine import Engine
from mqan_runtime.graphs import DYNAMIC, EMBEDDINGS_INPUTS, EMBEDDINGS_OUTPUTS
from mqan_runtime.session import Precision
from mqan_training.checkpoint import Checkpoint
from mqan_training.model.evidence import EVIDENCE_WIDTH
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.piece_batches import word_ids
from mqan_training.recipe import Recipe
from mqan_training.trained import Trained, load_trained

MOST_BYTES: Final = 60 * 10**6  # of all files
_GPU: Final[Mapping[Device, Graphs]] = {"cuda": Graphs("float32", "reader-float32.onnx", "decoder_step-float32.onnx")}
GRAPHS: Final[Mapping[Device, Graphs]] = {
    "cpu": Graphs("int8", "reader-int8.onnx", "decoder_step-int8.onnx"),
    **_GPU,
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
        examples: real examples, of which 8-bit products take their scales, and for the parity check.
        name: name of the model.
        version: version of the model.
        model_card: text of the bundle's README.

    Raises:
        ParityError: the graphs and torch disagree, or those with 8-bit products where torch is sure; the bundle is
            left without a manifest.
        ValueError: the bundle is larger than one may be, or no example can be read.
        BundleError: the name or the version cannot be those of a bundle; nothing is written.
    """
    training = {
        "recipe": checkpoint.recipe.name,
        "tasks": list(checkpoint.recipe.sources),
        "steps": checkpoint.step,
        "batch_pieces": checkpoint.recipe.batch_size,
        "model": checkpoint.recipe.pieces.decoder.model_dump(),
        **checkpoint.training,
    }
    return write_bundle(
        load_trained(checkpoint), folder, examples, name=name, version=version, model_card=model_card, training=training
    )


def write_bundle(
    trained: Trained,
    folder: Path,
    examples: Sequence[Example],
    *,
    name: str,
    version: str,
    model_card: str,
    training: Mapping[str, object],
) -> AnsweringParity:
    """Write the bundle of a network, whose weights are rounded in place; the rest is that of the function above."""
    check_names(name, version)
    folder = folder.resolve()  # a name to put another beside it; "." has none
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    (folder / MODEL_CARD).write_text(model_card, encoding="utf-8")
    generator_inputs = write_float32(trained, folder)
    manifest = Manifest(
        name=name,
        version=version,
        reader="pieces",
        sizes=sizes_of(trained),
        max_positions=trained.network.config.max_positions,
        graphs=_GPU,
        training=training,
    )
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.unchecked-", dir=folder.parent) as name_of_aside:
        aside = Path(name_of_aside)
        shutil.copytree(folder, aside, dirs_exist_ok=True)
        exact = _open(aside, manifest)
        report, answers = check_answering_parity(trained, generator_inputs, exact, examples)
        int8 = GRAPHS["cpu"]
        save_graph(folder / int8.reader, quantise_reader(trained, examples))
        save_graph(folder / int8.decoder_step, quantise_step(trained.network, generator_inputs, exact, examples))
        manifest = replace(manifest, graphs=GRAPHS)
        num_bytes = sum((folder / name).stat().st_size for name in manifest.expected_files)
        if num_bytes > MOST_BYTES:
            raise ValueError(f"{folder}: the bundle has {num_bytes:,} bytes, at most {MOST_BYTES:,} are allowed")
        shutil.copytree(folder, aside, dirs_exist_ok=True)
        report = agreement(report, answers, _open(aside, manifest, "int8"), examples)
    write_manifest(folder, manifest)
    return report


def round_network(network: PretrainedNetwork) -> EmbeddingsGraph:
    """Round a network's weights in place to those that its float32 graphs hold.

    Returns:
        The graph of the vectors of its pieces.
    """
    round_weights(network)
    round_generator(network.decoder)
    embeddings = EmbeddingsGraph(network.bert.pieces.weight)
    with torch.no_grad():
        network.bert.pieces.weight.copy_(embeddings.table())
    return embeddings


def write_float32(trained: Trained, folder: Path) -> Tensor:
    """Write the float32 graphs and the vocabulary; the network's weights are rounded in place.

    Returns:
        The decoder's inputs for the generator's words as the graphs hold them, [V, D].
    """
    network, graphs = trained.network, _GPU["cuda"]
    embeddings = round_network(network)
    inputs, outputs = EMBEDDINGS_INPUTS, list(EMBEDDINGS_OUTPUTS)
    save_graph(folder / EMBEDDINGS, traced(embeddings, embeddings.example_inputs(), inputs, outputs, DYNAMIC, OPSET))
    with torch.no_grad():
        pieces = torch.from_numpy(word_ids(trained.layout.word_pieces, trained.vocabulary.pieces))
        generator_inputs = network.decoder.project(network.word_vectors(pieces))
    save_graph(folder / graphs.reader, trace_reader(ReaderGraph(network), network.config.num_layers))
    step = TableStep(network.decoder, generator_inputs)
    save_graph(folder / graphs.decoder_step, trace_step(step))
    lists = {
        "pieces": list(trained.vocabulary.pieces[NUM_SPECIAL:]),
        "word_pieces": list(trained.layout.word_pieces.pieces),
    }
    (folder / VOCABULARY).write_text(json.dumps(lists, ensure_ascii=False), encoding="utf-8")
    return step.table()


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
        evidence_width=EVIDENCE_WIDTH,
    )


def validation_mixture(recipe: Recipe, data: Path, number: int) -> list[Example]:
    """Return about so many validation examples of the sources that a recipe is validated on, or is trained on.

    Raises:
        DatasetError: the files of a source are missing or malformed.
    """
    names = recipe.validate_sources or tuple(recipe.sources)
    each = -(-number // len(names))
    return [example for name in names for example in validation_examples(data, name, each, recipe.seed)]


def _open(folder: Path, manifest: Manifest, precision: Precision = "float32") -> Engine:
    write_manifest(folder, manifest)
    return Engine(open_bundle(folder), provider="cpu", precision=precision)
