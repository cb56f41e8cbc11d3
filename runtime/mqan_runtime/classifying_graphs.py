"""Names and axes of the graphs of models of fixed tasks: what export writes and the engine binds.

One text, or pair, at a time. Letters: T words, S word pieces, D width of vectors and states, H width of the LSTM,
K segments of a memory, M width of a segment, C classes.
"""

from collections.abc import Mapping
from typing import Final

from mqan_core.classifying import MemorySizes
from mqan_runtime.graphs import Tensors

PROBABILITIES: Final = "probabilities"  # [1, C]
DYNAMIC: Final = frozenset("TS")

# shared memory: encoder.onnx, and a task's step, a word
WORDS_INPUTS: Final[Tensors] = {"words": ("T",)}
WORDS_OUTPUTS: Final[Tensors] = {"vectors": ("T", "D")}
STEP_INPUTS: Final[Tensors] = {"vector": ("1", "D"), "is_first": ("1",)}  # and the state

# MT-DNN: encoder.onnx, and a task's output layer
PIECES_INPUTS: Final[Tensors] = {"pieces": ("1", "S"), "segments": ("1", "S")}
PIECES_OUTPUTS: Final[Tensors] = {"states": ("1", "S", "D")}
HEAD_INPUTS: Final[Tensors] = {"states": ("1", "S", "D"), "first": ("1", "S"), "second": ("1", "S")}


def state_shapes(sizes: MemorySizes) -> Mapping[str, tuple[int, ...]]:
    """Return what a step hands to the next, by name: zeros before the first word. Each has an output ``next_...``."""
    shapes: dict[str, tuple[int, ...]] = {"hidden": (1, sizes.hidden_width), "cell": (1, sizes.hidden_width)}
    for i in range(sizes.num_memories):
        shapes[f"content_{i}"] = (1, sizes.segments, sizes.segment_width)
        shapes[f"key_{i}"] = (1, sizes.segment_width)
    return shapes
