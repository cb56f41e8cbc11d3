"""Let each block of a long context be aligned only with what it sees: the blocks of ``SelfAlignment``.

An alignment is an attention of one head over plain products, whose first key is the dummy of a value of zeros; a word
does not attend to itself. What does not have the expected form, or has no blocks, stays as it is.

Shape letters: S blocks of all rows, K positions of a block, L positions that it sees, D width.
"""

from dataclasses import dataclass

import numpy as np
import onnx

from mqan_runtime.blocks import Blocks, block_of
from mqan_runtime.rewrite import DOMAIN, Graph, Part, attribute

_FAR = -1e9  # in the place of scores that do not count, as in the model


@dataclass(frozen=True, slots=True)
class _Alignment:
    """The tensors of an alignment, by name."""

    dummy_11D: str
    read_BTD: str
    values_BTD: str
    mask_BT: str
    output_BTD: str
    block: int


def fuse_alignment(model: onnx.ModelProto) -> None:
    """Rewrite every alignment in blocks, in place."""
    graph = Graph(model)
    for softmax in graph.nodes("Softmax"):
        found = _find(graph, softmax)
        if found is not None:
            _align_in_blocks(graph, found)
    graph.save()


def _find(graph: Graph, softmax: onnx.NodeProto) -> _Alignment | None:
    """Return the alignment around a softmax, if there is one in blocks."""
    masked = graph.writer(softmax.input[0], "Where")
    hidden = graph.writer(masked.input[0], "Not") if masked is not None else None
    shown = graph.writer(hidden.input[0], "Concat") if hidden is not None else None
    others = graph.writer(shown.input[1], "And") if shown is not None and len(shown.input) == 2 else None
    distinct = graph.writer(others.input[0], "And") if others is not None else None
    mask = graph.writer(distinct.input[1], "Unsqueeze") if distinct is not None else None
    scores = graph.writer(masked.input[2], "MatMul") if masked is not None else None
    turned = graph.writer(scores.input[1], "Transpose") if scores is not None else None
    keys = graph.writer(turned.input[0], "Concat") if turned is not None else None
    dummy = graph.writer(keys.input[0], "Expand") if keys is not None and len(keys.input) == 2 else None
    differs = graph.writer(distinct.input[0], "Not") if distinct is not None else None
    weights = graph.only_reader(softmax.output[0], "Slice")
    weighted = graph.only_reader(weights.output[0], "MatMul") if weights is not None else None
    if others is None or mask is None or scores is None or turned is None or keys is None or dummy is None:
        return None
    if weights is None or weighted is None or differs is None or graph.writer(differs.input[0], "Equal") is None:
        return None
    starts, axes = (graph.constants.get(weights.input[i], np.zeros(0)).tolist() for i in (1, 3))
    if (starts, axes) not in (([1], [2]), ([1], [-1])) or attribute(turned, "perm") != [0, 2, 1]:
        return None
    block = block_of(graph, others.input[1])
    if not block or keys.input[1] != scores.input[0] or dummy.input[0] not in graph.constants:
        return None
    if attribute(softmax, "axis", -1) not in (-1, 2) or weighted.input[1] == weights.output[0]:
        return None
    return _Alignment(dummy.input[0], scores.input[0], weighted.input[1], mask.input[0], weighted.output[0], block)


def _align_in_blocks(graph: Graph, found: _Alignment) -> None:
    blocks, width = Blocks(graph, found.mask_BT, found.block), graph.constants[found.dummy_11D].shape[-1]
    part = Part(graph, f"{found.output_BTD}.blocks")
    put, constant = part.put, part.constant
    one = constant("1", [1])
    own, seen = blocks.own(found.read_BTD, width), blocks.seen(found.read_BTD, width)
    num_blocks = put("Shape", [own], "num_blocks", start=0, end=1)
    first_S1 = put("Concat", [num_blocks, one], "first_S1", axis=0)
    first_S11 = put("Concat", [num_blocks, one, one], "first_S11", axis=0)
    dummies = put("Expand", [found.dummy_11D, first_S11], "dummies")
    nothing = put("Expand", [constant("zeros", np.zeros((1, 1, width)), np.float32), first_S11], "nothing")
    always = put("Expand", [constant("always", [[1]], np.int32), first_S1], "always_S1")
    keys = put("Concat", [dummies, seen], "keys", axis=1)
    values = put("Concat", [nothing, blocks.seen(found.values_BTD, width)], "values", axis=1)
    mask = put("Concat", [always, blocks.mask_SL], "mask", axis=1)
    # where a word's own key stands, behind the dummy and what its block sees before its own
    none = constant("0", [0])
    places_K = put("Add", [part.range(none, blocks.num_own, one, "own_places"), blocks.before], "own_seen")
    places_X = part.range(constant("-1", [-1]), blocks.num_seen, one, "key_places")  # X = L + 1
    is_own = put("Equal", [put("Unsqueeze", [places_K, one], "own_seen_K1"), places_X], "is_own")
    scores = put("Where", [is_own, constant("far", _FAR, np.float32), constant("near", 0.0, np.float32)], "own_scores")
    bias = put("Unsqueeze", [scores, constant("axes", [0, 1])], "bias")
    inputs = [own, keys, values, "", mask, bias]
    aligned = put("MultiHeadAttention", inputs, "aligned", DOMAIN, num_heads=1, scale=1.0, mask_filter_value=_FAR)
    blocks.join(aligned, width, found.output_BTD)
