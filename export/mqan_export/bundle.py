"""Checkpoint to bundle: ``mqan export CHECKPOINT BUNDLE``.

- Before anything is compared, weights are rounded to what float16 holds; the vectors of word pieces, and the weights
  and inputs of their decoder's generator, to 8 bits with one scale a row. So the float32 graphs compute what torch
  does, in half the space or a quarter.
- Over word pieces the graphs for CPUs have 8-bit products (``int8.py``).
"""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
import torch
from safetensors.numpy import save_file
from torch import Tensor, nn

from mqan_core import manifest as m
from mqan_core.answer.types import Answer
from mqan_core.ask.request import Request
from mqan_core.bundle import open_bundle, write_manifest
from mqan_core.example import Example
from mqan_core.text.vocab import NUM_SPECIAL
from mqan_export.int8 import quantise_reader, quantise_step
from mqan_export.parity import NO_EXAMPLES, Parity, agreement, check_parity, check_words_reader
from mqan_export.reader_graphs import PiecesGraph, trace_embeddings, trace_pieces, trace_words
from mqan_export.step_graph import Table, TableStep, round_generator, trace_step
from mqan_export.trace import WORDS_OPSET, as_half, save_graph
from mqan_runtime.engine import Engine
from mqan_runtime.session import Precision
from mqan_training.checkpoint import Checkpoint
from mqan_training.model.greedy import GreedyStep
from mqan_training.model.heads import EVIDENCE_WIDTH
from mqan_training.model.network import Network
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.recipe import PiecesConfig, Recipe
from mqan_training.start import Trained, load_network, load_trained
from mqan_training.tasks import validation_of
from mqan_training.torch_answers import answer_batch, generator_inputs

MOST_BYTES: Final = 60 * 10**6  # of all files of a reader of word pieces
FLOAT32: Final = m.Graphs("float32", "reader-float32.onnx", "decoder_step-float32.onnx")
INT8: Final = m.Graphs("int8", "reader-int8.onnx", "decoder_step-int8.onnx")


class PiecesModel:
    """A network over word pieces. Writing its graphs rounds its weights in place."""

    reader: Final = "pieces"

    def __init__(self, trained: Trained) -> None:
        self.trained, self.config = trained, trained.network.config
        self.graphs: Mapping[m.Device, m.Graphs] = {"cuda": FLOAT32}
        self.sizes = {
            "reader_width": trained.network.bert.config.hidden_size,
            "num_generated": trained.vocabulary.num_generated,
            "num_word_pieces": len(trained.layout.word_pieces.pieces),
            "evidence_width": EVIDENCE_WIDTH,
        }
        self._generator_inputs: Tensor | None = None  # as the graphs hold them, [V, D]

    def write(self, folder: Path) -> None:
        network, layout, vocabulary = self.trained.network, self.trained.layout, self.trained.vocabulary
        save_graph(folder / m.EMBEDDINGS, trace_embeddings(round_network(network)))
        with torch.no_grad():
            words_VD = generator_inputs(self.trained)
        save_graph(folder / FLOAT32.reader, trace_pieces(PiecesGraph(network)))
        step = TableStep(network.decoder, words_VD)
        save_graph(folder / FLOAT32.decoder_step, trace_step(step))
        self._generator_inputs = step.inputs.whole()
        lists = {"pieces": vocabulary.pieces[NUM_SPECIAL:], "word_pieces": layout.word_pieces.pieces}
        (folder / m.VOCABULARY).write_text(json.dumps(lists, ensure_ascii=False), encoding="utf-8")

    def answer(self, requests: Sequence[Request], limit: int) -> list[Answer]:
        return answer_batch(self.trained, requests, limit, self._generator_inputs)

    def quantise(self, folder: Path, exact: Engine, examples: Sequence[Example]) -> None:
        """Write the graphs with 8-bit products, scaled by what the bundle in float32 reads of examples."""
        save_graph(folder / INT8.reader, quantise_reader(self.trained, examples))
        if self._generator_inputs is None:
            raise RuntimeError("the float32 graphs come first")
        step = quantise_step(self.trained.network, self._generator_inputs, exact, examples)
        save_graph(folder / INT8.decoder_step, step)


class WordsModel:
    """The paper's network, over words with vectors."""

    reader: Final = "words"

    def __init__(self, network: Network) -> None:
        self.network, self.config = network, network.mqan.config
        self.graphs: Mapping[m.Device, m.Graphs] = {"cpu": FLOAT32, "cuda": FLOAT32}
        self.sizes = {"reader_width": network.embedder.width, "num_generated": network.vocabulary.num_generated}

    def write(self, folder: Path) -> None:
        step = trace_step(GreedyStep(self.network.mqan.decoder), WORDS_OPSET)
        for name, model in ((FLOAT32.reader, trace_words(self.network)), (FLOAT32.decoder_step, step)):
            save_graph(folder / name, model)
            onnx.checker.check_model(str(folder / name))
        vectors, ngrams = self.network.embedder.vectors, self.network.embedder.ngrams.weight.detach().numpy()
        lists = {"pieces": self.network.vocabulary.pieces[1:], "words": vectors.words}
        (folder / m.VOCABULARY).write_text(json.dumps(lists, ensure_ascii=False), encoding="utf-8")
        half = as_half(ngrams)
        tensors: dict[str, npt.NDArray[np.generic]] = {
            "rows": vectors.rows,
            "scales": vectors.scales,
            "ngrams": ngrams if half is None else half,
        }
        save_file(tensors, str(folder / m.VECTORS))

    def answer(self, requests: Sequence[Request], limit: int) -> list[Answer]:
        return self.network.greedy_answers(requests, limit)


def manifest_of(model: PiecesModel | WordsModel, name: str, version: str, training: Mapping[str, object]) -> m.Manifest:
    of_decoder = {size: getattr(model.config, size) for size in ("width", "num_layers", "num_heads", "head_width")}
    sizes, most, has_text = m.Sizes(**of_decoder, **model.sizes), model.config.max_positions, model.reader == "pieces"
    graphs = model.graphs
    return m.Manifest(name, version, model.reader, sizes, most, graphs, training=training, has_text_vector=has_text)


def export_bundle(
    checkpoint: Checkpoint, folder: Path, examples: Sequence[Example], *, name: str, version: str, model_card: str
) -> Parity:
    """Write a bundle and check that it computes what the checkpoint does; the manifest is written only if it does.

    What the folder has of an earlier bundle is replaced. 8-bit products take their scales from the examples, with which
    parity is checked, too. After a ParityError, or a ValueError for a bundle that is too large or examples of which
    none can be read, it is left without a manifest. Nothing is written without examples, of an ablation of the paper's
    table 2 (ValueError), or with a name or version that no bundle may have (BundleError).
    """
    m.check_names(name, version)
    if not examples:
        raise ValueError(NO_EXAMPLES)
    model, training = _model_of(checkpoint)
    folder = folder.resolve()  # a name to put another beside it; "." has none
    folder.mkdir(parents=True, exist_ok=True)
    (folder / m.MANIFEST).unlink(missing_ok=True)
    (folder / m.MODEL_CARD).write_text(model_card, encoding="utf-8")
    model.write(folder)
    manifest = manifest_of(model, name, version, training)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.unchecked-", dir=folder.parent) as name_of_aside:

        def open_aside(precision: Precision) -> Engine:
            aside = shutil.copytree(folder, Path(name_of_aside), dirs_exist_ok=True)
            write_manifest(aside, manifest)
            return Engine(open_bundle(aside), provider="cpu", precision=precision)

        exact = open_aside("float32")
        report, answers = check_parity(model.answer, exact, examples)
        if isinstance(model, WordsModel):
            report = check_words_reader(report, model.network, exact, examples)
        else:
            model.quantise(folder, exact, examples)
            manifest = replace(manifest, graphs={"cpu": INT8, "cuda": FLOAT32})
            num_bytes = sum((folder / name).stat().st_size for name in manifest.expected_files)
            if num_bytes > MOST_BYTES:
                raise ValueError(f"{folder}: the bundle has {num_bytes:,} bytes, at most {MOST_BYTES:,} are allowed")
            report = agreement(report, answers, open_aside("int8"), examples)
    write_manifest(folder, manifest)
    return report


def _model_of(checkpoint: Checkpoint) -> tuple[PiecesModel | WordsModel, dict[str, Any]]:
    recipe = checkpoint.recipe
    training: dict[str, Any] = {"recipe": recipe.name, "steps": checkpoint.step}
    if isinstance(recipe.reader, PiecesConfig):
        model: PiecesModel | WordsModel = PiecesModel(load_trained(checkpoint))
        training |= {"batch_pieces": recipe.batch_size, "model": recipe.pieces.decoder.model_dump()}
    else:
        config = recipe.words.model
        if not (config.coattention and config.question_pointer):
            raise ValueError(
                "ablations of the paper's table 2 (model.coattention or model.question_pointer is false) are not "
                "exported: score the checkpoint itself with `mqan evaluate --checkpoint`"
            )
        network = load_network(checkpoint)
        round_weights(network)
        model = WordsModel(network)
        training["model"] = asdict(config)
    training |= {name: value for name, value in checkpoint.training.items() if name != "tasks_before"}
    training["tasks"] = checkpoint.all_tasks()
    if (began := Path(str(training.get("began_from", "")))).is_absolute():  # a folder of this machine
        training["began_from"] = "/".join(began.parts[-2:])
    return model, training


@torch.no_grad()
def round_weights(network: nn.Module) -> None:
    """Round all weights of a network to numbers that float16 holds, in place; refuse those that are too large."""
    for name, parameter in network.named_parameters():
        rounded = parameter.half().to(parameter.dtype)
        if not bool(torch.isfinite(rounded).all()):
            raise ValueError(f"{name} holds {float(parameter.abs().max()):.3g}, which float16 cannot")
        parameter.copy_(rounded)


def round_network(network: PretrainedNetwork) -> Table:
    """Round a network's weights in place to those that its float32 graphs hold; return the vectors of its pieces."""
    round_weights(network)
    round_generator(network.decoder)
    vectors = Table(network.bert.pieces.weight)
    with torch.no_grad():
        network.decoder.positions.copy_(network.decoder.positions.half())
        network.bert.pieces.weight.copy_(vectors.whole())
    return vectors


def validation_mixture(recipe: Recipe, data: Path, number: int) -> list[Example]:
    """Return about so many validation examples of the sources that a recipe is validated on, or is trained on."""
    names = recipe.validate_sources or tuple(recipe.sources)
    asked = recipe.model_copy(update={"validate_sources": names, "validate_examples": -(-number // len(names))})
    return [example for examples in validation_of(asked, data).values() for example in examples]
