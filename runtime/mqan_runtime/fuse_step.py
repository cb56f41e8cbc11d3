"""Make one step of decoding cheaper by fewer nodes, whose overhead is most of what a step of one row costs.

What does not have the expected form stays as it is.
"""

import numpy as np
import onnx

from mqan_runtime.fuse_products import gather_rows
from mqan_runtime.rewrite import Graph, attribute


def fuse_step(model: onnx.ModelProto) -> None:
    """Rewrite a step, in place."""
    for fuse in (_fuse_gates, _write_caches, gather_rows):
        graph = Graph(model)
        fuse(graph)
        graph.save()


def _fuse_gates(graph: Graph) -> None:
    """Compute the gates of the LSTM (equation 7) by one product of all that it reads."""
    for total in graph.nodes("Add"):
        pair = [graph.only(name, "Gemm") for name in total.input]
        products = [product for product in pair if product is not None]
        if len(products) != 2 or any(attribute(product, "transB", 0) != 1 for product in products):
            continue
        if any(name not in graph.constants for product in products for name in product.input[1:]):
            continue
        weights = [graph.constants[product.input[1]] for product in products]
        biases = [graph.constants[product.input[2]] for product in products if len(product.input) > 2]
        name = total.output[0]
        weight = graph.constant(f"{name}.weight", np.concatenate(weights, axis=1))
        bias = [graph.constant(f"{name}.bias", np.sum(biases, axis=0))] if biases else []
        graph.put("Concat", [product.input[0] for product in products], [f"{name}.read"], axis=-1)
        graph.put("Gemm", [f"{name}.read", weight, *bias], [name], transB=1)


def _write_caches(graph: Graph) -> None:
    """Bring the key or value of one position into the cache's order by its shape alone."""
    for written in graph.nodes("Where"):
        heads = graph.only(written.input[1], "Transpose")
        split = graph.only(heads.input[0], "Reshape") if heads is not None else None
        shape = graph.constants.get(split.input[1]) if split is not None else None
        if heads is None or split is None or shape is None or attribute(heads, "perm") != [0, 2, 1, 3]:
            continue
        batch, one, num_heads, width = shape.tolist()
        if one != 1:
            continue
        turned = graph.constant("cache.shape", np.array([batch, num_heads, one, width], np.int64))
        graph.put("Reshape", [split.input[0], turned], list(heads.output))
