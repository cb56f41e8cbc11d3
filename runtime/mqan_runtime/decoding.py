"""The greedy loop over a bundle's graphs: token ids and vectors in, trace out. Knows no text.

Rows decode together in a ``Decoding``; a row leaves it at the step that ends it, and the rows of several decodings can
go on as one. Buffers are allocated and bound once for many steps: the encoder writes what the step reads, and the
step's state lies in two sets of buffers that take turns (an output may not be bound onto an input that is still being
read). The caches of the answer start with little room and grow, so that a one-word answer does not pay for a long one.

Shape letters as in ``graphs.py``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.attribution import NUM_PLAIN_FIELDS
from mqan_core.bundle import Dimensions
from mqan_runtime.denormals import denormals_as_zero
from mqan_runtime.graphs import (
    LONGEST_ALIKE,
    NEXT,
    TYPES,
    encoder_inputs,
    encoder_outputs,
    step_constants,
    step_state,
)
from mqan_runtime.session import CPU

Array = npt.NDArray[np.generic]
Trace = npt.NDArray[np.float32]
Buffers = dict[str, Array]

FIRST_ROOM: Final = 8  # steps that a decoding has room for at first
_ROOM_GROWTH = 4
_LARGE_TOKENS = 1500  # of a batch, padding included, whose memory onnxruntime shall not keep for ever


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

    def rows(self, rows: npt.NDArray[np.intp]) -> "Batch":
        """Return some rows, no longer than the longest of them."""
        inputs = {name: array[rows] for name, array in self.inputs.items()}
        for part in ("context", "question"):
            longest = int(inputs[f"{part}_lengths"].max())
            for name in (f"{part}_slots", f"{part}_added"):
                if name in inputs:
                    inputs[name] = np.ascontiguousarray(inputs[name][:, :longest])
        return Batch(inputs, self.slot_ids[rows], self.max_tokens[rows])


@dataclass(slots=True, eq=False)
class Decoding:
    """Rows that decode together. Made and changed by a ``GreedyLoop`` only.

    Attributes:
        keys: what the caller knows each row by, [B].
        is_live: which rows have not left, [B].
        max_tokens: most answer tokens of each row, [B].
        num_steps: steps taken; of rows that came together, by those that came first.
        sizes: the axes' sizes.
        constants, state: the step's inputs.
        spare: buffers for the state after the next step; empty until they are needed.
        bindings: of the step, one a turn; empty until there are buffers to take turns with.
    """

    keys: list[Any]
    is_live: npt.NDArray[np.bool_]
    max_tokens: npt.NDArray[np.int64]
    sizes: dict[str, int]
    constants: Buffers
    state: Buffers
    num_steps: int = 0
    spare: Buffers = field(default_factory=dict)
    bindings: list[onnxruntime.IOBinding] = field(default_factory=list)

    @property
    def num_live(self) -> int:
        """Rows that have not left."""
        return int(self.is_live.sum())

    @property
    def num_tokens(self) -> int:
        """Positions of context and question that the buffers hold, padding included."""
        return self.sizes["B"] * (self.sizes["C"] + self.sizes["Q"])

    @property
    def live_keys(self) -> list[Any]:
        """Keys of the rows that have not left."""
        return [key for key, is_live in zip(self.keys, self.is_live, strict=True) if is_live]

    def drop(self, key: object) -> None:
        """Let a row leave before its end."""
        self.is_live[[known is key for known in self.keys]] = False


class GreedyLoop:
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
        dimensions: Dimensions,
        generator_vectors: Iterable[npt.NDArray[np.float32]],
    ) -> None:
        self._encoder = encoder
        self._step = step
        self._sizes = {
            "D": dimensions.width,
            "H": dimensions.num_heads,
            "W": dimensions.head_width,
            "V": dimensions.num_generated,
            "E": dimensions.vector_width,
            "F": NUM_PLAIN_FIELDS,
        }
        self._joined = dimensions.joined
        noted = encoder.get_modelmeta().custom_metadata_map
        self._longest_alike = [
            (f"{part}_lengths", int(length))
            for part, name in LONGEST_ALIKE.items()
            for length in noted.get(name, "").split()
        ]
        self._has_swollen = False  # the encoder's session holds the memory of a large batch
        self._giving_back = _options_that_give_back() if encoder.get_providers() == [CPU] else None
        self._encoder_inputs = encoder_inputs(dimensions)
        self._encoder_outputs = encoder_outputs(dimensions.num_layers)
        self._step_constants = step_constants(dimensions.num_layers)
        self._step_state = step_state(dimensions)
        self._generator_inputs = self._project(generator_vectors)

    def run(self, batch: Batch) -> list[Trace]:
        """Decode a batch to the end of every row; return the rows' traces, each [steps, F]."""
        decoding = self.start(batch, range(len(batch.max_tokens)))
        traces: dict[int, Trace] = {}
        while decoding.num_live:
            traces.update(self.step(decoding))
        return [traces[row] for row in range(len(traces))]

    def start(self, batch: Batch, keys: Sequence[Any]) -> Decoding:
        """Encode a batch.

        Args:
            batch: the rows.
            keys: what the caller knows each row by; compared by identity.
        """
        parts: list[npt.NDArray[np.intp]] = [np.arange(len(keys))]
        for lengths, longest in self._longest_alike:
            is_long = np.asarray(batch.inputs[lengths], np.int64) > longest
            parts = [kind for rows in parts for kind in (rows[is_long[rows]], rows[~is_long[rows]]) if len(kind)]
        if len(parts) == 1:
            return self._start(batch, keys)
        return self.merge([self._start(batch.rows(rows), [keys[row] for row in rows]) for rows in parts])

    def _start(self, batch: Batch, keys: Sequence[Any]) -> Decoding:
        sizes = self._sizes_of(batch.inputs)
        encoded = self._encode(batch.inputs, sizes)
        sizes["K"] = min(FIRST_ROOM, _most_steps(batch.max_tokens))
        constants: Buffers = {
            **{name: array for name, array in encoded.items() if name in self._step_constants},
            "context_slots": batch.inputs["context_slots"],
            "question_slots": batch.inputs["question_slots"],
            "slot_ids": batch.slot_ids,
            "generator_inputs": self._generator_inputs,
        }
        state = _allocate(self._step_state, sizes)
        for array in state.values():
            array.fill(0)
        for name in ("input", "hidden", "cell"):
            state[name][...] = encoded["first_" + name]
        is_live = np.ones(len(batch.max_tokens), np.bool_)
        return Decoding(list(keys), is_live, batch.max_tokens, sizes, constants, state)

    def step(self, decoding: Decoding) -> list[tuple[Any, Trace]]:
        """Take one step; return key and trace [steps, F] of the rows that it ended, which leave.

        A row ends with the end of its answer, or after the steps for its most tokens and the end.
        """
        d = decoding
        if int(d.state["position"][d.is_live].max()) == d.sizes["K"]:
            self._adopt(d, self.merge([d], room=d.sizes["K"] * _ROOM_GROWTH))
        elif d.num_live <= d.sizes["B"] // 2:
            self._adopt(d, self.merge([d]))
        if not d.bindings:
            d.spare = _allocate(self._step_state, d.sizes)
            d.bindings = [self._bind_step(d.constants, *pair) for pair in ((d.state, d.spare), (d.spare, d.state))]
        d.state["position"][~d.is_live] = 0  # who has left goes on harmlessly, but not beyond the last position
        with denormals_as_zero():
            self._step.run_with_iobinding(d.bindings[0])
        d.state, d.spare = d.spare, d.state
        d.bindings.reverse()
        d.num_steps += 1
        position: npt.NDArray[np.int64] = d.state["position"]  # type: ignore[assignment]
        ended = d.is_live & np.logical_or(d.state["finished"], d.max_tokens < position)
        d.is_live &= ~ended
        trace = d.state["trace"]
        return [(d.keys[row], trace[row, : position[row]].astype(np.float32)) for row in np.flatnonzero(ended)]

    def merge(self, decodings: Sequence[Decoding], room: int = 0) -> Decoding:
        """Return the rows of decodings that have not left as one decoding; the others are not to be used again.

        Args:
            decodings: at least one row of them has not left.
            room: steps to have room for, where any row has so many left; no less than what they have now.
        """
        parts = [(d, np.flatnonzero(d.is_live)) for d in decodings]
        parts = [(d, rows) for d, rows in parts if len(rows)]
        max_tokens = np.concatenate([d.max_tokens[rows] for d, rows in parts])
        sizes = {axis: max(d.sizes[axis] for d, _ in parts) for axis in parts[0][0].sizes}
        sizes["B"] = len(max_tokens)
        sizes["J"] = sizes["C"] + sizes["Q"] if self._joined else sizes["C"]
        sizes["K"] = max(sizes["K"], min(room, _most_steps(max_tokens)))
        whole = len(parts) == 1 and sizes["B"] == parts[0][0].sizes["B"]  # more room is all it gets
        constants = parts[0][0].constants if whole else self._gather(self._step_constants, parts, sizes)
        return Decoding(
            [d.keys[row] for d, rows in parts for row in rows],
            np.ones(sizes["B"], np.bool_),
            max_tokens,
            sizes,
            constants,
            self._gather(self._step_state, parts, sizes),
            max(d.num_steps for d, _ in parts),
        )

    def _adopt(self, decoding: Decoding, other: Decoding) -> None:
        """Make a decoding what another is."""
        for name in Decoding.__slots__:
            setattr(decoding, name, getattr(other, name))

    def _gather(
        self,
        tensors: Mapping[str, Sequence[str]],
        parts: Sequence[tuple[Decoding, npt.NDArray[np.intp]]],
        sizes: Mapping[str, int],
    ) -> Buffers:
        """Copy rows of several decodings into new buffers, padded to the widest."""
        gathered = _allocate({name: axes for name, axes in tensors.items() if "B" in axes}, sizes)
        for name, target in gathered.items():
            target.fill(sizes["V"] if name == "slot_ids" else 0)
            first = 0
            for decoding, rows in parts:
                source = {**decoding.constants, **decoding.state}[name][rows]
                into = target[first : first + len(rows)]
                for given, wanted in self._places(tensors[name][1:], decoding.sizes, sizes):
                    into[(slice(None), *wanted)] = source[(slice(None), *given)]
                first += len(rows)
        shared = parts[0][0].constants
        return {name: gathered.get(name, shared.get(name)) for name in tensors}  # type: ignore[misc]

    def _places(
        self, axes: Sequence[str], given: Mapping[str, int], wanted: Mapping[str, int]
    ) -> list[tuple[tuple[slice, ...], tuple[slice, ...]]]:
        """Return where the parts of a padded tensor lie, and where they go in a wider one.

        It is one part, but for the axis J of context and question as one sequence, each of which is padded.
        """
        whole = tuple(slice(given[axis]) for axis in axes)
        if "J" not in axes or not self._joined:
            return [(whole, whole)]
        at = axes.index("J")

        def cut(sizes: Mapping[str, int]) -> tuple[slice, slice]:
            return slice(given["C"]), slice(sizes["C"], sizes["C"] + given["Q"])

        return [
            ((*whole[:at], source, *whole[at + 1 :]), (*whole[:at], target, *whole[at + 1 :]))
            for source, target in zip(cut(given), cut(wanted), strict=True)
        ]

    def encode(self, batch: Batch) -> Buffers:
        """Return the encoder's outputs for a batch, for comparing with another implementation."""
        return self._encode(batch.inputs, self._sizes_of(batch.inputs))

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
        """Run the encoder. The first small batch after large ones lets onnxruntime give back the memory of those."""
        is_large = sizes["B"] * (sizes["C"] + sizes["Q"]) > _LARGE_TOKENS
        gives_back = self._has_swollen and not is_large
        if gives_back:
            self._has_swollen = False  # before it is so: a large run that ends meanwhile is not forgotten
        outputs = _allocate(self._encoder_outputs, sizes)
        binding = self._encoder.io_binding()
        for name in self._encoder_inputs:
            _bind_input(binding, name, inputs[name])
        for name, array in outputs.items():
            _bind_output(binding, name, array)
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
            for name in ("context_added", "question_added"):
                if name in self._encoder_inputs:
                    inputs[name] = np.zeros((1, 1, self._sizes["D"]), np.float32)
            outputs = self._encode(inputs, self._sizes_of(inputs))
            projected[first : first + len(some)] = outputs["slot_inputs"][0]
            first += len(some)
        return projected

    def _sizes_of(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        num_rows, num_slots, _ = inputs["vectors"].shape
        context, question = inputs["context_slots"].shape[1], inputs["question_slots"].shape[1]
        attended = context + question if self._joined else context
        return {**self._sizes, "B": num_rows, "U": num_slots, "C": context, "Q": question, "J": attended}


def _options_that_give_back() -> onnxruntime.RunOptions:
    """Return options of a run after which onnxruntime frees what it has allocated and nothing uses."""
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


def _allocate(tensors: Mapping[str, Sequence[str]], sizes: Mapping[str, int]) -> Buffers:
    return {
        name: np.empty([sizes[axis] for axis in axes], np.dtype(TYPES.get(name, "float32")))
        for name, axes in tensors.items()
    }


def _most_steps(max_tokens: npt.NDArray[np.int64]) -> int:
    """Return the steps that the longest answers may need: one more than tokens, for the end."""
    return int(max_tokens.max()) + 1


def _bind_input(binding: onnxruntime.IOBinding, name: str, array: Array) -> None:
    binding.bind_cpu_input(name, array)  # reads the array's own memory


def _bind_output(binding: onnxruntime.IOBinding, name: str, array: Array) -> None:
    binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
