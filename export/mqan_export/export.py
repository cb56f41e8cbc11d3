"""Checkpoint to bundle: ``mqan export CHECKPOINT BUNDLE``."""

import copy
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnx
import torch
from safetensors.numpy import save_file
from torch import nn

from mqan_core.bundle import open_bundle, write_manifest
from mqan_core.example import Example
from mqan_core.manifest import (
    MANIFEST,
    MODEL_CARD,
    VECTORS,
    VOCABULARY,
    Device,
    Graphs,
    Manifest,
    Sizes,
    check_names,
)
from mqan_core.text.vocab import END_ID
from mqan_export.encoder_graph import EncoderGraph
from mqan_export.lstm import translation_table
from mqan_export.parity import NO_EXAMPLES, ParityReport, check_parity
from mqan_export.step_graph import trace_step
from mqan_export.trace import examples_of, save_graph, traced
from mqan_runtime.engine import Engine
from mqan_runtime.graphs import (
    DYNAMIC,
    WORDS_INPUTS,
    words_outputs,
)
from mqan_runtime.half import as_half
from mqan_training.checkpoint import Checkpoint
from mqan_training.model.greedy import GreedyStep
from mqan_training.model.network import Network
from mqan_training.trained import load_network

_OPSET = 18
_FLOAT32 = Graphs("float32", "reader-float32.onnx", "decoder_step-float32.onnx")
GRAPHS: Final[Mapping[Device, Graphs]] = {"cpu": _FLOAT32, "cuda": _FLOAT32}


def export_bundle(
    checkpoint: Checkpoint,
    folder: Path,
    examples: list[Example],
    *,
    name: str,
    version: str,
    model_card: str,
) -> ParityReport:
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
        BundleError: the name or the version cannot be those of a bundle; nothing is written.
        ValueError: there are no examples, or the network is an ablation of the paper's table 2; nothing is written.
    """
    check_names(name, version)
    if not examples:
        raise ValueError(NO_EXAMPLES)
    model = checkpoint.recipe.words.model
    if not (model.coattention and model.question_pointer):
        raise ValueError(
            "ablations of the paper's table 2 (model.coattention or model.question_pointer is false) are not exported: "
            "score the checkpoint itself with `mqan evaluate --checkpoint`"
        )
    network = load_network(checkpoint)
    round_weights(network)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    write_graphs(network, folder)
    write_words(network, folder)
    (folder / MODEL_CARD).write_text(model_card, encoding="utf-8")
    manifest = Manifest(
        name=name,
        version=version,
        reader="words",
        sizes=sizes_of(network),
        max_positions=checkpoint.recipe.words.model.max_positions,
        graphs=GRAPHS,
        training={
            "recipe": checkpoint.recipe.name,
            "tasks": list(checkpoint.recipe.sources),
            "steps": checkpoint.step,
            "model": asdict(checkpoint.recipe.words.model),
            **checkpoint.training,
        },
    )
    aside = folder / ".unchecked"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(folder, aside)
    try:
        write_manifest(aside, manifest)
        report = check_parity(network, Engine(open_bundle(aside), provider="cpu"), examples)
    finally:
        shutil.rmtree(aside)
    write_manifest(folder, manifest)
    return report


@torch.no_grad()
def round_weights(network: nn.Module) -> None:
    """Round all weights of a network to numbers that float16 holds, in place.

    Raises:
        ValueError: a weight is too large for that.
    """
    for name, parameter in network.named_parameters():
        rounded = parameter.half().to(parameter.dtype)
        if not bool(torch.isfinite(rounded).all()):
            raise ValueError(f"{name} holds {float(parameter.abs().max()):.3g}, which float16 cannot")
        parameter.copy_(rounded)


def write_graphs(network: Network, folder: Path) -> None:
    """Write the two graphs of a network."""
    sizes = sizes_of(network)
    fixed = {"M": sizes.reader_width, "D": sizes.width, "H": sizes.num_heads, "W": sizes.head_width}
    examples, outputs = examples_of(WORDS_INPUTS, fixed), list(words_outputs(sizes.num_layers))
    table = translation_table(sizes.width // 2)
    reader = traced(EncoderGraph(network), examples, WORDS_INPUTS, outputs, DYNAMIC, _OPSET, table)
    step = trace_step(GreedyStep(copy.deepcopy(network.mqan.decoder).eval(), END_ID), _OPSET)
    for name, model in ((_FLOAT32.reader, reader), (_FLOAT32.decoder_step, step)):
        save_graph(folder / name, model)
        onnx.checker.check_model(str(folder / name))


def write_words(network: Network, folder: Path) -> None:
    """Write the vocabulary and the word vectors."""
    vectors = network.embedder.vectors
    lists = {"pieces": list(network.vocabulary.pieces[1:]), "words": list(vectors.words)}
    (folder / VOCABULARY).write_text(json.dumps(lists, ensure_ascii=False), encoding="utf-8")
    ngrams = network.embedder.ngrams.weight.detach().numpy()
    half = as_half(ngrams)
    tensors: dict[str, npt.NDArray[np.generic]] = {
        "rows": vectors.rows,
        "scales": vectors.scales,
        "ngrams": ngrams if half is None else half,
    }
    save_file(tensors, str(folder / VECTORS))


def sizes_of(network: Network) -> Sizes:
    """Return the sizes of a network's graphs."""
    config = network.mqan.config
    return Sizes(
        width=config.width,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        head_width=config.head_width,
        num_generated=network.vocabulary.num_generated,
        reader_width=network.embedder.width,
    )
