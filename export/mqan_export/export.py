"""Checkpoint to bundle: ``mqan export CHECKPOINT BUNDLE``."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import save_file
from torch import nn

from mqan_core.bundle import (
    CONTEXTUAL,
    DECODER_STEP,
    ENCODER,
    MANIFEST,
    MODEL_CARD,
    VECTORS,
    VOCABULARY,
    Bundle,
    Contextual,
    Dimensions,
    Manifest,
    describe_files,
    open_bundle,
    write_manifest,
    write_ranges,
)
from mqan_core.example import Example
from mqan_core.request import Request, read_request
from mqan_core.vectors import WordVectors
from mqan_export.contextual_graph import ContextualGraph
from mqan_export.encoder_graph import EncoderGraph
from mqan_export.parity import ParityReport, check_parity
from mqan_export.ranges import measure_input_ranges
from mqan_export.step_graph import DecoderStepGraph
from mqan_export.trace import to_onnx
from mqan_runtime.decoding import Batch, GreedyLoop
from mqan_runtime.engine import Engine
from mqan_runtime.graphs import (
    CONTEXTUAL_INPUTS,
    CONTEXTUAL_OUTPUTS,
    NEXT,
    encoder_inputs,
    encoder_outputs,
    step_constants,
    step_state,
)
from mqan_runtime.half import as_half
from mqan_runtime.window_reader import window_inputs
from mqan_training.checkpoint import Checkpoint
from mqan_training.model.network import Network
from mqan_training.transfer import network_of, pretrained_of

_MEASURED_TOKENS = 50  # most answer tokens while ranges are measured


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
    """
    network = network_of(pretrained_of(checkpoint))
    round_weights(network)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    requests = [read_request(network.vocabulary, example.context, example.question) for example in examples]
    write_files(network, folder, model_card, requests)
    manifest = Manifest(
        name=name,
        version=version,
        dimensions=dimensions_of(network),
        max_positions=checkpoint.train_config.model.max_positions,
        files=describe_files(folder),
        training={
            "recipe": checkpoint.train_config.name,
            "tasks": [task.name for task in checkpoint.train_config.tasks],
            "steps": checkpoint.step,
            "model": asdict(checkpoint.train_config.model),
            **checkpoint.training,
        },
    )
    aside = folder / ".unchecked"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(folder, aside)
    try:
        write_manifest(aside, manifest)
        bundle = open_bundle(aside)
        exact = Engine(bundle, provider="cpu", precision="float32")
        report = check_parity(network, exact, Engine(bundle, provider="cpu", precision="int8"), examples)
    finally:
        shutil.rmtree(aside)
    write_manifest(folder, manifest)
    return report


def write_files(network: Network, folder: Path, model_card: str, requests: Sequence[Request]) -> None:
    """Write every file of a bundle but the manifest; input ranges are measured on real requests."""
    write_graphs(network, folder)
    write_words(network, folder)
    (folder / MODEL_CARD).write_text(model_card, encoding="utf-8")
    write_ranges(folder, measure_ranges(network, folder, requests))


def measure_ranges(
    network: Network, folder: Path, requests: Sequence[Request]
) -> dict[str, dict[str, npt.NDArray[np.float32]]]:
    """Measure what the graphs in a folder read while they answer requests, each alone.

    Raises:
        ValueError: there are no requests.
    """
    encoder, step = ((folder / name).read_bytes() for name in (ENCODER, DECODER_STEP))
    contextual = None
    if network.contextual is not None:
        contextual = Contextual((folder / CONTEXTUAL).read_bytes(), network.contextual.pieces)
    vectors = network.embedder.vectors
    words = WordVectors(
        network.vocabulary, vectors.rows, vectors.scales, network.embedder.ngrams.weight.detach().numpy()
    )
    manifest = Manifest("", "", dimensions_of(network), network.mqan.config.max_positions, {})
    bundle = Bundle(manifest, "", encoder, step, network.vocabulary, words, {}, contextual)
    engine = Engine(bundle, provider="cpu", precision="float32")
    batches = [engine.pad([request], [min(_MEASURED_TOKENS, engine.max_answer_tokens)]) for request in requests]
    ranges = {}
    if contextual is not None:
        windows = (inputs for request in requests for _, inputs in window_inputs(contextual.pieces, request))
        ranges[CONTEXTUAL] = measure_input_ranges(contextual.graph, windows)
    return ranges | {
        ENCODER: measure_input_ranges(encoder, (batch.inputs for batch in batches)),
        DECODER_STEP: measure_input_ranges(step, _step_inputs(engine.loop, batches)),
    }


def _step_inputs(loop: GreedyLoop, batches: Iterable[Batch]) -> Iterator[Mapping[str, npt.NDArray[np.generic]]]:
    """Yield what each step of decoding reads."""
    for batch in batches:
        decoding = loop.start(batch, range(len(batch.max_tokens)))
        while decoding.num_live:
            yield {**decoding.constants, **decoding.state}
            loop.step(decoding)


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
    dimensions = dimensions_of(network)
    num_layers, hidden_width = dimensions.num_layers, dimensions.width // 2
    encoder = EncoderGraph(network)
    inputs = encoder.example_inputs(network.embedder.width)
    outputs = list(encoder_outputs(num_layers))
    (folder / ENCODER).write_bytes(to_onnx(encoder, inputs, encoder_inputs(dimensions), outputs, hidden_width))
    (folder / CONTEXTUAL).unlink(missing_ok=True)  # of an earlier bundle
    if network.contextual is not None:
        contextual = ContextualGraph(network.contextual)
        given = contextual.example_inputs()
        content = to_onnx(contextual, given, CONTEXTUAL_INPUTS, list(CONTEXTUAL_OUTPUTS), hidden_width)
        (folder / CONTEXTUAL).write_bytes(content)
    step = DecoderStepGraph(network)
    state = step_state(dimensions)
    step_inputs = {**step_constants(num_layers), **state}
    outputs = [NEXT + name for name in state]
    (folder / DECODER_STEP).write_bytes(to_onnx(step, step.example_inputs(), step_inputs, outputs, hidden_width))


def write_words(network: Network, folder: Path) -> None:
    """Write the vocabulary and the word vectors."""
    vectors = network.embedder.vectors
    lists = {"pieces": list(network.vocabulary.pieces[1:]), "words": list(vectors.words)}
    pieces = None if network.contextual is None else network.contextual.pieces
    if pieces is not None:
        lists["word_pieces"] = list(pieces.word_pieces.pieces)
    (folder / VOCABULARY).write_text(json.dumps(lists, ensure_ascii=False), encoding="utf-8")
    ngrams = network.embedder.ngrams.weight.detach().numpy()
    half = as_half(ngrams)
    tensors: dict[str, npt.NDArray[np.generic]] = {
        "rows": vectors.rows,
        "scales": vectors.scales,
        "ngrams": ngrams if half is None else half,
    }
    if pieces is not None:
        tensors.update(piece_rows=pieces.rows, piece_scales=pieces.scales)
    save_file(tensors, str(folder / VECTORS))


def dimensions_of(network: Network) -> Dimensions:
    """Return the sizes of a network's graphs."""
    config = network.mqan.config
    return Dimensions(
        width=config.width,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        head_width=config.head_width,
        num_generated=network.vocabulary.num_generated,
        vector_width=network.embedder.width,
        joined=not config.coattention,
        moves_pointer=config.pointer_shift,
        keeps_coverage=config.coverage,
        contextual_width=0 if network.contextual is None else network.contextual.pieces.width,
    )
