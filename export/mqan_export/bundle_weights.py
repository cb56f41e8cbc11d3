"""The weights of a bundle with a pretrained reader, read back out of its graphs, to train on from.

The graphs hold matrices rounded to float16, and word pieces and the generator's words rounded to 8 bits with one scale
a row. A matrix that stands on the right of a product is there transposed and without its name. Those come in the order
in which the network uses them, by which they are told here.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from mqan_core.bundle import open_bundle
from mqan_core.errors import BundleError
from mqan_core.manifest import EMBEDDINGS
from mqan_core.text.vocab import NUM_SPECIAL
from mqan_training.start import Start

_HALF = ".half"
_OF_READER = {"word.": "project.", "projection.": "decoder.projection."}
_DECODER = "step.decoder."
_LAYER_PRODUCTS = (
    "self_attention.inputs",
    "self_attention.output",
    "context_attention.output",
    "ffn.inner",
    "ffn.outer",
)


def start_from_bundle(folder: Path) -> Start:
    """Return what a run needs to go on from a bundle with a pretrained reader: float32 weights and generator pieces.

    BundleError: there is no such bundle, a file is not what the manifest says, or graphs are not of this version.
    """
    bundle = open_bundle(folder)
    if bundle.manifest.reader != "pieces":
        raise BundleError(f"bundle {folder}: has no pretrained reader")
    graphs = bundle.manifest.graphs["cuda"]  # those that are not of 8 bits
    reader, step, table = (
        _initializers(bundle.read_graph(n)) for n in (graphs.reader, graphs.decoder_step, EMBEDDINGS)
    )
    try:
        arrays = {"bert.pieces.weight": _table(table), **_reader(reader), **_decoder(step)}
    except (KeyError, ValueError) as error:
        raise BundleError(f"bundle {folder}: its graphs are not those that this version exports: {error}") from error
    weights = {name: torch.from_numpy(np.array(array, np.float32)) for name, array in arrays.items()}
    origin = f"{bundle.manifest.name} {bundle.manifest.version}"
    tasks = tuple(bundle.manifest.training.get("tasks", ()))
    return Start(weights, tuple(bundle.vocabulary.pieces[NUM_SPECIAL:]), origin, tasks)


def _initializers(graph: bytes) -> dict[str, np.ndarray]:
    tensors = onnx.load_model_from_string(graph).graph.initializer
    return {tensor.name.removesuffix(_HALF): numpy_helper.to_array(tensor) for tensor in tensors}


def _table(found: Mapping[str, np.ndarray]) -> np.ndarray:
    rows = [array for array in found.values() if array.dtype == np.int8 and array.ndim == 2]
    scales = [array for array in found.values() if array.dtype == np.float32 and array.ndim == 1]
    if len(rows) != 1 or len(scales) != 1:
        raise ValueError(f"{EMBEDDINGS} holds no table of 8 bits with one scale a row")
    table: np.ndarray = rows[0].astype(np.float32) * scales[0][:, None]
    return table


def _unnamed(found: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the matrices without a name, in the order of the graph, as a linear layer has them."""
    numbers = {int(name.removeprefix("val_")): array for name, array in found.items() if name.startswith("val_")}
    is_matrix = {n: a for n, a in numbers.items() if a.ndim == 2 and a.dtype.kind == "f"}
    return [is_matrix[number].T for number in sorted(is_matrix)]


def _reader(found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    named = {name: array for name, array in found.items() if not name.startswith(("val_", "contexts."))}
    num_layers = 1 + max(int(name.split(".")[1]) for name in named if name.startswith("layers."))
    products = ("inputs", "attention_output", "inner", "outer")
    names = [f"layers.{layer}.{product}.weight" for layer in range(num_layers) for product in products]
    names += ["word.weight", "span.weight", "similarity.map.weight", "projection.weight"]
    names += ["evidence.weight"] if "evidence.bias" in named else []
    named |= dict(zip(names, _unnamed(found), strict=True))
    weights: dict[str, np.ndarray] = {}
    for name, array in named.items():
        if ".inputs." in name:
            for part, own in zip(("query", "key", "value"), np.split(array, 3), strict=True):
                weights["bert." + name.replace("inputs", part)] = own
        elif name.startswith("evidence."):
            for part, own in zip(("label", "word"), np.split(array, 2), strict=True):
                weights[name.replace("evidence", f"evidence.{part}")] = own
        elif name.startswith(("positions.", "segments.", "norm.", "layers.")):
            weights["bert." + name] = array
        else:
            own_name = next((_OF_READER[p] + name.removeprefix(p) for p in _OF_READER if name.startswith(p)), name)
            weights[own_name] = array
    return weights


def _decoder(found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    weights = {name.removeprefix("step."): a for name, a in found.items() if name.startswith(_DECODER)}
    rows = weights.pop("decoder.generator.rows").astype(np.float32)
    scales = [a for name, a in found.items() if a.ndim == 2 and a.shape[1] == 1 and name.startswith("unsqueeze")]
    [weights["decoder.generator.weight"]] = (rows * scale for scale in scales)  # an axis more, by the exporter
    weights.pop("decoder.positions")
    layers = sorted({name.split(".")[2] for name in weights if name.startswith("decoder.layers.")}, key=int)
    names = [f"decoder.layers.{layer}.{product}.weight" for layer in layers for product in _LAYER_PRODUCTS]
    return weights | dict(zip(names, _unnamed(found), strict=True))
