"""The greedy loop on a GPU: buffers that never move, a captured graph of the step for each size, few looks by the host.

A *place* is one set of buffers of fixed sizes on the device: what stays the same during an answer, and the state twice.
Two bindings of the step take turns between the two states. On CUDA each binding is captured once, when the loop is
made, and then replayed: a step costs one launch instead of two hundred. The chosen word becomes the next input on the
device; the host looks only every few steps at which rows have ended. Batches for which there is no free place, or
none large enough, run uncaptured in buffers of their own.

All of it but the capture runs on a CPU just so, where it is tested. Shape letters as in ``graphs.py``.
"""

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from mqan_core.errors import EngineFailedError
from mqan_core.manifest import Sizes
from mqan_runtime.decoding import Batch, Decoding, GreedyLoop, Trace
from mqan_runtime.graphs import ENCODER_INPUTS, NEXT, TYPES
from mqan_runtime.step_loop import read_trace

_LOG = logging.getLogger(__name__)

Device = Literal["cpu", "cuda"]
OpenStep = Callable[[Mapping[str, int]], onnxruntime.InferenceSession]

STEPS_A_LOOK: Final = 4
PLACES_A_SIZE: Final = 2
QUESTION: Final = 64
# Rows and context tokens. A batch takes the smallest that it fits.
SIZES: Final = ((1, 64), (1, 256), (1, 1024), (8, 64), (8, 256), (8, 1024), (32, 64), (32, 256))
_MOST_ROOM = 128  # steps of an answer, its end included
_NOT_CAPTURED = "-1"
# The encoder writes the first state where the step reads it.
_FIRST: Final = {"first_input": "input", "first_hidden": "hidden", "first_cell": "cell"}
# The rest of the state is hidden by these, or written over.
_RESET: Final = ("position", "finished", "context_state")


@dataclass(slots=True, eq=False, weakref_slot=True)
class DeviceDecoding(Decoding):
    """Rows that decode together in a place."""

    place: "_Place | None" = None

    def drop(self, key: object) -> None:
        """Let a row leave before its end."""
        Decoding.drop(self, key)
        with _lost_for_good("dropping a row"):
            _place_of(self).park(self)


class DeviceLoop(GreedyLoop):
    """Runs batches on a device. One thread may.

    Args:
        encoder: session of ``encoder.onnx`` for any sizes.
        step: session of ``decoder_step.onnx`` for any sizes.
        dimensions: sizes of the graphs.
        generator_vectors: as of ``GreedyLoop``.
        open_step: opens ``decoder_step.onnx`` for the sizes given by axis, to be captured on CUDA.
        device: where the sessions run.
        max_positions: most steps of an answer.
        sizes: rows and context tokens of the places.

    Attributes:
        num_bytes: of all places.
        room: most steps of an answer, its end included.

    Raises:
        EngineFailedError: a graph cannot be captured.
    """

    def __init__(
        self,
        encoder: onnxruntime.InferenceSession,
        step: onnxruntime.InferenceSession,
        dimensions: Sizes,
        generator_vectors: Iterable[npt.NDArray[np.float32]],
        open_step: OpenStep,
        *,
        device: Device,
        max_positions: int,
        sizes: Sequence[tuple[int, int]] = SIZES,
    ) -> None:
        super().__init__(encoder, step, dimensions, generator_vectors)
        self._device = device
        self.room = min(_MOST_ROOM, max_positions)
        self._generator = onnxruntime.OrtValue.ortvalue_from_numpy(self._generator_inputs, device, 0)
        self._pool: list[_Place] = []
        for rows, context in sorted(sizes, key=lambda size: size[0] * size[1]):
            place_sizes = self._complete(rows, context, QUESTION, context + QUESTION, self.room)
            session = open_step(place_sizes)
            for number in range(PLACES_A_SIZE):
                graphs = (str(2 * number + 1), str(2 * number + 2)) if device == "cuda" else (_NOT_CAPTURED,) * 2
                self._pool.append(self._make_place(session, place_sizes, graphs))
                with _lost_for_good("capturing the decoding step"):
                    self._pool[-1].run(2)
        self.num_bytes = sum(place.num_bytes for place in self._pool)
        _LOG.info("%d places of %d sizes hold %d MiB", len(self._pool), len(sizes), self.num_bytes >> 20)

    def start(self, batch: Batch, keys: Sequence[Any]) -> DeviceDecoding:
        """Encode a batch in a place.

        Raises:
            EngineFailedError: the device failed.
        """
        place = self._take(self._sizes_of(batch.inputs))
        with _lost_for_good("encoding"):
            self._encode_into(place, batch)
        return self._occupy(place, list(keys), batch.max_tokens, 0)

    def _encode_into(self, place: "_Place", batch: Batch) -> None:
        inputs = {name: place.pad(name, array, ENCODER_INPUTS[name]) for name, array in batch.inputs.items()}
        inputs["context_lengths"][len(batch.max_tokens) :] = 1  # rows of nobody read one word
        inputs["question_lengths"][len(batch.max_tokens) :] = 1
        place.write("context_slots", inputs["context_slots"])
        place.write("question_slots", inputs["question_slots"])
        place.write("slot_ids", place.pad("slot_ids", batch.slot_ids, self._step_constants["slot_ids"]))
        for name in _RESET:
            place.write(name, place.zeros(name))
        binding = self._encoder.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for name in self._encoder_outputs:
            binding.bind_ortvalue_output(name, place.value(_FIRST.get(name, name)))
        self._encoder.run_with_iobinding(binding, None)

    def step(self, decoding: Decoding) -> list[tuple[Any, Trace]]:
        """Take up to ``STEPS_A_LOOK`` steps; return as ``GreedyLoop.step`` does.

        Raises:
            EngineFailedError: the device failed.
        """
        with _lost_for_good("decoding"):
            return self._take_steps(decoding, _place_of(decoding))

    def _take_steps(self, d: Decoding, place: "_Place") -> list[tuple[Any, Trace]]:
        most = int((d.max_tokens[d.is_live] + 1).max()) - d.num_steps
        number = max(1, min(STEPS_A_LOOK, most, place.sizes["K"] - d.num_steps))
        place.run(number)
        position = place.read("position")[: len(d.keys)]
        ended = d.is_live & np.logical_or(place.read("finished")[: len(d.keys)], d.max_tokens < position)
        d.num_steps = int(position[d.is_live].max())
        d.is_live &= ~ended
        if not ended.any():
            return []
        trace = place.read("trace")
        found = [(d.keys[row], trace[row, : position[row]].astype(np.float32)) for row in np.flatnonzero(ended)]
        if d.num_live:
            place.park(d)
        return found

    def trace_so_far(self, decoding: Decoding, row: int) -> Trace:
        """Return what a row that has not left has chosen, [steps, F]; read from the device."""
        place = _place_of(decoding)
        with _lost_for_good("reading a trace"):
            return read_trace({name: place.read(name) for name in ("trace", "position")}, row)

    def merge(self, decodings: Sequence[Decoding], room: int = 0) -> DeviceDecoding:
        """Return the rows that have not left as one decoding, by way of the host."""
        parts = [(d, np.flatnonzero(d.is_live)) for d in decodings]
        parts = [(d, rows) for d, rows in parts if len(rows)]
        needed = {axis: max(_place_of(d).sizes[axis] for d, _ in parts) for axis in "UCQ"}
        needed["B"] = sum(len(rows) for _, rows in parts)
        place = self._take(needed)
        tensors = {**self._step_constants, **self._step_state}
        with _lost_for_good("merging"):
            read = [(_place_of(d).download(d, tensors), rows) for d, rows in parts]
            gathered = self._gather(tensors, read, place.sizes)
            for name, axes in tensors.items():
                if "B" in axes:
                    place.write(name, gathered[name])
        keys = [d.keys[row] for d, rows in parts for row in rows]
        max_tokens = np.concatenate([d.max_tokens[rows] for d, rows in parts])
        return self._occupy(place, keys, max_tokens, max(d.num_steps for d, _ in parts))

    def _occupy(self, place: "_Place", keys: list[Any], max_tokens: Any, num_steps: int) -> DeviceDecoding:
        is_live = np.ones(len(keys), np.bool_)
        decoding = DeviceDecoding(keys, is_live, max_tokens, place.sizes, {}, {}, num_steps, place=place)
        place.holder = weakref.ref(decoding)
        return decoding

    def _take(self, needed: Mapping[str, int]) -> "_Place":
        """Return the smallest free place that fits, or a new one that is not captured."""
        for place in self._pool:
            if place.is_free and all(needed[axis] <= place.sizes[axis] for axis in "BCQU"):
                return place
        sizes = self._complete(needed["B"], needed["C"], needed["Q"], needed["U"], self.room)
        return self._make_place(self._step, sizes, (_NOT_CAPTURED,) * 2)

    def _complete(self, rows: int, context: int, question: int, slots: int, room: int) -> dict[str, int]:
        return {**self._sizes, "B": rows, "C": context, "Q": question, "U": slots, "K": room}

    def _make_place(
        self, session: onnxruntime.InferenceSession, sizes: dict[str, int], graphs: tuple[str, str]
    ) -> "_Place":
        def allocate(tensors: Mapping[str, Sequence[str]]) -> dict[str, onnxruntime.OrtValue]:
            # Zeros: what is masked is multiplied by 0, which must not meet an infinity that lay there.
            return {
                name: onnxruntime.OrtValue.ortvalue_from_numpy(_zeros(name, axes, sizes), self._device, 0)
                for name, axes in tensors.items()
            }

        constants = allocate({name: axes for name, axes in self._step_constants.items() if "B" in axes})
        constants["generator_inputs"] = self._generator
        states = (allocate(self._step_state), allocate(self._step_state))
        return _Place(session, sizes, {**self._step_constants, **self._step_state}, constants, states, graphs)


@dataclass(slots=True, eq=False)
class _Place:
    """Buffers on the device, and the step bound to them both ways.

    Attributes:
        states: the state before and after a step, in turns.
        graphs: ids of the captured graphs, one a turn.
        holder: the decoding that is in it.
    """

    session: onnxruntime.InferenceSession
    sizes: dict[str, int]
    axes: Mapping[str, Sequence[str]]
    constants: dict[str, onnxruntime.OrtValue]
    states: tuple[dict[str, onnxruntime.OrtValue], dict[str, onnxruntime.OrtValue]]
    graphs: tuple[str, str]
    holder: "weakref.ref[DeviceDecoding] | None" = None
    _turn: int = 0
    _turns: list[tuple[onnxruntime.IOBinding, onnxruntime.RunOptions, onnxruntime.RunOptions]] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        for turn, graph in enumerate(self.graphs):
            binding = self.session.io_binding()
            for name, value in {**self.constants, **self.states[turn]}.items():
                binding.bind_ortvalue_input(name, value)
            for name, value in self.states[1 - turn].items():
                binding.bind_ortvalue_output(NEXT + name, value)
            self._turns.append((binding, _options(graph, waits=False), _options(graph, waits=True)))

    @property
    def is_free(self) -> bool:
        """Whether no decoding needs it any more."""
        decoding = None if self.holder is None else self.holder()
        return decoding is None or not decoding.num_live

    @property
    def num_bytes(self) -> int:
        """Bytes of its own buffers."""
        return sum(
            self.zeros(name).nbytes
            for tensors in (self.constants, *self.states)
            for name in tensors
            if self._owns(name)
        )

    def run(self, number: int) -> None:
        """Take steps; the host waits for the last."""
        for left in range(number - 1, -1, -1):
            binding, going_on, waiting = self._turns[self._turn]
            self.session.run_with_iobinding(binding, going_on if left else waiting)
            self._turn = 1 - self._turn

    def value(self, name: str) -> onnxruntime.OrtValue:
        """Return the buffer of a tensor, as the next step reads it."""
        return self.constants[name] if name in self.constants else self.states[self._turn][name]

    def read(self, name: str) -> Any:
        """Return a tensor on the host; on a CPU that is the buffer itself."""
        return self.value(name).numpy()

    def write(self, name: str, array: Any) -> None:
        """Copy an array of the tensor's own shape to the device."""
        self.value(name).update_inplace(np.ascontiguousarray(array))

    def zeros(self, name: str) -> Any:
        """Return zeros of a tensor's shape."""
        return _zeros(name, self.axes[name], self.sizes)

    def pad(self, name: str, array: Any, axes: Sequence[str]) -> Any:
        """Return an array padded to the place: by zeros, slots by the id of none."""
        padded = _zeros(name, axes, self.sizes)
        if name == "slot_ids":
            padded.fill(self.sizes["V"])
        padded[tuple(slice(length) for length in array.shape)] = array
        return padded

    def park(self, decoding: Decoding) -> None:
        """Let the rows that have left begin anew: they go on harmlessly, but must not pass the last position."""
        position = self.read("position").copy()
        position[: len(decoding.keys)][~decoding.is_live] = 0
        self.write("position", position)

    def download(self, decoding: Decoding, tensors: Mapping[str, Sequence[str]]) -> Decoding:
        """Return a decoding in this place with its tensors on the host."""
        buffers = {name: self.read(name) for name in tensors if self._owns(name)}
        sizes = self.sizes
        return Decoding(decoding.keys, decoding.is_live, decoding.max_tokens, sizes, buffers, {}, decoding.num_steps)

    def _owns(self, name: str) -> bool:
        return "B" in self.axes[name]


def fix_sizes(model: onnx.ModelProto, axes: Mapping[str, Sequence[str]], sizes: Mapping[str, int]) -> None:
    """Fix the sizes of a graph in place: what it computes from shapes becomes constant, and all of it can run on a GPU.

    Args:
        model: the graph.
        axes: of its inputs, and of its outputs less ``NEXT``.
        sizes: by axis.
    """
    for value in (*model.graph.input, *model.graph.output):
        for dimension, axis in zip(value.type.tensor_type.shape.dim, axes[value.name.removeprefix(NEXT)], strict=True):
            dimension.dim_value = sizes[axis]
    del model.graph.value_info[:]


def _place_of(decoding: Decoding) -> _Place:
    place = decoding.place if isinstance(decoding, DeviceDecoding) else None
    if place is None:
        raise ValueError("the decoding is of another loop")
    return place


def _options(graph: str, *, waits: bool) -> onnxruntime.RunOptions:
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("gpu_graph_id", graph)
    if not waits:
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")
    return options


@contextmanager
def _lost_for_good(doing: str) -> Iterator[None]:
    """Fail the engine for good at whatever goes wrong on the device: after an error of CUDA nothing runs any more."""
    try:
        yield
    except Exception as error:  # onnxruntime raises many types, its copies and its runs
        _LOG.critical("the engine failed while %s: %s", doing, error)
        raise EngineFailedError(f"the engine failed while {doing}: {error}") from error


def _zeros(name: str, axes: Sequence[str], sizes: Mapping[str, int]) -> Any:
    return np.zeros([sizes[axis] for axis in axes], np.dtype(TYPES.get(name, "float32")))
