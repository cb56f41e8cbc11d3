"""Read the weights of a bundle back, so that training can go on from it: the reverse of ``encoder`` and ``trace``."""

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from mqan_core.bundle import CONTEXTUAL, DECODER_STEP, ENCODER, MANIFEST, Bundle
from mqan_core.errors import BundleError
from mqan_export.lstm import to_torch_lstms
from mqan_export.trace import KEYS_VALUES, QUERIES, TRANSPOSED
from mqan_runtime.session import check_graph
from mqan_training.config import ModelConfig, parse
from mqan_training.model.embeddings import StaticVectors
from mqan_training.transfer import Pretrained

_STEP_PREFIX = "step.decoder."


def pretrained_of_bundle(bundle: Bundle, source: str) -> Pretrained:
    """Return what a new run can take over of a bundle: everything but the optimiser's state.

    Raises:
        BundleError: the bundle does not say how its model is configured, or lacks weights.
    """
    try:
        weights = _weights(bundle)
        model = parse(ModelConfig, bundle.manifest.training["model"], f"{source}: {MANIFEST}: model")
    except (IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise BundleError(
            f"{source}: training cannot go on from it, for its weights or its model's configuration cannot be read: "
            f"{error}"
        ) from error
    word_pieces = None if bundle.contextual is None else bundle.contextual.pieces
    vectors = StaticVectors(bundle.vocabulary.words, bundle.vectors.rows, bundle.vectors.scales, word_pieces)
    return Pretrained(source, model, bundle.vocabulary.pieces[1:], vectors, weights)


def _weights(bundle: Bundle) -> dict[str, Tensor]:
    """Return the weights by the names of ``Network``."""
    weights = _named_weights(check_graph(bundle.encoder, ENCODER))
    for name, tensor in _named_weights(check_graph(bundle.decoder_step, DECODER_STEP)).items():
        if name.startswith(_STEP_PREFIX):
            weights["mqan.decoder." + name.removeprefix(_STEP_PREFIX)] = tensor
    if bundle.contextual is not None:
        weights.update(_named_weights(check_graph(bundle.contextual.graph, CONTEXTUAL)))
    for module in [name.removesuffix(".w") for name in weights if name.endswith(".w")]:
        w, r, b = (weights.pop(module + part) for part in (".w", ".r", ".b"))
        weights.update({f"{module}.{key}": tensor for key, tensor in to_torch_lstms(w, r, b).items()})
    for attention in [name.removesuffix(QUERIES) for name in weights if name.endswith(QUERIES)]:
        parts = weights.pop(attention + QUERIES), weights.pop(attention + KEYS_VALUES)
        weights[attention + "inputs.weight"] = torch.cat(parts)
    weights["embedder.ngrams.weight"] = torch.from_numpy(np.array(bundle.vectors.ngrams))
    return weights


def _named_weights(model: onnx.ModelProto) -> dict[str, Tensor]:
    named = {}
    for initializer in model.graph.initializer:
        array = numpy_helper.to_array(initializer)
        name = initializer.name
        if name.endswith(TRANSPOSED):
            name, array = name.removesuffix(TRANSPOSED), array.T
        named[name] = torch.from_numpy(array.copy())
    return named
