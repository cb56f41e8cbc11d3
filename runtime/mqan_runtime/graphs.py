"""Names and axes of the graphs: what export writes and the engine binds.

Letters: N windows, S word pieces of a window, T words of a window, M width of what the reader reads; B requests,
U slots, C context, Q question (the separators of choices included), K room for steps of the answer, D width of the
decoder, H heads, W width of a head, E width of evidence, V generator pieces, F fields of the trace. What the decoder
keeps for each of its layers is a tensor a layer, ``NAME_0`` and so on: out of a stacked one each step would copy its
part.
"""

from collections.abc import Collection, Mapping
from typing import Final

Tensors = dict[str, tuple[str, ...]]

# embeddings.onnx
EMBEDDINGS_INPUTS: Final[Tensors] = {"pieces": ("N", "S")}
EMBEDDINGS_OUTPUTS: Final[Tensors] = {"vectors": ("N", "S", "M")}

# reader-*.onnx of word pieces: of ``mqan_core.text.layout.Window``, and the vectors of its pieces
PIECES_INPUTS: Final[Tensors] = {
    "vectors": ("N", "S", "M"),
    "positions": ("N", "S"),
    "segments": ("N", "S"),
    "groups": ("N", "S"),
    "firsts": ("N", "T"),
    "lasts": ("N", "T"),
}
_PIECES_OUTPUTS: Final[Tensors] = {
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
_TEXT_OUTPUTS: Final[Tensors] = {"text_vector": ("N", "M")}  # of length 1: what the text of a window is about

# reader-*.onnx of words
WORDS_INPUTS: Final[Tensors] = {
    "vectors": ("B", "U", "M"),
    "context_slots": ("B", "C"),
    "question_slots": ("B", "Q"),
    "context_lengths": ("B",),
    "question_lengths": ("B",),
}
WORDS_OUTPUTS: Final[Tensors] = {
    "context": ("B", "C", "D"),
    "question": ("B", "Q", "D"),
    "context_keys": ("LAYER", "B", "H", "C", "W"),
    "context_values": ("LAYER", "B", "H", "C", "W"),
    "context_mask": ("B", "C"),
    "question_mask": ("B", "Q"),
    "slot_inputs": ("B", "U", "D"),
    "first_input": ("B", "D"),  # the first state
    "first_hidden": ("B", "D"),
    "first_cell": ("B", "D"),
}

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
    "generator_inputs": ("V", "D"),
    "context_keys": ("LAYER", "B", "H", "C", "W"),
    "context_values": ("LAYER", "B", "H", "C", "W"),
}
_STEP_STATE: Final[Tensors] = {  # all zeros before the first step, but for what a reader of words writes
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
# A step leaves out what it has no use for: that of a pretrained reader looks its generator's words up itself, and that
# of the paper's network knows no scores of spans, no choices and no limits to the sources of its words.
NOT_OF_PIECES: Final = frozenset({"generator_inputs"})
NOT_OF_WORDS: Final = frozenset(
    {"context_start", "question_start", "context_end", "question_end", "null", "pointed", "allowed", "summary"}
    | {"context_pointer", "question_pointer", "masses", "evidence"}
)

NEXT: Final = "next_"  # prefix of the state's names as outputs of the step
DYNAMIC: Final = frozenset("NSTBUCQK")
FIXED: Final = {"NULL": 2, "SOURCE": 3}

# numpy types of the tensors that are not float32
TYPES: Final[dict[str, str]] = {
    **dict.fromkeys(("context_slots", "question_slots", "slot_ids", "position"), "int64"),
    **dict.fromkeys(("context_lengths", "question_lengths"), "int64"),
    **dict.fromkeys(("pieces", "positions", "segments", "groups", "firsts", "lasts"), "int64"),
    **dict.fromkeys(("finished", "pointed", "context_mask", "question_mask"), "bool"),
}


def pieces_outputs(num_layers: int, *, evidence: bool, text: bool) -> Tensors:
    """Return the outputs of a reader of word pieces, with those of evidence and of the text's vector or without."""
    outputs = by_layer(_PIECES_OUTPUTS, num_layers)
    return outputs | (_EVIDENCE_OUTPUTS if evidence else {}) | (_TEXT_OUTPUTS if text else {})


def step_constants(num_layers: int, without: Collection[str] = ()) -> Tensors:
    """Return the inputs of a step that stay the same during an answer, but for those that it leaves out."""
    return by_layer({name: axes for name, axes in _STEP_CONSTANTS.items() if name not in without}, num_layers)


def step_state(num_layers: int, without: Collection[str] = ()) -> Tensors:
    """Return the inputs of a step that change, each with an output ``next_...``, but for those that it leaves out."""
    return by_layer({name: axes for name, axes in _STEP_STATE.items() if name not in without}, num_layers)


def by_layer(tensors: Mapping[str, tuple[str, ...]], num_layers: int) -> Tensors:
    """Return tensors with one for each layer in the place of those that have the axis LAYER."""
    named: Tensors = {}
    for name, axes in tensors.items():
        if axes[0] == "LAYER":
            named.update({f"{name}_{i}": axes[1:] for i in range(num_layers)})
        else:
            named[name] = axes
    return named
