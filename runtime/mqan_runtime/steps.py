"""Requests as rows that decode together, and the loop that takes their steps.

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
from mqan_core.answer.evidence import EvidenceVectors
from mqan_core.answer.explain import Pointers
from mqan_core.answer.quotations import QuotationScores
from mqan_core.ask.request import Request
from mqan_core.text.layout import Window, work_of
from mqan_runtime.graphs import NEXT, TYPES
from mqan_runtime.session import denormals_as_zero

Trace = npt.NDArray[np.float32]
Array = npt.NDArray[Any]
Buffers = dict[str, Array]
Axes = Mapping[str, Sequence[str]]

FIRST_ROOM: Final = 8  # steps that a decoding has room for at first
_ROOM_GROWTH = 4

SAMPLE: Final = ("The kettle is in the kitchen.", "Where is the kettle?")
"""A context and a question, to try a model with."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request and its word pieces; none where the reader reads words."""

    request: Request
    windows: tuple[Window, ...] = ()
    wants_text_vector: bool = False

    @property
    def num_context_tokens(self) -> int:
        return self.request.num_context_tokens

    @property
    def num_question_tokens(self) -> int:
        return self.request.num_question_tokens

    @property
    def num_read(self) -> int:
        """Pieces of all windows, or words."""
        return sum(len(window.pieces) for window in self.windows) or self.request.num_read

    @property
    def work(self) -> int:
        """How long it takes to read, in pieces of a short window, or words."""
        return sum(work_of(len(window.pieces)) for window in self.windows) or self.request.num_read


@dataclass(slots=True, eq=False)
class Row:
    """A request that is being answered, and what its options need of what the model looked at."""

    key: Any  # what the caller knows it by
    request: ReadRequest
    max_answer_tokens: int
    scores: QuotationScores | None = None  # of its words, where quotations are asked for
    evidence: EvidenceVectors | None = None  # of its choices
    pointers: list[Pointers] | None = None  # of each step that was taken, where they are asked for
    text_vector: npt.NDArray[np.float32] | None = None  # what its text is about, where that is asked for


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """A row, what its steps chose, [steps, F], and what its first gave to each word of question and context."""

    row: Row
    trace: Trace
    masses: npt.NDArray[np.float32] | None = None
    evidence: npt.NDArray[np.float32] | None = None


@dataclass(slots=True, eq=False)
class HostBuffers:
    """Tensors of rows that decode together; what a step reads of them, it reads from the host's memory.

    Constants are there once a reader has written them.
    """

    sizes: dict[str, int]
    constants: dict[str, Any]
    state: Buffers
    axes: Axes

    def read(self, name: str) -> Array:
        """Return a tensor as the next step reads it, on the host."""
        array: Array = self.constants[name] if name in self.constants else self.state[name]
        return array

    def zeros(self, name: str) -> Array:
        """Return zeros of a tensor's shape, on the host; slots with the id of no generator piece."""
        return allocate({name: self.axes[name]}, self.sizes)[name]

    def write(self, name: str, array: Array) -> None:
        """Fill a tensor with an array of its shape."""
        (self.state if name in self.state else self.constants)[name] = np.ascontiguousarray(array)

    def bind_output(self, binding: onnxruntime.IOBinding, output: str, name: str) -> None:
        """Let a graph write an output where the first step reads it."""
        if name not in self.state:
            self.constants[name] = self.zeros(name)
        bind_output(binding, output, self.read(name))


@dataclass(slots=True, eq=False, weakref_slot=True)
class Decoding:
    """Rows that decode together. Made and changed by a ``StepLoop`` only."""

    keys: list[Row]
    is_live: npt.NDArray[np.bool_]  # which rows have not left, [B]
    max_tokens: npt.NDArray[np.int64]  # most answer tokens of each row, [B]
    buffers: HostBuffers
    num_steps: int = 0  # of rows that came together, by those that came first

    @property
    def sizes(self) -> dict[str, int]:
        return self.buffers.sizes

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

    def park(self) -> None:
        """Let the rows that have left begin anew: they go on harmlessly, but must not pass the last position."""
        position = self.buffers.read("position").copy()
        position[: len(self.keys)][~self.is_live] = 0
        self.buffers.write("position", position)


Part = tuple[Decoding, npt.NDArray[np.intp]]  # and which of its rows go on


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
        self._axes = {**constants, **state}
        self._sizes = sizes
        self._shared = shared
        self._is_tied = "masses" in state  # to a pretrained reader: what it says for ever is ended

    def guard(self, doing: str) -> AbstractContextManager[None]:
        """Return what work on a device runs in; here nothing goes wrong for good."""
        return nullcontext()

    def begin(self, rows: Sequence[Row], max_tokens: npt.NDArray[np.int64], sizes: Mapping[str, int]) -> Decoding:
        """Return rows before their first step, for a reader to fill; ``sizes`` are those of the axes B, C, Q and U."""
        sizes = {**self._sizes, **sizes, "K": min(FIRST_ROOM, int(max_tokens.max()) + 1)}  # a step for the end, too
        buffers = HostBuffers(sizes, {**self._shared}, allocate(self._state, sizes), self._axes)
        return self._occupy(buffers, rows, max_tokens)

    def _occupy(
        self, buffers: HostBuffers, rows: Sequence[Row], max_tokens: npt.NDArray[np.int64], num_steps: int = 0
    ) -> Decoding:
        return Decoding(list(rows), np.ones(len(rows), np.bool_), max_tokens, buffers, num_steps)

    def step(self, decoding: Decoding) -> list[Ended]:
        """Take a step or several; return the rows that they ended, which leave.

        A row ends with the end of its answer, after the steps for its most tokens and the end, or when it says the same
        for ever.
        """
        with self.guard("decoding"):
            return self._take_steps(decoding)

    def _take_steps(self, d: Decoding) -> list[Ended]:
        is_full = int(d.buffers.read("position")[d.is_live].max()) == d.sizes["K"]
        if is_full or d.num_live <= d.sizes["B"] // 2:
            other = self.merge([d], room=d.sizes["K"] * _ROOM_GROWTH if is_full else 0)
            d.keys, d.is_live, d.max_tokens, d.buffers = other.keys, other.is_live, other.max_tokens, other.buffers
        d.park()
        with denormals_as_zero():  # binding the tensors would cost as much as a third of a step, and few are taken
            after = self._step.run([NEXT + name for name in self._state], {**d.buffers.constants, **d.buffers.state})
        d.buffers.state = dict(zip(self._state, after, strict=True))
        d.num_steps += 1
        return self._look(d, each=REPEATS)

    def _look(self, d: Decoding, each: int) -> list[Ended]:
        """Note where rows point, and return those that ended; repetitions are looked for at every so many words."""
        self._watch(d)
        read = d.buffers.read
        position: npt.NDArray[np.int64] = read("position")[: len(d.keys)]
        ended = d.is_live & np.logical_or(read("finished")[: len(d.keys)], d.max_tokens < position)
        if self._is_tied:
            may_repeat = np.flatnonzero(d.is_live & ~ended & (position >= REPEATS) & (position % each == 0))
            traces = read("trace") if len(may_repeat) else None
            for row in may_repeat:
                ended[row] = find_repeats(traces[row, : position[row]]) is not None  # type: ignore[index]
        d.is_live &= ~ended
        if not ended.any():
            return []
        trace_BKF, *first = (read(name) for name in ("trace", "masses", "evidence") if name in self._state)
        return [
            Ended(d.keys[n], trace_BKF[n, : position[n]].astype(np.float32), *(x[n].astype(np.float32) for x in first))
            for n in np.flatnonzero(ended).tolist()
        ]

    def _watch(self, d: Decoding) -> None:
        watched = [place for place in np.flatnonzero(d.is_live) if d.keys[place].pointers is not None]
        if not watched:
            return
        context_BC, question_BQ = d.buffers.read("context_pointer"), d.buffers.read("question_pointer")
        for place in watched:
            row = d.keys[place]
            pointers = Pointers(
                context_BC[place, : row.request.num_context_tokens].astype(np.float32),
                question_BQ[place, : row.request.num_question_tokens].astype(np.float32),
            )
            row.pointers.append(pointers)  # type: ignore[union-attr]

    def drop(self, decoding: Decoding, row: Row) -> None:
        decoding.is_live[[known is row for known in decoding.keys]] = False
        with self.guard("dropping a row"):
            decoding.park()

    def trace_so_far(self, decoding: Decoding, row: int) -> Trace:
        """Return what a row that has not left has chosen, [steps, F]."""
        with self.guard("reading a trace"):
            read = decoding.buffers.read
            trace: Trace = read("trace")[row, : int(read("position")[row])].astype(np.float32)
            return trace

    def merge(self, decodings: Sequence[Decoding], room: int = 0) -> Decoding:
        """Return the rows of decodings that have not left, at least one, as one decoding; the others are used up.

        It has room for as many steps as before, and for ``room`` where any row has so many left.
        """
        parts = [(d, np.flatnonzero(d.is_live)) for d in decodings]
        parts = [(d, rows) for d, rows in parts if len(rows)]
        max_tokens = np.concatenate([d.max_tokens[rows] for d, rows in parts])
        sizes = {axis: max(d.sizes[axis] for d, _ in parts) for axis in parts[0][0].sizes}
        sizes |= {"B": len(max_tokens), "K": max(sizes["K"], min(room, int(max_tokens.max()) + 1))}
        with self.guard("merging"):
            buffers = self._merged(parts, sizes)
        keys = [d.keys[row] for d, rows in parts for row in rows]
        return self._occupy(buffers, keys, max_tokens, max(d.num_steps for d, _ in parts))

    def _merged(self, parts: Sequence[Part], sizes: dict[str, int]) -> HostBuffers:
        first = parts[0][0].buffers
        whole = len(parts) == 1 and sizes["B"] == first.sizes["B"]  # more room is all it gets
        constants = first.constants if whole else self._gather(self._constants, parts, sizes) | self._shared
        return HostBuffers(sizes, constants, self._gather(self._state, parts, sizes), self._axes)

    def _gather(self, tensors: Axes, parts: Sequence[Part], sizes: Mapping[str, int]) -> Buffers:
        gathered = allocate({name: axes for name, axes in tensors.items() if "B" in axes}, sizes)
        for name, target in gathered.items():
            first = 0
            for decoding, rows in parts:
                source = decoding.buffers.read(name)[rows]
                filled = tuple(slice(decoding.sizes[axis]) for axis in tensors[name][1:])
                target[(slice(first, first + len(rows)), *filled)] = source[(slice(None), *filled)]
                first += len(rows)
        return gathered


def allocate(tensors: Axes, sizes: Mapping[str, int]) -> Buffers:
    """Return arrays of tensors' shapes, filled with zeros, slots with the id of no generator piece."""
    buffers = {name: np.zeros([sizes[a] for a in axes], TYPES.get(name, "float32")) for name, axes in tensors.items()}
    if "slot_ids" in buffers:
        buffers["slot_ids"].fill(sizes["V"])
    return buffers


def bind_output(binding: onnxruntime.IOBinding, name: str, array: Array) -> None:
    """Bind an array on the host that an output is written into."""
    binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
