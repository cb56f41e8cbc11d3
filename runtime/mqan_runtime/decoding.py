"""The greedy loop over a bundle's graphs: token ids and vectors in, trace out. Knows no text.

The encoder writes what the step reads; ``step_loop.py`` takes the steps.

Shape letters as in ``graphs.py``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.answer.trace import NUM_PLAIN_FIELDS
from mqan_core.manifest import Sizes
from mqan_runtime.denormals import denormals_as_zero
from mqan_runtime.graphs import (
    ENCODER_INPUTS,
    encoder_outputs,
    step_constants,
    step_state,
)
from mqan_runtime.session import CPU
from mqan_runtime.step_loop import FIRST_ROOM, Array, Buffers, Decoding, StepLoop, allocate, bind_input, bind_output

__all__ = ["FIRST_ROOM", "Batch", "Decoding", "GreedyLoop", "Trace"]

Trace = npt.NDArray[np.float32]

_LARGE_TOKENS = 1500  # of a batch, padding included, whose memory onnxruntime shall not keep for ever


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded requests.

    Attributes:
        slot_ids: generator id of each slot, V where it has none, int64 [B, U].
        max_tokens: most answer tokens of each row, [B].
    """

    inputs: Mapping[str, Array]
    slot_ids: npt.NDArray[np.int64]
    max_tokens: npt.NDArray[np.int64]


class GreedyLoop(StepLoop):
    """Runs batches through the encoder and the decoding step. Several threads may, each with decodings of its own.

    Args:
        encoder: session of ``encoder.onnx``.
        step: session of ``decoder_step.onnx``.
        dimensions: sizes of the graphs.
        generator_vectors: input vectors of the generator's pieces in their order, float32 [some of V, E] each time.
    """

    def __init__(
        self,
        encoder: onnxruntime.InferenceSession,
        step: onnxruntime.InferenceSession,
        dimensions: Sizes,
        generator_vectors: Iterable[npt.NDArray[np.float32]],
    ) -> None:
        super().__init__(step, step_constants(dimensions.num_layers), step_state(dimensions.num_layers))
        self._encoder = encoder
        self._sizes = {
            "D": dimensions.width,
            "H": dimensions.num_heads,
            "W": dimensions.head_width,
            "V": dimensions.num_generated,
            "E": dimensions.reader_width,
            "F": NUM_PLAIN_FIELDS,
        }
        self._has_swollen = False  # the encoder's session holds the memory of a large batch
        self._giving_back = _options_that_give_back() if encoder.get_providers() == [CPU] else None
        self._encoder_outputs = encoder_outputs(dimensions.num_layers)
        self._generator_inputs = self._project(generator_vectors)

    def start(self, batch: Batch, keys: Sequence[Any]) -> Decoding:
        """Encode a batch.

        Args:
            batch: the rows.
            keys: what the caller knows each row by; compared by identity.
        """
        sizes = self._sizes_of(batch.inputs)
        encoded = self._encode(batch.inputs, sizes)
        constants: Buffers = {
            **{name: array for name, array in encoded.items() if name in self._step_constants},
            "context_slots": batch.inputs["context_slots"],
            "question_slots": batch.inputs["question_slots"],
            "slot_ids": batch.slot_ids,
            "generator_inputs": self._generator_inputs,
        }
        decoding = self.begin(constants, keys, batch.max_tokens, sizes)
        for name in ("input", "hidden", "cell"):
            decoding.state[name][...] = encoded["first_" + name]
        return decoding

    def encode(self, batch: Batch) -> Buffers:
        """Return the encoder's outputs for a batch, for comparing with another implementation."""
        return self._encode(batch.inputs, self._sizes_of(batch.inputs))

    def _encode(self, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> Buffers:
        """Run the encoder. The first small batch after large ones lets onnxruntime give back the memory of those."""
        is_large = sizes["B"] * (sizes["C"] + sizes["Q"]) > _LARGE_TOKENS
        gives_back = self._has_swollen and not is_large
        if gives_back:
            self._has_swollen = False  # before it is so: a large run that ends meanwhile is not forgotten
        outputs = allocate(self._encoder_outputs, sizes)
        binding = self._encoder.io_binding()
        for name in ENCODER_INPUTS:
            bind_input(binding, name, inputs[name])
        for name, array in outputs.items():
            bind_output(binding, name, array)
        try:
            with denormals_as_zero():
                self._encoder.run_with_iobinding(binding, self._giving_back if gives_back else None)
        finally:
            if is_large:
                self._has_swollen = True
        return outputs

    def _project(self, vectors: Iterable[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """Project all vectors [V, E] to decoder inputs [V, D]: the encoder does so for the slots of any request."""
        one = np.zeros((1, 1), np.int64)
        length = np.ones(1, np.int64)
        projected = np.empty((self._sizes["V"], self._sizes["D"]), np.float32)
        first = 0
        for some in vectors:
            inputs: Buffers = {
                "vectors": some[None],
                "context_slots": one,
                "question_slots": one,
                "context_lengths": length,
                "question_lengths": length,
            }
            outputs = self._encode(inputs, self._sizes_of(inputs))
            projected[first : first + len(some)] = outputs["slot_inputs"][0]
            first += len(some)
        return projected

    def _sizes_of(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        num_rows, num_slots, _ = inputs["vectors"].shape
        context, question = inputs["context_slots"].shape[1], inputs["question_slots"].shape[1]
        return {**self._sizes, "B": num_rows, "U": num_slots, "C": context, "Q": question}


def _options_that_give_back() -> onnxruntime.RunOptions:
    """Return options of a run after which onnxruntime frees what it has allocated and nothing uses."""
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options
