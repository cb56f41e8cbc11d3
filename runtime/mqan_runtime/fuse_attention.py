"""Replace the many nodes of a multi-head attention (equations 22 and 23) by one of onnxruntime's own operators.

Self-attention of the encoder, whose queries, keys and values are one 8-bit product, becomes ``QAttention``; attention
over keys and values that are given becomes ``MultiHeadAttention``, and so does self-attention within blocks. All take
the mask over what is attended to, and give what it leaves out a weight of exactly 0. What does not have the expected
form stays as it is.

Shape letters: B batch, T queries, S keys, H heads, W head width, D width.
"""

from dataclasses import dataclass

import numpy as np
import onnx

from mqan_runtime.blocks import Blocks, block_of
from mqan_runtime.fuse_products import BIAS, PRODUCT, SCALES, fold_biases, scale_product
from mqan_runtime.rewrite import DOMAIN, Graph, attribute


@dataclass(frozen=True, slots=True)
class _Attention:
    """The tensors of one attention, by name."""

    queries_BTX: str  # X = H W
    keys: str  # [B, H, W, S]
    values_BHSW: str
    mask_BS: str
    output_BTX: str
    head_width: int
    block: int  # positions of a block whose words attend to each other; 0: all do


def fuse_attention(model: onnx.ModelProto) -> None:
    """Rewrite every attention, in place."""
    graph = Graph(model)
    fold_biases(graph)  # a product for queries, keys and values may have one
    for softmax in graph.nodes("Softmax"):
        found = _find(graph, softmax)
        if found is not None and not _fuse_own(graph, found) and not found.block:
            _fuse_given(graph, found)
    graph.save()


def _find(graph: Graph, softmax: onnx.NodeProto) -> _Attention | None:
    """Return the attention around a softmax, if there is one."""
    if attribute(softmax, "axis", -1) != -1:
        return None
    masked = graph.writer(softmax.input[0], "Where")
    hidden = graph.writer(masked.input[0], "Not") if masked is not None else None
    near = graph.writer(hidden.input[0], "And") if hidden is not None else None
    block = block_of(graph, near.input[1]) if near is not None else 0
    inside = near if near is not None else hidden
    mask = graph.writer(inside.input[0], "Unsqueeze") if inside is not None and block is not None else None
    scores = graph.writer(masked.input[2], "MatMul") if masked is not None else None
    scaled = graph.writer(scores.input[0], "Mul") if scores is not None else None
    weighted = graph.only_reader(softmax.output[0], "MatMul")
    heads = graph.only_reader(weighted.output[0], "Transpose") if weighted is not None else None
    output = graph.only_reader(heads.output[0], "Reshape") if heads is not None else None
    if mask is None or scores is None or scaled is None or weighted is None or output is None or block is None:
        return None
    queries, scale = _merged(graph, scaled.input[0]), graph.constants.get(scaled.input[1])
    axes = graph.constants.get(mask.input[1])
    if queries is None or scale is None or axes is None or axes.tolist() != [1, 2]:
        return None
    if weighted.input[0] != softmax.output[0]:
        return None
    head_width = round(float(scale) ** -2)
    return _Attention(queries, scores.input[1], weighted.input[1], mask.input[0], output.output[0], head_width, block)


def _merged(graph: Graph, name: str) -> str | None:
    """Return the tensor [B, T, H W] that [B, H, T, W] is a view of."""
    heads = graph.writer(name, "Transpose")
    split = graph.writer(heads.input[0], "Reshape") if heads is not None else None
    if heads is None or split is None or attribute(heads, "perm") != [0, 2, 1, 3]:
        return None
    return split.input[0]


def _fuse_own(graph: Graph, found: _Attention) -> bool:
    """Fuse an attention whose queries, keys and values are the three parts of one product; return whether it is one."""
    transposed = graph.writer(found.keys, "Transpose")
    keys = graph.writer(transposed.input[0], "Reshape") if transposed is not None else None
    parts = graph.writer(found.queries_BTX, "Split")
    product = graph.only(parts.input[0], PRODUCT) if parts is not None else None
    if transposed is None or keys is None or parts is None or product is None:
        return False
    if attribute(transposed, "perm") != [0, 2, 3, 1]:
        return False
    if list(parts.output) != [found.queries_BTX, keys.input[0], _merged(graph, found.values_BHSW)]:
        return False
    source, weight, unit, scales, middle, *rest = product.input
    width = graph.constants[scales].size
    if width % (3 * found.head_width):
        return False
    num_heads = width // (3 * found.head_width)
    inputs = list(product.input)
    scaled = graph.only_reader(found.output_BTX, "Mul")
    output = found.output_BTX
    factors_X = graph.constants.get(scaled.input[1]) if scaled is not None else None
    if scaled is not None and factors_X is not None and factors_X.shape == (width // 3,):  # of the values, then
        output = scaled.output[0]
        factors = np.concatenate([np.ones(2 * factors_X.size, np.float32), factors_X])
        inputs = scale_product(graph, product, factors, output)
    if found.block:
        graph.put(PRODUCT, inputs, list(product.output), DOMAIN)
        _attend_in_blocks(graph, found, list(parts.output), num_heads, output)
        return True
    bias = inputs[BIAS] if rest else graph.constant(f"int8.no_bias.{width}", np.zeros(width, np.float32))
    given = [source, weight, bias, unit, inputs[SCALES], graph.as_int32(found.mask_BS), middle]
    graph.put("QAttention", given, [output], DOMAIN, num_heads=num_heads)
    return True


def _attend_in_blocks(graph: Graph, found: _Attention, parts: list[str], num_heads: int, output_BTX: str) -> None:
    """Let each block attend to itself and to the two beside it; ``parts`` are queries, keys and values [B, T, X]."""
    blocks, width = Blocks(graph, found.mask_BS, found.block), num_heads * found.head_width
    queries, keys, values = parts
    given = [blocks.own(queries, width), blocks.seen(keys, width), blocks.seen(values, width), "", blocks.mask_SL]
    attended = f"{output_BTX}.blocks"
    graph.put("MultiHeadAttention", given, [attended], DOMAIN, num_heads=num_heads)
    blocks.join(attended, width, output_BTX)


def _fuse_given(graph: Graph, found: _Attention) -> None:
    """Fuse an attention over given keys and values."""
    keys = graph.writer(found.keys, "Transpose")
    width = _width(graph, found.queries_BTX)
    if keys is None or attribute(keys, "perm") != [0, 1, 3, 2] or not width or width % found.head_width:
        return
    inputs = [found.queries_BTX, keys.input[0], found.values_BHSW, "", graph.as_int32(found.mask_BS)]
    num_heads = width // found.head_width
    graph.put("MultiHeadAttention", inputs, [found.output_BTX], DOMAIN, num_heads=num_heads)


def _width(graph: Graph, name: str) -> int:
    """Return the last axis of what a product, or one of three parts of it, holds; 0 where that is not known."""
    parts = graph.writer(name, "Split")
    product = graph.writer(parts.input[0] if parts is not None else name, "MatMul")
    if product is None or product.input[1] not in graph.constants:
        return 0
    return int(graph.constants[product.input[1]].shape[1]) // (len(parts.output) if parts is not None else 1)
