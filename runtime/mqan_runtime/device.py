"""The loop on a GPU: buffers that never move, a captured graph of the step for each size, few looks by the host.

A *place* is one set of buffers of fixed sizes on the device: what stays the same during an answer, and the state twice.
Two bindings of the step take turns between the two states. On CUDA each binding is captured once, when the loop is
made, and then replayed: a step costs one launch instead of two hundred. The chosen word becomes the next input on the
device; the host looks only every few steps at which rows have ended. What a reader says of words stays on the device,
too. Batches for which there is no free place, or none large enough, run uncaptured in buffers of their own.

All of it but the capture runs on a CPU just so, where it is tested. Shape letters as in ``graphs.py``.
"""

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.errors import EngineFailedError
from mqan_core.manifest import Device
from mqan_core.text.layout import Window
from mqan_runtime.graphs import NEXT
from mqan_runtime.readers import PieceReader, WindowsRead, WordsOf, padded_windows
from mqan_runtime.session import denormals_as_zero
from mqan_runtime.steps import Array, Axes, Buffers, Decoding, Ended, HostBuffers, Part, Row, StepLoop, allocate

_LOG = logging.getLogger(__name__)

OpenStep = Callable[[Mapping[str, int]], onnxruntime.InferenceSession]

STEPS_A_LOOK: Final = 4
PLACES_A_SIZE: Final = 2
QUESTION: Final = 64
# Rows and context tokens. A batch takes the smallest that it fits.
SIZES: Final = ((1, 64), (1, 256), (1, 1024), (8, 64), (8, 256), (8, 1024), (32, 64), (32, 256))
_MOST_ROOM = 128  # steps of an answer, its end included
_NOT_CAPTURED = "-1"
# The rest of the state is hidden by these, or written over.
_RESET: Final = ("position", "finished", "context_state", "context_pointer", "question_pointer")
_NUMBERS = "_numbers"  # end of the names of inputs that say which words stand where
_OPSET, _IR_VERSION = 18, 10


class DeviceLoop(StepLoop):
    """Takes the steps of decodings on a device, in places of so many rows and context tokens. One thread may.

    EngineFailedError: the device failed, here or in any method.
    """

    def __init__(
        self,
        step: onnxruntime.InferenceSession,
        constants: Axes,
        state: Axes,
        sizes: Mapping[str, int],
        shared: Buffers,
        open_step: OpenStep,
        *,
        device: Device,
        max_positions: int,
        places: Sequence[tuple[int, int]] = SIZES,
    ) -> None:
        super().__init__(step, constants, state, sizes, shared)
        self.device = device
        self.room = min(_MOST_ROOM, max_positions)
        self._on_device = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(array, device, 0) for name, array in shared.items()
        }
        self._pool: list[_Place] = []
        for rows, context in sorted(places, key=lambda size: size[0] * size[1]):
            of_place = {"B": rows, "C": context, "Q": QUESTION, "U": context + QUESTION}
            try:
                session = open_step({**sizes, **of_place, "K": self.room})
            except RuntimeError as error:
                _LOG.warning("the decoding step is not captured: %s", error)
                break
            for number in range(PLACES_A_SIZE):
                graphs = (str(2 * number + 1), str(2 * number + 2)) if device == "cuda" else (_NOT_CAPTURED,) * 2
                self._pool.append(self._make_place(session, of_place, graphs))
                with _lost_for_good("capturing the decoding step"):
                    self._pool[-1].run(2)
        self.num_bytes = sum(place.num_bytes for place in self._pool)
        _LOG.info("%d places of %d sizes hold %d MiB", len(self._pool), len(places), self.num_bytes >> 20)

    def guard(self, doing: str) -> AbstractContextManager[None]:
        return _lost_for_good(doing)

    def begin(self, rows: Sequence[Row], max_tokens: npt.NDArray[np.int64], sizes: Mapping[str, int]) -> Decoding:
        place = self._take(sizes)
        for name in _RESET:
            if name in self._state:
                place.write(name, place.zeros(name))
        return self._occupy(place, rows, max_tokens)

    def _take_steps(self, d: Decoding) -> list[Ended]:
        """Take up to ``STEPS_A_LOOK`` steps, one where each is watched."""
        place = _place_of(d)
        most = int((d.max_tokens[d.is_live] + 1).max()) - d.num_steps
        at_once = 1 if any(row.pointers is not None for row in d.live_keys) else STEPS_A_LOOK
        place.run(max(1, min(at_once, most, place.sizes["K"] - d.num_steps)))
        d.num_steps = int(place.read("position")[: len(d.keys)][d.is_live].max())
        found = self._look(d, each=1)
        if found and d.num_live:
            d.park()
        return found

    def _merged(self, parts: Sequence[Part], sizes: dict[str, int]) -> HostBuffers:
        """Put rows into one place, by way of the host."""
        place = self._take(sizes)
        for name, array in self._gather({**self._constants, **self._state}, parts, place.sizes).items():
            place.write(name, array)
        return place

    def _occupy(
        self, buffers: HostBuffers, rows: Sequence[Row], max_tokens: npt.NDArray[np.int64], num_steps: int = 0
    ) -> Decoding:
        decoding = super()._occupy(buffers, rows, max_tokens, num_steps)
        _place_of(decoding).holder = weakref.ref(decoding)
        return decoding

    def _take(self, needed: Mapping[str, int]) -> "_Place":
        """Return the smallest free place that fits, or a new one that is not captured."""
        for place in self._pool:
            if place.is_free and all(needed[axis] <= place.sizes[axis] for axis in "BCQU"):
                return place
        return self._make_place(self._step, needed, (_NOT_CAPTURED,) * 2)

    def _make_place(
        self, session: onnxruntime.InferenceSession, sizes: Mapping[str, int], graphs: tuple[str, str]
    ) -> "_Place":
        whole = {**self._sizes, **sizes, "K": self.room}

        def on_device(tensors: Axes) -> dict[str, onnxruntime.OrtValue]:
            # Zeros: what is masked is multiplied by 0, which must not meet an infinity that lay there.
            return {
                name: onnxruntime.OrtValue.ortvalue_from_numpy(array, self.device, 0)
                for name, array in allocate(tensors, whole).items()
            }

        constants = on_device({name: axes for name, axes in self._constants.items() if name not in self._shared})
        states = on_device(self._state), on_device(self._state)
        return _Place(whole, constants | self._on_device, {}, self._axes, session, states, graphs)


@dataclass(slots=True, eq=False)
class _Place(HostBuffers):
    """Buffers on the device, and the step bound to them both ways."""

    session: onnxruntime.InferenceSession
    states: tuple[dict[str, onnxruntime.OrtValue], dict[str, onnxruntime.OrtValue]]  # before and after a step, in turns
    graphs: tuple[str, str]  # ids of the captured graphs, one a turn
    holder: "weakref.ref[Decoding] | None" = None  # the decoding that is in it
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
        decoding = None if self.holder is None else self.holder()
        return decoding is None or not decoding.num_live

    @property
    def num_bytes(self) -> int:
        names = [name for tensors in (self.constants, *self.states) for name in tensors if "B" in self.axes[name]]
        return sum(self.zeros(name).nbytes for name in names)

    def run(self, number: int) -> None:
        """Take steps; the host waits for the last."""
        for left in range(number - 1, -1, -1):
            binding, going_on, waiting = self._turns[self._turn]
            self.session.run_with_iobinding(binding, going_on if left else waiting)
            self._turn = 1 - self._turn

    def value(self, name: str) -> onnxruntime.OrtValue:
        return self.constants[name] if name in self.constants else self.states[self._turn][name]

    def read(self, name: str) -> Any:
        """Return a tensor on the host; on a CPU that is the buffer itself."""
        return self.value(name).numpy()

    def write(self, name: str, array: Array) -> None:
        self.value(name).update_inplace(np.ascontiguousarray(array))

    def bind_output(self, binding: onnxruntime.IOBinding, output: str, name: str) -> None:
        binding.bind_ortvalue_output(output, self.value(name))


class DeviceWindowsRead(WindowsRead):
    """What a reader says of windows: what is large, of words, stays on the device until the steps' buffers have it."""

    def __init__(
        self,
        reader: PieceReader,
        names: Sequence[str],
        windows: Sequence[Window],
        *,
        sizes: Mapping[str, int],
        device: Device,
        gather: onnxruntime.InferenceSession,
    ) -> None:
        super().__init__(reader, names)
        self._device, self._gather = device, gather
        self._sizes = {**sizes, "T": max(len(window.firsts) for window in windows)}
        self._num_read = 0
        self._held = {
            name: onnxruntime.OrtValue.ortvalue_from_shape_and_type(
                [len(windows), *self._shape(name)], np.float32, device, 0
            )
            for name in _large(reader)
        }

    def _shape(self, name: str) -> list[int]:
        return [self._sizes[axis] for axis in self._reader.outputs[name][1:]]

    def run(self, windows: Sequence[Window]) -> list[int]:
        inputs = padded_windows(windows, self._sizes["T"])
        embedding, reading = self._reader.embeddings.io_binding(), self._reader.session.io_binding()
        embedding.bind_cpu_input("pieces", inputs.pop("pieces"))
        embedding.bind_output("vectors", self._device)
        on_host = [name for name in self.names if name not in self._held]
        with denormals_as_zero():
            self._reader.embeddings.run_with_iobinding(embedding)
            reading.bind_ortvalue_input("vectors", embedding.get_outputs()[0])
            for name, array in inputs.items():
                reading.bind_cpu_input(name, array)
            for name in on_host:
                reading.bind_output(name)
            for name, value in self._held.items():
                shape = self._shape(name)
                begin = value.data_ptr() + self._num_read * int(np.prod(shape)) * np.dtype(np.float32).itemsize
                reading.bind_output(name, self._device, 0, np.float32, [len(windows), *shape], begin)
            self._reader.session.run_with_iobinding(reading)
        for name, value in zip(on_host, reading.get_outputs(), strict=False):
            self._parts[name].append(np.array(value.numpy()))
        self._num_read += len(windows)
        return self._number(len(windows), self._sizes["T"])

    def fill(self, decoding: Decoding, words: WordsOf) -> None:
        binding = self._gather.io_binding()
        for name, value in self._held.items():
            binding.bind_ortvalue_input(name, value)
        for place, numbers in words.numbers.items():
            binding.bind_cpu_input(place + _NUMBERS, numbers)
        for target, (name, place) in self._reader.targets.items():
            if name in self._held:
                decoding.buffers.bind_output(binding, target, target)
            else:
                decoding.buffers.write(target, self.of_words(name, words.numbers[place]))
        self._gather.run_with_iobinding(binding)
        self._held = {}


def gather_graph(reader: PieceReader, sizes: Mapping[str, int]) -> tuple[bytes, list[str], list[str]]:
    """Return the graph that gives each word of a batch its numbers out of all windows, and its inputs and outputs."""
    from onnx import TensorProto, helper, numpy_helper  # installed for GPUs, and where bundles are exported

    nodes, weights, inputs, outputs = [], [], [], []
    for name in _large(reader):
        axes = reader.outputs[name]
        heads = "H" in axes
        shape = [sizes[axis] for axis in axes[1:] if axis != "T"]
        weights += [
            numpy_helper.from_array(np.array([-1, *shape], np.int64), f"{name}_shape"),
            numpy_helper.from_array(np.zeros([1, *shape], np.float32), f"{name}_nothing"),
        ]
        inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(axes)))
        by_word = f"{name}_by_word" if heads else name
        if heads:
            nodes.append(helper.make_node("Transpose", [name], [by_word], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [by_word, f"{name}_shape"], [f"{name}_flat"]))
        nodes.append(helper.make_node("Concat", [f"{name}_nothing", f"{name}_flat"], [f"{name}_rows"], axis=0))
        for target, (source, numbers) in reader.targets.items():
            if source != name:
                continue
            found = f"{target}_by_word" if heads else target
            nodes.append(helper.make_node("Gather", [f"{name}_rows", numbers + _NUMBERS], [found], axis=0))
            if heads:
                nodes.append(helper.make_node("Transpose", [found], [target], perm=[0, 2, 1, 3]))
            outputs.append(helper.make_tensor_value_info(target, TensorProto.FLOAT, [None] * (len(shape) + 2)))
    for numbers in ("context", "question", "slots"):
        inputs.append(helper.make_tensor_value_info(numbers + _NUMBERS, TensorProto.INT64, [None, None]))
    graph = helper.make_graph(nodes, "gather", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    return model.SerializeToString(), [value.name for value in inputs], [value.name for value in outputs]


def _large(reader: PieceReader) -> list[str]:
    return [name for name, axes in reader.outputs.items() if "T" in axes and ("D" in axes or "H" in axes)]


def fix_sizes(content: bytes, axes: Axes, sizes: Mapping[str, int]) -> bytes:
    """Fix the sizes of a graph: what it computes from shapes becomes constant, and all of it can run on a GPU.

    ``axes`` are those of its inputs, and of its outputs less ``NEXT``.
    """
    from onnx import load_model_from_string

    model = load_model_from_string(content)
    for value in (*model.graph.input, *model.graph.output):
        for dimension, axis in zip(value.type.tensor_type.shape.dim, axes[value.name.removeprefix(NEXT)], strict=True):
            dimension.dim_value = sizes[axis]
    del model.graph.value_info[:]
    fixed: bytes = model.SerializeToString()
    return fixed


def _place_of(decoding: Decoding) -> _Place:
    if not isinstance(decoding.buffers, _Place):
        raise ValueError("the decoding is of another loop")
    return decoding.buffers


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
