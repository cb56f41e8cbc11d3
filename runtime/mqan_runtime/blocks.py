"""Nodes that cut a long sequence into blocks, so that attention costs in proportion to its length.

Where words attend only to their own block and to the two beside it (``near_mask`` of the model), the scores of all
pairs need not be computed. A sequence of up to two blocks stays whole: all of it is near.

Shape letters: B batch, T length, N blocks, S = B N, K positions of a block, L positions that it sees, X width.
"""

from mqan_runtime.graphs import LONGEST_ALIKE
from mqan_runtime.rewrite import Graph, Part, note_length


def block_of(graph: Graph, near_TT: str) -> int | None:
    """Return the block of a mask that ``near_mask`` made; None if it is something else."""
    within = graph.writer(near_TT, "LessOrEqual")
    distances = graph.writer(within.input[0], "Abs") if within is not None else None
    differences = graph.writer(distances.input[0], "Sub") if distances is not None else None
    column = graph.writer(differences.input[0], "Unsqueeze") if differences is not None else None
    firsts = graph.writer(column.input[0], "Sub") if column is not None else None
    block = graph.constants.get(within.input[1]) if within is not None else None
    places = graph.writer(firsts.input[1], "Mod") if firsts is not None else None
    modulus = graph.constants.get(places.input[1]) if places is not None else None
    if block is None or modulus is None or block.size != 1 or block != modulus:
        return None
    return int(block.item())


class Blocks:
    """The blocks of the sequences that a mask belongs to; made again for the same mask, they are the same nodes.

    Args:
        graph: that is being rewritten.
        mask_BT: name of the mask, true inside each row's length.
        block: positions of a block.

    Attributes:
        num_own, num_seen: names of the numbers of positions that a block has, and sees, int64 [1].
        before: name of the number of positions that it sees before its own, int64 [1].
        mask_SL: name of the mask over what it sees, int32 [S, L].
    """

    def __init__(self, graph: Graph, mask_BT: str, block: int) -> None:
        self._mask_BT = mask_BT
        self._part = part = Part(graph, f"{mask_BT}.blocks")
        put = part.put
        none, one, many = part.constant("0", [0]), part.constant("1", [1]), part.constant("-1", [-1])
        self._num_rows = put("Shape", [mask_BT], "num_rows", start=0, end=1)
        self._length = put("Shape", [mask_BT], "length", start=1, end=2)
        size = part.constant("size", [block])
        note_length(graph.model, LONGEST_ALIKE["context"], 2 * block)
        is_long = put("Greater", [self._length, part.constant("most", [2 * block])], "is_long")
        self.num_own = put("Where", [is_long, size, self._length], "own")
        self.before = put("Where", [is_long, size, none], "before")
        self.num_seen = put("Add", [self.num_own, put("Add", [self.before, self.before], "beside")], "seen")
        last = put("Sub", [self._length, one], "last")
        count = put("Div", [put("Add", [last, self.num_own], "rounded_up"), self.num_own], "count")
        self._total = put("Mul", [count, self.num_own], "total")

        # the places of each block's own positions; behind the end stands the last one, which ``join`` cuts off
        own = put("Min", [part.range(none, self._total, one, "all"), last], "own_places")
        self._own_NK = put("Reshape", [own, put("Concat", [many, self.num_own], "own_shape", axis=0)], "own_NK")

        # the places of those that it sees; for those outside of the sequence stand its ends, masked
        firsts = put("Unsqueeze", [part.range(none, self._total, self.num_own, "firsts"), one], "firsts_N1")
        offsets = put("Sub", [part.range(none, self.num_seen, one, "steps"), self.before], "offsets")
        places = put("Add", [firsts, offsets], "places")
        self._seen_NL = put("Min", [put("Max", [places, none], "not_before"), last], "seen_NL")
        inside = put("Equal", [places, self._seen_NL], "inside")
        rows = put("Gather", [mask_BT, self._seen_NL], "mask_BNL", axis=1)
        visible = graph.as_int32(put("And", [rows, inside], "visible"))
        shape = put("Concat", [many, self.num_seen], "mask_shape", axis=0)
        self.mask_SL = put("Reshape", [visible, shape], "mask")

    def own(self, source_BTX: str, width: int) -> str:
        """Return what each block has of a sequence, [S, K, X]."""
        return self._gathered(source_BTX, self._own_NK, self.num_own, width, "own")

    def seen(self, source_BTX: str, width: int) -> str:
        """Return what each block sees of a sequence, [S, L, X]."""
        return self._gathered(source_BTX, self._seen_NL, self.num_seen, width, "seen")

    def join(self, blocks_SKX: str, width: int, output_BTX: str) -> None:
        """Write the blocks as one sequence again."""
        part = Part(self._part.graph, blocks_SKX)
        shape = part.put(
            "Concat", [self._num_rows, self._total, self._part.constant(str(width), [width])], "shape", axis=0
        )
        joined = part.put("Reshape", [blocks_SKX, shape], "joined")
        ends = [self._part.constant("0", [0]), self._length, self._part.constant("1", [1])]
        part.graph.put("Slice", [joined, *ends], [output_BTX])

    def _gathered(self, source: str, places: str, size: str, width: int, kind: str) -> str:
        part = Part(self._part.graph, f"{self._mask_BT}.{kind}.{source}")
        gathered = part.put("Gather", [source, places], "gathered", axis=1)
        many, last = self._part.constant("-1", [-1]), self._part.constant(str(width), [width])
        return part.put("Reshape", [gathered, part.put("Concat", [many, size, last], "shape", axis=0)], "blocks")
