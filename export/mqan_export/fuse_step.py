"""Make one step of decoding cheaper: 8-bit products with a scale a block of 32 numbers, and fewer nodes.

A step reads every weight for one position a row, so what it costs is fetching the weights, and the overhead of its
nodes. Blocks of weights have scales of their own, and onnxruntime scales what is multiplied with them row by row and
block by block, so an answer does not move with its batch-mates.

What does not have the expected form stays as it is.
"""

import numpy as np
import onnx

from mqan_core.vectors import FloatArray
from mqan_export.fuse_products import gather_rows
from mqan_export.rewrite import DOMAIN, Graph, attribute

_BLOCK = 32
_LEAST_OUTPUTS = 16  # a product with fewer is not worth it
_INT8_SUMS = 4  # accuracy_level: what is multiplied becomes 8-bit too


def fuse_step(model: onnx.ModelProto) -> None:
    """Rewrite a step, in place."""
    for fuse in (_fuse_gates, _write_caches, gather_rows, _quantize_products):
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


def _quantize_products(graph: Graph) -> None:
    """Replace products with weights, and the bias added to them."""
    for product in graph.nodes("MatMul"):
        weight_ID = graph.constants.get(product.input[1])
        if weight_ID is None or weight_ID.ndim != 2 or weight_ID.shape[1] < _LEAST_OUTPUTS:
            continue
        name, bias = product.output[0], ""
        add = graph.only_reader(name, "Add")
        if add is not None:
            other = add.input[1] if add.input[0] == name else add.input[0]
            if other in graph.constants and graph.constants[other].shape == weight_ID.shape[1:]:
                name, bias = add.output[0], other
        _put_product(graph, product.input[0], weight_ID.T, bias, name)
    for product in graph.nodes("Gemm"):
        weight_DI = graph.constants.get(product.input[1])
        if weight_DI is None or attribute(product, "transB", 0) != 1 or len(weight_DI) < _LEAST_OUTPUTS:
            continue
        if attribute(product, "transA", 0) or {attribute(product, "alpha", 1.0), attribute(product, "beta", 1.0)} != {
            1.0
        }:
            continue
        bias = product.input[2] if len(product.input) > 2 else ""
        if not bias or (bias in graph.constants and graph.constants[bias].shape == weight_DI.shape[:1]):
            _put_product(graph, product.input[0], weight_DI, bias, product.output[0])


def _put_product(graph: Graph, source: str, weight_DI: FloatArray, bias: str, output: str) -> None:
    num_outputs, num_inputs = weight_DI.shape
    padded = np.pad(weight_DI.astype(np.float32), ((0, 0), (0, -num_inputs % _BLOCK)))
    blocks_DNK = padded.reshape(num_outputs, -1, _BLOCK)  # N blocks of K
    scales_DN = np.maximum(np.abs(blocks_DNK).max(axis=2) / 127, np.finfo(np.float32).tiny)
    quantized_DNK = np.rint(blocks_DNK / scales_DN[..., None]).astype(np.int16) + 128
    weight = graph.constant(f"int8.{output}.weight", quantized_DNK.astype(np.uint8))
    scales = graph.constant(f"int8.{output}.scales", scales_DN.astype(np.float32))
    graph.put(
        "MatMulNBits",
        [source, weight, scales, *(["", "", bias] if bias else [])],
        [output],
        DOMAIN,
        K=num_inputs,
        N=num_outputs,
        bits=8,
        block_size=_BLOCK,
        accuracy_level=_INT8_SUMS,
    )
