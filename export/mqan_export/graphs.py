"""Names and axes of the two graphs: what the tracing side writes and the running side binds.

Letters: B batch, U slots, C context, Q question, K room for steps of the answer, E vector width; the rest is fixed.
"""

from typing import Final

# encoder.onnx
ENCODER_INPUTS: Final[dict[str, tuple[str, ...]]] = {
    "vectors": ("B", "U", "E"),
    "context_slots": ("B", "C"),
    "question_slots": ("B", "Q"),
    "context_lengths": ("B",),
    "question_lengths": ("B",),
}
ENCODER_OUTPUTS: Final[dict[str, tuple[str, ...]]] = {
    "context": ("B", "C", "D"),
    "question": ("B", "Q", "D"),
    "context_keys": ("L", "B", "H", "C", "W"),
    "context_values": ("L", "B", "H", "C", "W"),
    "context_mask": ("B", "C"),
    "question_mask": ("B", "Q"),
    "slot_inputs": ("B", "U", "D"),
    "first_input": ("B", "D"),
    "first_hidden": ("B", "D"),
    "first_cell": ("B", "D"),
}

# decoder_step.onnx: what stays the same during an answer, and what one step hands to the next
STEP_CONSTANTS: Final[dict[str, tuple[str, ...]]] = {
    **{name: axes for name, axes in ENCODER_OUTPUTS.items() if not name.startswith("first_")},
    "context_slots": ("B", "C"),
    "question_slots": ("B", "Q"),
    "slot_ids": ("B", "U"),
    "generator_inputs": ("V", "D"),
}
STEP_STATE: Final[dict[str, tuple[str, ...]]] = {
    "input": ("B", "D"),
    "position": ("B",),
    "finished": ("B",),
    "hidden": ("B", "D"),
    "cell": ("B", "D"),
    "context_state": ("B", "D"),
    "answer_keys": ("B", "L", "H", "K", "W"),
    "answer_values": ("B", "L", "H", "K", "W"),
    "trace": ("B", "K", "F"),
}
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
    "context_mask": "bool",
    "question_mask": "bool",
}
