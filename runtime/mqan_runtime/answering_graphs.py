"""Names and axes of the graphs of a model with a pretrained reader: what export writes and the engine binds.

Letters: N windows, S word pieces of a window, T words of a window, M width of the reader; B requests, U slots,
C context, Q question (the separators of choices included), K room for steps of the answer, D width of the decoder,
H heads, W width of a head, E width of evidence, F fields of the trace. What the decoder keeps for each of its layers is
a tensor a layer, ``NAME_0`` and so on.
"""

from typing import Final

from mqan_core.answer.trace import TraceField
from mqan_runtime.graphs import Tensors, by_layer

NUM_FIELDS: Final = len(TraceField)  # F

# embeddings.onnx
EMBEDDINGS_INPUTS: Final[Tensors] = {"pieces": ("N", "S")}
EMBEDDINGS_OUTPUTS: Final[Tensors] = {"vectors": ("N", "S", "M")}

# reader-*.onnx: of ``mqan_core.text.layout.Window``, and the vectors of its pieces
READER_INPUTS: Final[Tensors] = {
    "vectors": ("N", "S", "M"),
    "positions": ("N", "S"),
    "segments": ("N", "S"),
    "groups": ("N", "S"),
    "firsts": ("N", "T"),
    "lasts": ("N", "T"),
}
_READER_OUTPUTS: Final[Tensors] = {
    "words": ("N", "T", "D"),  # C_fin and Q_fin
    "inputs": ("N", "T", "D"),  # what the decoder reads of a word as the previous one
    "start": ("N", "T"),  # score of a word as the first of the answer
    "end": ("N", "T"),
    "null": ("N", "NULL"),  # scores of the answer not being there, and of its not being one quotation
    "summary": ("N", "D"),  # from which the decoder's LSTM starts
    "keys": ("LAYER", "N", "H", "T", "W"),
    "values": ("LAYER", "N", "H", "T", "W"),
}
_EVIDENCE_OUTPUTS: Final[Tensors] = {
    "label_evidence": ("N", "T", "E"),  # of a word that is a choice's separator: what decides for the choice
    "word_evidence": ("N", "T", "E"),  # their product is the logit of a word deciding for it
}
NUM_NULL: Final = 2

# decoder_step-*.onnx: what stays the same during an answer, and what one step hands to the next
_STEP_CONSTANTS: Final[Tensors] = {
    "context": ("B", "C", "D"),
    "question": ("B", "Q", "D"),
    "context_mask": ("B", "C"),
    "question_mask": ("B", "Q"),
    "context_start": ("B", "C"),
    "question_start": ("B", "Q"),
    "context_end": ("B", "C"),
    "question_end": ("B", "Q"),
    "null": ("B", "NULL"),
    "pointed": ("B", "Q"),  # the words of the question that may be pointed at: all, or the separators of choices
    "allowed": ("B", "SOURCE"),  # 1 where context, question and vocabulary may be used, else 0
    "summary": ("B", "D"),
    "context_slots": ("B", "C"),
    "question_slots": ("B", "Q"),
    "slot_ids": ("B", "U"),
    "slot_inputs": ("B", "U", "D"),
    "context_keys": ("LAYER", "B", "H", "C", "W"),
    "context_values": ("LAYER", "B", "H", "C", "W"),
}
NUM_SOURCES: Final = 3
_STEP_STATE: Final[Tensors] = {  # all zeros before the first step
    "input": ("B", "D"),
    "position": ("B",),
    "finished": ("B",),
    "hidden": ("B", "D"),
    "cell": ("B", "D"),
    "context_state": ("B", "D"),
    "context_pointer": ("B", "C"),
    "question_pointer": ("B", "Q"),
    "masses": ("B", "Q"),  # what the first step gave to each word of the question, and so to each choice's separator
    "evidence": ("B", "C"),  # how the first step divided its attention over the context: where a choice was decided
    "answer_keys": ("LAYER", "B", "H", "K", "W"),
    "answer_values": ("LAYER", "B", "H", "K", "W"),
    "trace": ("B", "K", "F"),
}

DYNAMIC: Final = frozenset("NSTBUCQK")


EVIDENCE_CONSTANTS: Final[Tensors] = {"question_evidence": ("B", "Q", "E"), "context_evidence": ("B", "C", "E")}
"""The part of a request's evidence that the steps do not read."""


def reader_outputs(num_layers: int, evidence_width: int) -> Tensors:
    """Return the outputs of ``reader-*.onnx``; a width of 0: of a bundle that was made before there was evidence."""
    return {**by_layer(_READER_OUTPUTS, num_layers), **(_EVIDENCE_OUTPUTS if evidence_width else {})}


def step_constants(num_layers: int) -> Tensors:
    """Return the inputs of ``decoder_step-*.onnx`` that stay the same during an answer."""
    return by_layer(_STEP_CONSTANTS, num_layers)


def step_state(num_layers: int) -> Tensors:
    """Return the inputs of ``decoder_step-*.onnx`` that change; each has an output ``next_...``."""
    return by_layer(_STEP_STATE, num_layers)
