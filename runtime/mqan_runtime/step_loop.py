"""Rows that decode together, and the loop that takes their steps. Knows no text, and not what encoded them.

A row leaves a ``Decoding`` at the step that ends it, and the rows of several decodings can go on as one. Buffers are
allocated and bound once for many steps: the step's state lies in two sets of buffers that take turns (an output may not
be bound onto an input that is still being read). The caches of the answer start with little room and grow, so that a
one-word answer does not pay for a long one.

Shape letters as in ``graphs.py`` and ``answering_graphs.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_runtime.denormals import denormals_as_zero
from mqan_runtime.graphs import NEXT, TYPES

Array = npt.NDArray[np.generic]
Buffers = dict[str, Array]
Axes = Mapping[str, Sequence[str]]

FIRST_ROOM: Final = 8  # steps that a decoding has room for at first
_ROOM_GROWTH = 4


@dataclass(slots=True, eq=False)
class Decoding:
    """Rows that decode together. Made and changed by a ``StepLoop`` only.

    Attributes:
        keys: what the caller knows each row by, [B].
        is_live: which rows have not left, [B].
        max_tokens: most answer tokens of each row, [B].
        num_steps: steps taken; of rows that came together, by those that came first.
        spare: buffers for the state after the next step; empty until they are needed.
        bindings: of the step, the next turn's first; made when they are needed.
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

    def shrink_to(self, other: "Decoding") -> None:
        """Go on with the rows and buffers of another, which is made of this one's live rows."""
        self.keys, self.is_live, self.max_tokens = other.keys, other.is_live, other.max_tokens
        self.sizes, self.constants, self.state = other.sizes, other.constants, other.state
        self.spare, self.bindings = {}, []


class StepLoop:
    """Takes the steps of decodings. Several threads may, each with decodings of its own.

    Args:
        step: session of the decoding step.
        constants: names and axes of what stays the same during an answer.
        state: names and axes of what one step hands to the next.
    """

    def __init__(self, step: onnxruntime.InferenceSession, constants: Axes, state: Axes) -> None:
        self._step = step
        self._step_constants = constants
        self._step_state = state

    def begin(
        self, constants: Buffers, keys: Sequence[Any], max_tokens: npt.NDArray[np.int64], sizes: dict[str, int]
    ) -> Decoding:
        """Return rows before their first step, their state all zeros.

        Args:
            constants: what stays the same during their answers.
            keys: what the caller knows each row by; compared by identity.
            max_tokens: most answer tokens of each row, [B].
            sizes: the axes' sizes but for K.
        """
        sizes = {**sizes, "K": min(FIRST_ROOM, most_steps(max_tokens))}
        state = allocate(self._step_state, sizes)
        for array in state.values():
            array.fill(0)
        return Decoding(list(keys), np.ones(len(keys), np.bool_), max_tokens, sizes, constants, state)

    def step(self, decoding: Decoding) -> list[tuple[Any, Any]]:
        """Take one step; return the keys of the rows that it ended, which leave, and what ``hand_out`` says of them.

        A row ends with the end of its answer, or after the steps for its most tokens and the end.
        """
        d = decoding
        if int(d.state["position"][d.is_live].max()) == d.sizes["K"]:
            d.shrink_to(self.merge([d], room=d.sizes["K"] * _ROOM_GROWTH))
        elif d.num_live <= d.sizes["B"] // 2:
            d.shrink_to(self.merge([d]))
        if len(d.bindings) < 2:  # the second is made at the second step, which a choice never takes
            d.spare = d.spare or allocate(self._step_state, d.sizes)
            d.bindings.insert(0, self._bind_step(d.constants, d.state, d.spare))
        d.state["position"][~d.is_live] = 0  # who has left goes on harmlessly, but not beyond the last position
        with denormals_as_zero():
            self._step.run_with_iobinding(d.bindings[0])
        d.state, d.spare = d.spare, d.state
        if len(d.bindings) == 2:
            d.bindings.reverse()
        d.num_steps += 1
        self.watch(d)
        ended = d.is_live & self.ended(d.state, d.max_tokens)
        d.is_live &= ~ended
        return [(d.keys[row], self.hand_out(d.state, int(row))) for row in np.flatnonzero(ended)]

    def watch(self, decoding: Decoding) -> None:
        """Look at the rows that took a step, before those that it ended leave; here nothing is looked at."""

    def ended(self, state: Mapping[str, Array], max_tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which rows have ended, or have taken all their steps, [B]."""
        position: npt.NDArray[np.int64] = state["position"]  # type: ignore[assignment]
        return np.logical_or(state["finished"], max_tokens < position)

    def hand_out(self, state: Mapping[str, Array], row: int) -> Any:
        """Return of a row that has ended what its answer is made of: its trace, float32 [steps, F]."""
        return read_trace(state, row)

    def trace_so_far(self, decoding: Decoding, row: int) -> npt.NDArray[np.float32]:
        """Return what a row that has not left has chosen, [steps, F]."""
        return read_trace(decoding.state, row)

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
        sizes["K"] = max(sizes["K"], min(room, most_steps(max_tokens)))
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

    def _gather(
        self, tensors: Axes, parts: Sequence[tuple[Decoding, npt.NDArray[np.intp]]], sizes: Mapping[str, int]
    ) -> Buffers:
        """Copy rows of several decodings into new buffers, padded to the widest."""
        gathered = allocate({name: axes for name, axes in tensors.items() if "B" in axes}, sizes)
        for name, target in gathered.items():
            target.fill(sizes["V"] if name == "slot_ids" else 0)
            first = 0
            for decoding, rows in parts:
                source = {**decoding.constants, **decoding.state}[name][rows]
                filled = tuple(slice(decoding.sizes[axis]) for axis in tensors[name][1:])
                target[(slice(first, first + len(rows)), *filled)] = source[(slice(None), *filled)]
                first += len(rows)
        shared = parts[0][0].constants
        return {name: gathered.get(name, shared.get(name)) for name in tensors}  # type: ignore[misc]

    def _bind_step(
        self, constants: Mapping[str, Array], before: Mapping[str, Array], after: Mapping[str, Array]
    ) -> onnxruntime.IOBinding:
        binding = self._step.io_binding()
        for name in self._step_constants:
            bind_input(binding, name, constants[name])
        for name in self._step_state:
            bind_input(binding, name, before[name])
            bind_output(binding, NEXT + name, after[name])
        return binding


def allocate(tensors: Axes, sizes: Mapping[str, int]) -> Buffers:
    """Return arrays of tensors' shapes, not filled."""
    return {
        name: np.empty([sizes[axis] for axis in axes], np.dtype(TYPES.get(name, "float32")))
        for name, axes in tensors.items()
    }


def read_trace(state: Mapping[str, Array], row: int) -> npt.NDArray[np.float32]:
    """Return what the steps of a row chose, [steps, F]."""
    return state["trace"][row, : int(state["position"][row])].astype(np.float32)


def most_steps(max_tokens: npt.NDArray[np.int64]) -> int:
    """Return the steps that the longest answers may need: one more than tokens, for the end."""
    return int(max_tokens.max()) + 1


def bind_input(binding: onnxruntime.IOBinding, name: str, array: Array) -> None:
    """Bind an array that lies on the host; onnxruntime reads the array's own memory."""
    binding.bind_cpu_input(name, array)


def bind_output(binding: onnxruntime.IOBinding, name: str, array: Array) -> None:
    """Bind an array on the host that an output is written into."""
    binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
