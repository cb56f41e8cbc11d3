"""The greedy loop over a bundle's graphs: token ids and vectors in, trace out. Knows no text.

Buffers are allocated once a batch and bound once: the encoder writes what the step reads, and the step's state lies in
two sets of buffers that take turns (an output may not be bound onto an input that is still being read). The caches of
the answer start with little room and grow, so that a one-word answer does not pay for a long one.

Shape letters as in ``graphs.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.attribution import TraceField
from mqan_core.bundle import Dimensions
from mqan_export.graphs import ENCODER_INPUTS, NEXT, TYPES, encoder_outputs, step_constants, step_state

Array = npt.NDArray[np.generic]
Buffers = dict[str, Array]

_FIRST_ROOM = 8  # steps there is room for at first
_ROOM_GROWTH = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded requests.

    Attributes:
        inputs: the encoder's inputs by name.
        slot_ids: generator id of each slot, V where it has none, int64 [B, U].
        max_tokens: most answer tokens of each row, [B].
    """

    inputs: Mapping[str, Array]
    slot_ids: npt.NDArray[np.int64]
    max_tokens: npt.NDArray[np.int64]


class GreedyLoop:
    """Runs batches through the encoder and the decoding step. Not thread-safe.

    Args:
        encoder: session of ``encoder.onnx``.
        step: session of ``decoder_step.onnx``.
        dimensions: sizes of the graphs.
        generator_vectors: input vectors of the generator's pieces, float32 [V, E].
    """

    def __init__(
        self,
        encoder: onnxruntime.InferenceSession,
        step: onnxruntime.InferenceSession,
        dimensions: Dimensions,
        generator_vectors: npt.NDArray[np.float32],
    ) -> None:
        self._encoder = encoder
        self._step = step
        self._sizes = {
            "D": dimensions.width,
            "H": dimensions.num_heads,
            "W": dimensions.head_width,
            "V": dimensions.num_generated,
            "E": dimensions.vector_width,
            "F": len(TraceField),
        }
        self._joined = dimensions.joined
        self._encoder_outputs = encoder_outputs(dimensions.num_layers)
        self._step_constants = step_constants(dimensions.num_layers)
        self._step_state = step_state(dimensions.num_layers)
        self._generator_inputs = self._project(generator_vectors)

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Decode until every row has ended or reached its most tokens; return the trace [B, steps, F]."""
        sizes = self._sizes_of(batch.inputs)
        encoded = self._encode(batch.inputs, sizes)
        constants: dict[str, Array] = {
            **{name: array for name, array in encoded.items() if name in self._step_constants},
            "context_slots": batch.inputs["context_slots"],
            "question_slots": batch.inputs["question_slots"],
            "slot_ids": batch.slot_ids,
            "generator_inputs": self._generator_inputs,
        }
        max_steps = int(batch.max_tokens.max()) + 1  # one more than tokens, for the end
        sizes["K"] = min(_FIRST_ROOM, max_steps)
        state = self._first_state(encoded, sizes)
        taken = 0
        while True:
            state, taken = self._run_steps(constants, state, sizes, taken, batch.max_tokens)
            if _all_done(state, batch.max_tokens, taken):
                trace: npt.NDArray[np.float32] = state["trace"][:, :taken].copy()  # type: ignore[assignment]
                return trace
            sizes["K"] = min(sizes["K"] * _ROOM_GROWTH, max_steps)
            state = self._grow(state, sizes)

    def encode(self, batch: Batch) -> Buffers:
        """Return the encoder's outputs for a batch, for comparing with another implementation."""
        return self._encode(batch.inputs, self._sizes_of(batch.inputs))

    def _run_steps(
        self,
        constants: Mapping[str, Array],
        state: Buffers,
        sizes: Mapping[str, int],
        taken: int,
        max_tokens: npt.NDArray[np.int64],
    ) -> tuple[Buffers, int]:
        """Take steps until all rows are done or the room is used up; return the state and the steps taken so far."""
        other = _allocate(self._step_state, sizes)
        pairs = ((state, other), (other, state))
        bindings = [self._bind_step(constants, before, after) for before, after in pairs]
        turn = 0
        while taken < sizes["K"] and not _all_done(state, max_tokens, taken):
            self._step.run_with_iobinding(bindings[turn])
            state = pairs[turn][1]
            turn = 1 - turn
            taken += 1
        return state, taken

    def _bind_step(
        self, constants: Mapping[str, Array], before: Mapping[str, Array], after: Mapping[str, Array]
    ) -> onnxruntime.IOBinding:
        binding = self._step.io_binding()
        for name in self._step_constants:
            _bind_input(binding, name, constants[name])
        for name in self._step_state:
            _bind_input(binding, name, before[name])
            _bind_output(binding, NEXT + name, after[name])
        return binding

    def _encode(self, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> Buffers:
        outputs = _allocate(self._encoder_outputs, sizes)
        binding = self._encoder.io_binding()
        for name in ENCODER_INPUTS:
            _bind_input(binding, name, inputs[name])
        for name, array in outputs.items():
            _bind_output(binding, name, array)
        self._encoder.run_with_iobinding(binding)
        return outputs

    def _project(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Project vectors [V, E] to decoder inputs [V, D]: the encoder does so for the slots of any request."""
        one = np.zeros((1, 1), np.int64)
        length = np.ones(1, np.int64)
        inputs: Buffers = {
            "vectors": np.ascontiguousarray(vectors[None]),
            "context_slots": one,
            "question_slots": one,
            "context_lengths": length,
            "question_lengths": length,
        }
        outputs = self._encode(inputs, self._sizes_of(inputs))
        projected: npt.NDArray[np.float32] = outputs["slot_inputs"][0]
        return projected

    def _first_state(self, encoded: Mapping[str, Array], sizes: Mapping[str, int]) -> Buffers:
        state = _allocate(self._step_state, sizes)
        for array in state.values():
            array.fill(0)
        for name in ("input", "hidden", "cell"):
            state[name][...] = encoded["first_" + name]
        return state

    def _grow(self, state: Mapping[str, Array], sizes: Mapping[str, int]) -> Buffers:
        """Copy a state into buffers with more room for the answer."""
        grown = _allocate(self._step_state, sizes)
        for name, axes in self._step_state.items():
            if "K" not in axes:
                grown[name][...] = state[name]
                continue
            axis = axes.index("K")
            grown[name].fill(0)
            grown[name][(slice(None),) * axis + (slice(state[name].shape[axis]),)] = state[name]
        return grown

    def _sizes_of(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        num_rows, num_slots, _ = inputs["vectors"].shape
        context, question = inputs["context_slots"].shape[1], inputs["question_slots"].shape[1]
        attended = context + question if self._joined else context
        return {**self._sizes, "B": num_rows, "U": num_slots, "C": context, "Q": question, "J": attended}


def _allocate(tensors: Mapping[str, Sequence[str]], sizes: Mapping[str, int]) -> Buffers:
    return {
        name: np.empty([sizes[axis] for axis in axes], np.dtype(TYPES.get(name, "float32")))
        for name, axes in tensors.items()
    }


def _all_done(state: Mapping[str, Array], max_tokens: npt.NDArray[np.int64], taken: int) -> bool:
    """Whether every row has ended, or has taken the steps for its most tokens and the end."""
    return bool(np.logical_or(state["finished"], max_tokens < taken).all())


def _bind_input(binding: onnxruntime.IOBinding, name: str, array: Array) -> None:
    binding.bind_cpu_input(name, array)  # reads the array's own memory


def _bind_output(binding: onnxruntime.IOBinding, name: str, array: Array) -> None:
    binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
