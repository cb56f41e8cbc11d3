"""Reads requests with a pretrained reader, window by window, and gathers what the decoder reads of their words.

On a CPU each window is read alone: nothing is padded, so that a request gets the numbers that it gets alone. A word
counts in the window in which it has the most text around it. Shape letters as in ``answering_graphs.py``.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.answer.evidence import EvidenceVectors
from mqan_core.answer.explain import Pointers
from mqan_core.answer.quotations import QuotationScores
from mqan_core.answer.types import Source
from mqan_core.ask.options import PLAIN, Options
from mqan_core.ask.request import Request
from mqan_core.text.layout import Window
from mqan_runtime.answering_graphs import (
    EVIDENCE_CONSTANTS,
    NUM_NULL,
    NUM_SOURCES,
    READER_INPUTS,
    reader_outputs,
    step_constants,
)
from mqan_runtime.denormals import denormals_as_zero
from mqan_runtime.session import CPU
from mqan_runtime.step_loop import Array, Buffers, allocate

_MOST_IN_TURN: Final = 512  # pieces read of several requests without a pause, and one window more
_LARGE: Final = 1024  # pieces read at once, whose memory onnxruntime shall not keep for ever


@dataclass(frozen=True, slots=True)
class WindowedRequest:
    """A request and its word pieces.

    Attributes:
        scores: of its words, where quotations are asked for and it has been read.
        pointers: of each step that was taken, where they are asked for and it has been read.
        evidence: of its choices, where it has some and has been read.
    """

    request: Request
    windows: tuple[Window, ...]
    options: Options = PLAIN
    scores: QuotationScores | None = None
    pointers: list[Pointers] | None = None
    evidence: EvidenceVectors | None = None

    @property
    def num_context_tokens(self) -> int:
        """Tokens of the context."""
        return self.request.num_context_tokens

    @property
    def num_question_tokens(self) -> int:
        """Tokens of the question."""
        return self.request.num_question_tokens

    @property
    def num_read(self) -> int:
        """Pieces of all windows."""
        return sum(len(window.pieces) for window in self.windows)


class TextReader:
    """Reads requests.

    Args:
        embeddings: session of ``embeddings.onnx``.
        reader: session of ``reader-*.onnx``.
        sizes: of D, H, W, V and E.
        num_layers: of the decoder.
        num_together: most windows that are read together, padded; 1 on a CPU.
        refusal_offset: what is added to the score of refusing a question that the decoder answers freely, in logits.
    """

    def __init__(
        self,
        embeddings: onnxruntime.InferenceSession,
        reader: onnxruntime.InferenceSession,
        sizes: Mapping[str, int],
        num_layers: int,
        num_together: int = 1,
        refusal_offset: float = 0.0,
    ) -> None:
        self._embeddings = embeddings
        self._reader = reader
        self._sizes = {**sizes, "NULL": NUM_NULL, "SOURCE": NUM_SOURCES}
        self._outputs = reader_outputs(num_layers, sizes["E"])
        self._constants = step_constants(num_layers)
        self._evidence = EVIDENCE_CONSTANTS if sizes["E"] else {}
        self._num_layers = num_layers
        self._num_together = num_together
        self.refusal_offset = refusal_offset
        self._shrinking = onnxruntime.RunOptions()
        if reader.get_providers() == [CPU]:
            self._shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def read(self, requests: Sequence[WindowedRequest]) -> Generator[None, None, tuple[Buffers, dict[str, int]]]:
        """Return what stays the same while requests are answered, padded, and the sizes of its axes.

        It pauses before each window of a request but its first, and before one that others are read in front of at
        length.
        """
        sizes = {
            **self._sizes,
            "B": len(requests),
            "C": max(r.request.num_context_tokens for r in requests),
            "Q": max(len(r.request.slots.question) for r in requests),
            "U": max(len(r.request.slots.pieces) for r in requests),
        }
        evidence = self._evidence if any(windowed.request.choices for windowed in requests) else {}
        constants = allocate({**self._constants, **evidence}, sizes)
        for name, array in constants.items():
            array.fill(sizes["V"] if name == "slot_ids" else 0)
        constants["null"].fill(np.inf)
        for row, windowed in enumerate(requests):
            _describe(windowed.request, windowed.options, row, constants)
        flat = ((row, windowed, window) for row, windowed in enumerate(requests) for window in windowed.windows)
        num_pieces = 0  # since the last pause
        while some := list(islice(flat, self._num_together)):
            if some[0][2] is not some[0][1].windows[0] or num_pieces > _MOST_IN_TURN:
                num_pieces = 0
                yield
            num_pieces += sum(len(window.pieces) for _, _, window in some)
            outputs = self._run([window for _, _, window in some])
            for n, (row, windowed, window) in enumerate(some):
                self._place({name: array[n] for name, array in outputs.items()}, windowed, window, row, constants)
        # quotations are decided by the scores themselves, where refusing is not favoured
        is_free = [not (windowed.request.choices or windowed.options.quotes) for windowed in requests]
        null: npt.NDArray[np.float32] = constants["null"]  # type: ignore[assignment]
        null[is_free, 0] += self.refusal_offset
        return constants, sizes

    def _run(self, windows: Sequence[Window]) -> Buffers:
        inputs = padded_windows(windows)
        pieces = inputs.pop("pieces")
        options = self._shrinking if pieces.size > _LARGE else None
        with denormals_as_zero():
            [inputs["vectors"]] = self._embeddings.run(None, {"pieces": pieces})
            return dict(zip(self._outputs, self._reader.run(list(self._outputs), inputs, options), strict=True))

    def _place(self, read: Buffers, windowed: WindowedRequest, window: Window, row: int, constants: Buffers) -> None:
        """Put what was read of a window into its request's row."""
        request, counted = windowed.request, window.counted
        num_words = len(request.question_tokens)
        num_before = num_words + window.labels.stop - window.labels.start
        behind = num_before - window.words.start
        context = slice(counted.start + behind, counted.stop + behind)
        constants["context"][row, counted] = read["words"][context]
        for name in ("start", "end"):
            constants[f"context_{name}"][row, counted] = read[name][context]
        if "context_evidence" in constants:
            constants["context_evidence"][row, counted] = read["word_evidence"][context]
        for i in range(self._num_layers):
            for name in ("keys", "values"):
                constants[f"context_{name}_{i}"][row, :, counted] = read[f"{name}_{i}"][:, context]
        constants["slot_inputs"][row, request.slots.context[counted]] = read["inputs"][context]
        summary: npt.NDArray[np.float32] = read["summary"]  # type: ignore[assignment]
        constants["summary"][row] += summary / len(windowed.windows)
        np.minimum(constants["null"][row], read["null"], out=constants["null"][row])
        if window.words.start > 0:
            return
        labels = slice(num_words + window.labels.start, num_words + window.labels.stop)
        pairs = [(labels, slice(num_words, num_before))]
        if window.labels.start == 0:
            pairs.append((slice(0, num_words), slice(0, num_words)))
        for to, of in pairs:
            constants["question"][row, to] = read["words"][of]
            for name in ("start", "end"):
                constants[f"question_{name}"][row, to] = read[name][of]
            if "question_evidence" in constants:
                constants["question_evidence"][row, to] = read["label_evidence"][of]
            constants["slot_inputs"][row, request.slots.question[to]] = read["inputs"][of]


def scores_of(constants: Buffers, row: int, num_words: int) -> QuotationScores:
    """Return what was read of a row about where its answer stands."""
    start, end = (constants[f"context_{name}"][row, :num_words].astype(np.float32) for name in ("start", "end"))
    return QuotationScores(start, end, float(constants["null"][row, 0]))


def evidence_of(constants: Buffers, row: int, request: Request) -> EvidenceVectors | None:
    """Return what was read of a row about what decides for its choices; None of a bundle that does not say."""
    if "question_evidence" not in constants:
        return None
    first = len(request.question_tokens)
    labels_LE = constants["question_evidence"][row, first : first + len(request.choices)]
    words_CE = constants["context_evidence"][row, : request.num_context_tokens]
    return EvidenceVectors(labels_LE.astype(np.float32), words_CE.astype(np.float32))


def _describe(request: Request, options: Options, row: int, constants: Buffers) -> None:
    """Put what is known of a request without reading it into its row."""
    slots = request.slots
    num_context, num_question = len(slots.context), len(slots.question)
    constants["context_mask"][row, :num_context] = True
    constants["question_mask"][row, :num_question] = True
    constants["pointed"][row, len(request.question_tokens) if request.choices else 0 : num_question] = True
    constants["allowed"][row] = (0, 1, 0) if request.choices else [s in options.sources for s in Source]
    constants["context_slots"][row, :num_context] = slots.context
    constants["question_slots"][row, :num_question] = slots.question
    constants["slot_ids"][row, : len(slots.pieces)] = slots.generator_ids


def padded_windows(windows: Sequence[Window]) -> dict[str, Array]:
    """Return the inputs of windows, with zeros after those that are shorter than the longest."""
    fields: Iterator[str] = (name for name in ("pieces", *READER_INPUTS) if name != "vectors")
    padded: dict[str, Array] = {}
    for name in fields:
        rows: list[npt.NDArray[np.int64]] = [getattr(window, name) for window in windows]
        array = np.zeros((len(rows), max(map(len, rows))), np.int64)
        for target, given in zip(array, rows, strict=True):
            target[: len(given)] = given
        padded[name] = array
    return padded
