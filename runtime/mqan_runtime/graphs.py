"""Names and axes of the graphs: what the tracing side writes and the running side binds.

Letters: B batch, U slots, C context, Q question, J what the decoder attends to (C, or C + Q as one sequence), K room
for steps of the answer, E vector width, N windows of the contextual encoder, L words of a window, M width of its words;
the rest is fixed. What the decoder keeps for each of its layers is a tensor a layer, ``NAME_0`` and so on: out of a
stacked one each step would copy its part.
"""

from collections.abc import Mapping
from typing import Final

from mqan_core.bundle import Dimensions

Tensors = dict[str, tuple[str, ...]]

# contextual.onnx, of a bundle with a contextual encoder
CONTEXTUAL_INPUTS: Final[Tensors] = {
    "context_words": ("N", "L", "M"),
    "question_words": ("N", "Q", "M"),
    "context_lengths": ("N",),
    "question_lengths": ("N",),
}
CONTEXTUAL_OUTPUTS: Final[Tensors] = {
    "context_added": ("N", "L", "D"),
    "question_added": ("N", "Q", "D"),
}

# encoder.onnx
_ENCODER_INPUTS: Final[Tensors] = {
    "vectors": ("B", "U", "E"),
    "context_slots": ("B", "C"),
    "question_slots": ("B", "Q"),
    "context_lengths": ("B",),
    "question_lengths": ("B",),
    "context_added": ("B", "C", "D"),
    "question_added": ("B", "Q", "D"),
}
_ENCODER_OUTPUTS: Final[Tensors] = {
    "context": ("B", "C", "D"),
    "question": ("B", "Q", "D"),
    "context_keys": ("LAYER", "B", "H", "J", "W"),
    "context_values": ("LAYER", "B", "H", "J", "W"),
    "context_mask": ("B", "C"),
    "question_mask": ("B", "Q"),
    "slot_inputs": ("B", "U", "D"),
    "first_input": ("B", "D"),
    "first_hidden": ("B", "D"),
    "first_cell": ("B", "D"),
}

# Properties of an encoder that list lengths. Rows that lie on the same side of each may be encoded together: their sums
# are added in the same order, so that a row gets the numbers that it gets alone.
LONGEST_ALIKE: Final = {"context": "mqan.longest_alike_context", "question": "mqan.longest_alike_question"}

# decoder_step.onnx: what stays the same during an answer, and what one step hands to the next
_STEP_CONSTANTS: Final[Tensors] = {
    **{name: axes for name, axes in _ENCODER_OUTPUTS.items() if not name.startswith("first_")},
    "context_slots": ("B", "C"),
    "question_slots": ("B", "Q"),
    "slot_ids": ("B", "U"),
    "generator_inputs": ("V", "D"),
}
_STEP_STATE: Final[Tensors] = {
    "input": ("B", "D"),
    "position": ("B",),
    "finished": ("B",),
    "hidden": ("B", "D"),
    "cell": ("B", "D"),
    "context_state": ("B", "D"),
    "pointer": ("B", "C"),
    "coverage": ("B", "C"),
    "answer_keys": ("LAYER", "B", "H", "K", "W"),
    "answer_values": ("LAYER", "B", "H", "K", "W"),
    "trace": ("B", "K", "F"),
}


def encoder_inputs(dimensions: Dimensions) -> Tensors:
    """Return the inputs of ``encoder.onnx``."""
    added = CONTEXTUAL_OUTPUTS if not dimensions.contextual_width else ()
    return {name: axes for name, axes in _ENCODER_INPUTS.items() if name not in added}


def encoder_outputs(num_layers: int) -> Tensors:
    """Return the outputs of ``encoder.onnx``."""
    return by_layer(_ENCODER_OUTPUTS, num_layers)


def step_constants(num_layers: int) -> Tensors:
    """Return the inputs of ``decoder_step.onnx`` that stay the same during an answer."""
    return by_layer(_STEP_CONSTANTS, num_layers)


def step_state(dimensions: Dimensions) -> Tensors:
    """Return the inputs of ``decoder_step.onnx`` that change; each has an output ``next_...``."""
    is_kept = {"pointer": dimensions.moves_pointer, "coverage": dimensions.keeps_coverage}
    tensors = {name: axes for name, axes in _STEP_STATE.items() if is_kept.get(name, True)}
    return by_layer(tensors, dimensions.num_layers)


def by_layer(tensors: Mapping[str, tuple[str, ...]], num_layers: int) -> Tensors:
    """Return tensors with one for each layer in the place of those that have the axis LAYER."""
    named: Tensors = {}
    for name, axes in tensors.items():
        if axes[0] == "LAYER":
            named.update({f"{name}_{i}": axes[1:] for i in range(num_layers)})
        else:
            named[name] = axes
    return named


NEXT: Final = "next_"  # prefix of the state's names as outputs of the step

DYNAMIC_AXES: Final = frozenset("BUCQJKNL")

# numpy types of the tensors that are not float32
TYPES: Final[dict[str, str]] = {
    "context_slots": "int64",
    "question_slots": "int64",
    "context_lengths": "int64",
    "question_lengths": "int64",
    "slot_ids": "int64",
    "position": "int64",
    "best_ids": "int64",
    "finished": "bool",
    "pointed": "bool",
    "context_mask": "bool",
    "question_mask": "bool",
}
