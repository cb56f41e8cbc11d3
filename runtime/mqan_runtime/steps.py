"""Rows that decode together, and the loop that takes their steps. Knows no text.

A row leaves a ``Decoding`` at the step that ends it, and the rows of several decodings can go on as one. The caches of
the answer start with little room and grow, so that a one-word answer does not pay for a long one. Shape letters as in
``graphs.py``.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.answer.decide import REPEATS, find_repeats
from mqan_core.answer.explain import Pointers
from mqan_runtime.graphs import NEXT, TYPES
from mqan_runtime.rows import Row, Steps, Trace
from mqan_runtime.session import denormals_as_zero

Array = npt.NDArray[Any]
Buffers = dict[str, Array]
Axes = Mapping[str, Sequence[str]]

FIRST_ROOM: Final = 8  # steps that a decoding has room for at first
_ROOM_GROWTH = 4


@dataclass(slots=True, eq=False, weakref_slot=True)
class Decoding:
    """Rows that decode together. Made and changed by a ``StepLoop`` only."""

    keys: list[Row]
    is_live: npt.NDArray[np.bool_]  # which rows have not left, [B]
    max_tokens: npt.NDArray[np.int64]  # most answer tokens of each row, [B]
    sizes: dict[str, int]
    constants: Buffers
    state: Buffers
    num_steps: int = 0  # of rows that came together, by those that came first

    @property
    def num_live(self) -> int:
        return int(self.is_live.sum())

    @property
    def num_tokens(self) -> int:
        """Positions of context and question that the buffers hold, padding included."""
        return self.sizes["B"] * (self.sizes["C"] + self.sizes["Q"])

    @property
    def live_keys(self) -> list[Row]:
        return [row for row, is_live in zip(self.keys, self.is_live, strict=True) if is_live]

    def read(self, name: str) -> Array:
        """Return a tensor as the next step reads it, on the host."""
        return self.constants[name] if name in self.constants else self.state[name]

    def zeros(self, name: str) -> Array:
        """Return zeros of a tensor's shape, on the host."""
        return np.zeros_like(self.read(name))

    def write(self, name: str, array: Array) -> None:
        """Fill a tensor before the first step with an array of its shape."""
        buffers = self.constants if name in self.constants else self.state
        buffers[name] = np.ascontiguousarray(array)

    def bind_output(self, binding: onnxruntime.IOBinding, output: str, name: str) -> None:
        """Let a graph write an output where the first step reads it."""
        bind_output(binding, output, self.read(name))

    def drop(self, row: Row) -> None:
        self.is_live[[known is row for known in self.keys]] = False

    def shrink_to(self, other: "Decoding") -> None:
        """Go on with the rows and buffers of another, which is made of this one's live rows."""
        self.keys, self.is_live, self.max_tokens = other.keys, other.is_live, other.max_tokens
        self.sizes, self.constants, self.state = other.sizes, other.constants, other.state


class StepLoop:
    """Takes the steps of decodings. Several threads may, each with decodings of its own.

    Constants stay the same during an answer, state is handed from step to step; ``sizes`` are those of the fixed axes,
    ``shared`` the constants that are the same for every row.
    """

    def __init__(
        self,
        step: onnxruntime.InferenceSession,
        constants: Axes,
        state: Axes,
        sizes: Mapping[str, int],
        shared: Buffers,
    ) -> None:
        self._step = step
        self._constants = constants
        self._state = state
        self._sizes = sizes
        self._shared = shared
        self._is_tied = "masses" in state  # to a pretrained reader: what it says for ever is ended

    def guard(self, doing: str) -> AbstractContextManager[None]:
        """Return what work beside the steps runs in; here nothing goes wrong for good."""
        return nullcontext()

    def begin(self, rows: Sequence[Row], max_tokens: npt.NDArray[np.int64], sizes: Mapping[str, int]) -> Decoding:
        """Return rows before their first step, for a reader to fill; ``sizes`` are those of the axes B, C, Q and U."""
        sizes = {**self._sizes, **sizes, "K": min(FIRST_ROOM, most_steps(max_tokens))}
        constants = {**allocate({n: axes for n, axes in self._constants.items() if "B" in axes}, sizes), **self._shared}
        return Decoding(
            list(rows), np.ones(len(rows), np.bool_), max_tokens, sizes, constants, allocate(self._state, sizes)
        )

    def step(self, decoding: Decoding) -> list[tuple[Row, Steps]]:
        """Take one step; return the rows that it ended, which leave, and what was decoded of them.

        A row ends with the end of its answer, after the steps for its most tokens and the end, or when it says the same
        for ever.
        """
        d = decoding
        if int(d.state["position"][d.is_live].max()) == d.sizes["K"]:
            d.shrink_to(self.merge([d], room=d.sizes["K"] * _ROOM_GROWTH))
        elif d.num_live <= d.sizes["B"] // 2:
            d.shrink_to(self.merge([d]))
        d.state["position"][~d.is_live] = 0  # who has left goes on harmlessly, but not beyond the last position
        with denormals_as_zero():  # binding the tensors would cost as much as a third of a step, and few are taken
            after = self._step.run([NEXT + name for name in self._state], {**d.constants, **d.state})
        d.state = dict(zip(self._state, after, strict=True))
        d.num_steps += 1
        return self._look(d, each=REPEATS)

    def _look(self, d: Decoding, each: int) -> list[tuple[Row, Steps]]:
        """Note where rows point, and return those that ended; repetitions are looked for at every so many words."""
        self._watch(d)
        position: npt.NDArray[np.int64] = d.read("position")[: len(d.keys)]
        ended = d.is_live & np.logical_or(d.read("finished")[: len(d.keys)], d.max_tokens < position)
        if self._is_tied:
            may_repeat = np.flatnonzero(d.is_live & ~ended & (position >= REPEATS) & (position % each == 0))
            traces = d.read("trace") if len(may_repeat) else None
            for row in may_repeat:
                ended[row] = find_repeats(traces[row, : position[row]]) is not None  # type: ignore[index]
        d.is_live &= ~ended
        if not ended.any():
            return []
        read = {name: d.read(name) for name in ("trace", "masses", "evidence") if name in self._state}
        return [(d.keys[row], _hand_out(read, int(row), int(position[row]))) for row in np.flatnonzero(ended)]

    def _watch(self, d: Decoding) -> None:
        watched = [place for place in np.flatnonzero(d.is_live) if d.keys[place].pointers is not None]
        if not watched:
            return
        context_BC, question_BQ = d.read("context_pointer"), d.read("question_pointer")
        for place in watched:
            row = d.keys[place]
            pointers = Pointers(
                context_BC[place, : row.request.num_context_tokens].astype(np.float32),
                question_BQ[place, : row.request.num_question_tokens].astype(np.float32),
            )
            row.pointers.append(pointers)  # type: ignore[union-attr]

    def trace_so_far(self, decoding: Decoding, row: int) -> Trace:
        """Return what a row that has not left has chosen, [steps, F]."""
        trace: Trace = decoding.read("trace")[row, : int(decoding.read("position")[row])].astype(np.float32)
        return trace

    def merge(self, decodings: Sequence[Decoding], room: int = 0) -> Decoding:
        """Return the rows of decodings that have not left, at least one, as one decoding; the others are used up.

        It has room for as many steps as before, and for ``room`` where any row has so many left.
        """
        parts = [(d, np.flatnonzero(d.is_live)) for d in decodings]
        parts = [(d, rows) for d, rows in parts if len(rows)]
        max_tokens = np.concatenate([d.max_tokens[rows] for d, rows in parts])
        sizes = {axis: max(d.sizes[axis] for d, _ in parts) for axis in parts[0][0].sizes}
        sizes["B"] = len(max_tokens)
        sizes["K"] = max(sizes["K"], min(room, most_steps(max_tokens)))
        whole = len(parts) == 1 and sizes["B"] == parts[0][0].sizes["B"]  # more room is all it gets
        constants = parts[0][0].constants if whole else self._gather(self._constants, parts, sizes) | self._shared
        return Decoding(
            [d.keys[row] for d, rows in parts for row in rows],
            np.ones(sizes["B"], np.bool_),
            max_tokens,
            sizes,
            constants,
            self._gather(self._state, parts, sizes),
            max(d.num_steps for d, _ in parts),
        )

    def _gather(
        self, tensors: Axes, parts: Sequence[tuple[Decoding, npt.NDArray[np.intp]]], sizes: Mapping[str, int]
    ) -> Buffers:
        gathered = allocate({name: axes for name, axes in tensors.items() if "B" in axes}, sizes)
        for name, target in gathered.items():
            first = 0
            for decoding, rows in parts:
                source = decoding.read(name)[rows]
                filled = tuple(slice(decoding.sizes[axis]) for axis in tensors[name][1:])
                target[(slice(first, first + len(rows)), *filled)] = source[(slice(None), *filled)]
                first += len(rows)
        return gathered


def _hand_out(read: Mapping[str, Array], row: int, num_steps: int) -> Steps:
    trace = read["trace"][row, :num_steps].astype(np.float32)
    return Steps(trace, *(read[name][row].astype(np.float32) for name in ("masses", "evidence") if name in read))


def allocate(tensors: Axes, sizes: Mapping[str, int]) -> Buffers:
    """Return arrays of tensors' shapes, filled with zeros, slots with the id of no generator piece."""
    buffers = {name: np.zeros([sizes[a] for a in axes], TYPES.get(name, "float32")) for name, axes in tensors.items()}
    if "slot_ids" in buffers:
        buffers["slot_ids"].fill(sizes["V"])
    return buffers


def most_steps(max_tokens: npt.NDArray[np.int64]) -> int:
    """Return the steps that the longest answers may need: one more than tokens, for the end."""
    return int(max_tokens.max()) + 1


def bind_output(binding: onnxruntime.IOBinding, name: str, array: Array) -> None:
    """Bind an array on the host that an output is written into."""
    binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
