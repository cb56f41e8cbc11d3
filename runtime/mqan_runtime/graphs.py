"""Names and axes of the graphs: what the tracing side writes and the running side binds.

Letters: B batch, U slots, C context, Q question, K room for steps of the answer, E vector width; the rest is fixed.
What the decoder keeps for each of its layers is a tensor a layer, ``NAME_0`` and so on: out of a stacked one each step
would copy its part.
"""

from collections.abc import Mapping
from typing import Final

Tensors = dict[str, tuple[str, ...]]

# encoder.onnx
ENCODER_INPUTS: Final[Tensors] = {
    "vectors": ("B", "U", "E"),
    "context_slots": ("B", "C"),
    "question_slots": ("B", "Q"),
    "context_lengths": ("B",),
    "question_lengths": ("B",),
}
_ENCODER_OUTPUTS: Final[Tensors] = {
    "context": ("B", "C", "D"),
    "question": ("B", "Q", "D"),
    "context_keys": ("LAYER", "B", "H", "C", "W"),
    "context_values": ("LAYER", "B", "H", "C", "W"),
    "context_mask": ("B", "C"),
    "question_mask": ("B", "Q"),
    "slot_inputs": ("B", "U", "D"),
    "first_input": ("B", "D"),
    "first_hidden": ("B", "D"),
    "first_cell": ("B", "D"),
}

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
    "answer_keys": ("LAYER", "B", "H", "K", "W"),
    "answer_values": ("LAYER", "B", "H", "K", "W"),
    "trace": ("B", "K", "F"),
}


def encoder_outputs(num_layers: int) -> Tensors:
    """Return the outputs of ``encoder.onnx``."""
    return by_layer(_ENCODER_OUTPUTS, num_layers)


def step_constants(num_layers: int) -> Tensors:
    """Return the inputs of ``decoder_step.onnx`` that stay the same during an answer."""
    return by_layer(_STEP_CONSTANTS, num_layers)


def step_state(num_layers: int) -> Tensors:
    """Return the inputs of ``decoder_step.onnx`` that change; each has an output ``next_...``."""
    return by_layer(_STEP_STATE, num_layers)


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

DYNAMIC_AXES: Final = frozenset("BUCQK")

# numpy types of the tensors that are not float32
TYPES: Final[dict[str, str]] = {
    "context_slots": "int64",
    "question_slots": "int64",
    "context_lengths": "int64",
    "question_lengths": "int64",
    "slot_ids": "int64",
    "position": "int64",
    "finished": "bool",
    "pointed": "bool",
    "context_mask": "bool",
    "question_mask": "bool",
}
