"""The two systems that classify by fixed tasks, behind one small interface: text or pair in, probabilities out.

Each text is read alone: what it gets does not depend on what is read beside it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.classifying import ClassifyingBundle, ClassTask, Kind
from mqan_core.errors import BundleError
from mqan_core.lexicon import Lexicon
from mqan_core.manifest import ENCODER, MANIFEST
from mqan_core.packing import Packer
from mqan_runtime.classifying_graphs import (
    HEAD_INPUTS,
    PIECES_INPUTS,
    PIECES_OUTPUTS,
    PROBABILITIES,
    STEP_INPUTS,
    WORDS_INPUTS,
    WORDS_OUTPUTS,
    state_shapes,
)
from mqan_runtime.denormals import denormals_as_zero
from mqan_runtime.graphs import NEXT
from mqan_runtime.session import Provider, open_session

ReaderT = TypeVar("ReaderT", Lexicon, Packer)
Floats = npt.NDArray[np.float32]
_MOST_OFF: Final = 1e-3  # of the sum of probabilities from 1


class Classifier(Protocol):
    """A system, ready to classify."""

    @property
    def provider(self) -> str:
        """The execution provider that really runs it."""

    def count(self, texts: tuple[str, ...]) -> int:
        """Return how much it would have to read: words, or word pieces with their marks."""

    def probabilities(self, task: ClassTask, texts: tuple[str, ...]) -> Floats:
        """Return the probabilities of a task's classes, [C]; of a text that is too long as training cuts it."""


def open_classifier(bundle: ClassifyingBundle, provider: Provider, num_threads: int) -> Classifier:
    """Open the graphs of a bundle.

    Raises:
        BundleError: a graph is damaged or not allowed.
    """
    return _CLASSIFIERS[bundle.manifest.kind](bundle, provider, num_threads)


class WordByWord:
    """Shared-memory LSTMs: a task's step takes one word after the other.

    Args:
        bundle: of the kind ``shared-memory``.
        provider, num_threads: as of ``open_engine``.
    """

    def __init__(self, bundle: ClassifyingBundle, provider: Provider, num_threads: int) -> None:
        open_here = partial(open_session, provider=provider, num_threads=num_threads)
        self._lexicon = _reader(bundle, Lexicon)
        self._most = bundle.manifest.most_read
        if bundle.manifest.memory is None:
            raise BundleError(f"{MANIFEST}: states no sizes of memory")
        self._state = state_shapes(bundle.manifest.memory)
        inputs, outputs = [*STEP_INPUTS, *self._state], [PROBABILITIES, *(NEXT + name for name in self._state)]
        self._words = open_here(bundle.read_graph(ENCODER), ENCODER, list(WORDS_INPUTS), list(WORDS_OUTPUTS))
        self._outputs = outputs
        self._steps = {
            task.name: open_here(bundle.read_graph(task.graph), task.graph, inputs, outputs)
            for task in bundle.manifest.tasks
        }
        self.provider: str = self._words.get_providers()[0]

    def count(self, texts: tuple[str, ...]) -> int:
        return self._lexicon.count(*texts)

    def probabilities(self, task: ClassTask, texts: tuple[str, ...]) -> Floats:
        numbers = np.array(self._lexicon.numbers(texts[0], self._most), np.int64)
        (vectors_TD,) = self._words.run(list(WORDS_OUTPUTS), {"words": numbers})
        step = self._steps[task.name]
        state: dict[str, npt.NDArray[np.generic]] = {
            name: np.zeros(shape, np.float32) for name, shape in self._state.items()
        }
        found = np.zeros((1, 0), np.float32)
        with denormals_as_zero():
            for place in range(len(numbers)):
                word = {"vector": vectors_TD[place : place + 1], "is_first": np.array([place == 0])}
                found, *after = step.run(self._outputs, {**word, **state})
                state = dict(zip(state, after, strict=True))
        return _checked(found, task)


class SharedEncoder:
    """MT-DNN: one encoder for all tasks, and an output layer for each.

    Args:
        bundle: of the kind ``mt-dnn``.
        provider, num_threads: as of ``open_engine``.
    """

    def __init__(self, bundle: ClassifyingBundle, provider: Provider, num_threads: int) -> None:
        open_here = partial(open_session, provider=provider, num_threads=num_threads)
        self._packer = _reader(bundle, Packer)
        self._encoder = open_here(bundle.read_graph(ENCODER), ENCODER, list(PIECES_INPUTS), list(PIECES_OUTPUTS))
        self._heads: Mapping[str, onnxruntime.InferenceSession] = {
            task.name: open_here(bundle.read_graph(task.graph), task.graph, list(HEAD_INPUTS), [PROBABILITIES])
            for task in bundle.manifest.tasks
        }
        self.provider: str = self._encoder.get_providers()[0]

    def count(self, texts: tuple[str, ...]) -> int:
        return self._packer.count(*texts)

    def probabilities(self, task: ClassTask, texts: tuple[str, ...]) -> Floats:
        packed = self._packer.pack(*texts)
        places_S = np.arange(len(packed.pieces))
        is_second_S = places_S >= packed.first
        inputs = {"pieces": np.array([packed.pieces], np.int64), "segments": is_second_S[None].astype(np.int64)}
        with denormals_as_zero():
            (states_1SD,) = self._encoder.run(list(PIECES_OUTPUTS), inputs)
            masks = {
                "first": ((places_S > 0) & (places_S < packed.first - 1))[None],
                "second": (is_second_S & (places_S < len(places_S) - 1))[None],
            }
            (found,) = self._heads[task.name].run([PROBABILITIES], {"states": states_1SD, **masks})
        return _checked(found, task)


_CLASSIFIERS: Final[Mapping[Kind, type[WordByWord] | type[SharedEncoder]]] = {
    "shared-memory": WordByWord,
    "mt-dnn": SharedEncoder,
}


def _checked(found_1C: Floats, task: ClassTask) -> Floats:
    """Return the probabilities of a task's classes, [C], if they are such.

    Raises:
        BundleError: a graph computes something else.
    """
    found_C = np.asarray(found_1C).reshape(-1)
    is_right = found_1C.shape == (1, len(task.labels)) and found_C.dtype == np.float32 and bool((found_C >= 0).all())
    if not (is_right and abs(float(found_C.sum()) - 1) <= _MOST_OFF):
        raise BundleError(f"{task.graph}: does not compute the probabilities of {len(task.labels)} classes")
    return found_C


def _reader(bundle: ClassifyingBundle, kind: type[ReaderT]) -> ReaderT:
    if not isinstance(bundle.reader, kind):
        raise BundleError(f"{MANIFEST}: {bundle.manifest.kind} does not read by {type(bundle.reader).__name__}")
    return bundle.reader
