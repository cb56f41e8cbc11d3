"""Readers: requests in, all that the decoder reads of them out, in the buffers of a decoding.

A ``PieceReader`` reads word pieces, window by window. On a CPU each window is read alone: nothing is padded, so that a
request gets the numbers that it gets alone. A word counts in the window in which it has the most text around it. A
``WordReader`` reads words by their vectors, a batch at once, as the paper's network does. Shape letters as in
``graphs.py``.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.answer.evidence import EvidenceVectors
from mqan_core.answer.quotations import QuotationScores
from mqan_core.answer.trace import NUM_PLAIN_FIELDS, TraceField
from mqan_core.answer.types import Source
from mqan_core.ask.options import Options
from mqan_core.ask.request import Check, Request, read_question
from mqan_core.bundle import Bundle
from mqan_core.errors import BundleError, InputError
from mqan_core.manifest import Graphs
from mqan_core.text.layout import Layout, Window
from mqan_core.text.tokens import word_of
from mqan_core.text.vectors import WordVectors
from mqan_runtime import graphs as g
from mqan_runtime.session import denormals_as_zero, run_options
from mqan_runtime.steps import Array, Buffers, Decoding, HostBuffers, ReadRequest, Row, allocate, bind_output

Begin = Callable[[Mapping[str, int]], Decoding]  # the sizes of the axes B, C, Q and U -> buffers of at least these
# name, inputs and outputs of a graph -> its session
Open = Callable[[str, Collection[str], Collection[str]], onnxruntime.InferenceSession]


_MOST_IN_TURN: Final = 512  # pieces read of several requests without a pause, and one window more
_LOOKED_UP_TOGETHER: Final = 1024  # pieces of the generator: the vectors of all would be a fifth of the memory
_FIRST: Final = {"first_input": "input", "first_hidden": "hidden", "first_cell": "cell"}


class PieceReader:
    """Reads requests as word pieces, up to ``num_together`` windows at once."""

    num_fields: Final = len(TraceField)
    left_out: Final = g.NOT_OF_PIECES

    def __init__(self, bundle: Bundle, graphs: Graphs, open_graph: Open, num_together: int) -> None:
        if bundle.word_pieces is None:
            raise ValueError("the bundle has no word pieces")
        sizes = bundle.manifest.sizes
        has_evidence, has_text = sizes.evidence_width > 0, bundle.manifest.has_text_vector
        self.outputs = g.pieces_outputs(sizes.num_layers, evidence=has_evidence, text=has_text)
        self.embeddings = open_graph("embeddings.onnx", g.EMBEDDINGS_INPUTS, g.EMBEDDINGS_OUTPUTS)
        self.session = open_graph(graphs.reader, g.PIECES_INPUTS, self.outputs)
        self.shared: Buffers = {}
        self.targets = _targets(sizes.num_layers)
        self.refusal_offset = bundle.manifest.refusal_offset
        self.on_device: Callable[[PieceReader, Sequence[str], Sequence[Window]], WindowsRead] | None = None
        self._vocabulary, self._layout = bundle.vocabulary, Layout(bundle.word_pieces)
        self._num_together = num_together

    def tokenise(self, context: str, question: str, options: Options, check: Check | None) -> ReadRequest:
        """Tokenise a request; refuse one that is blank, too long for a window, or makes no sense."""
        request = read_question(self._vocabulary, context, question, options, check)
        windows = self._layout.windows(request.question_tokens, request.choice_tokens, request.context_tokens)
        return ReadRequest(request, tuple(windows), wants_text_vector=options.adapter is not None)

    def read(self, rows: Sequence[Row], begin: Begin) -> Generator[None, None, Decoding]:
        """Read rows, and return them before their first step.

        It pauses before each window of a request but its first, and before one after others that are long.
        """
        unread = set() if any(row.request.request.choices for row in rows) else {"label_evidence", "word_evidence"}
        if not any(row.request.wants_text_vector for row in rows):
            unread.add("text_vector")
        wanted = [name for name in self.outputs if name not in unread]
        flat = [(n, window) for n, row in enumerate(rows) for window in row.request.windows]
        if self.on_device is None:
            read = WindowsRead(self, wanted)
        else:
            read = self.on_device(self, wanted, [window for _, window in flat])
        num_pieces = 0  # since the last pause
        left, firsts = iter(flat), []
        while some := list(islice(left, self._num_together)):
            if some[0][1] is not rows[some[0][0]].request.windows[0] or num_pieces > _MOST_IN_TURN:
                num_pieces = 0
                yield
            num_pieces += sum(len(window.pieces) for _, window in some)
            firsts += read.run([window for _, window in some])
        requests = [row.request.request for row in rows]
        decoding = begin(_sizes_of(requests))
        words, buffers = WordsOf(decoding.sizes), decoding.buffers
        for (n, window), first in zip(flat, firsts, strict=True):
            words.add(n, requests[n], window, first)
        for name, array in _described(rows, buffers).items():
            buffers.write(name, array)
        read.fill(decoding, words)
        null = self._sum_up(rows, read, [n for n, _ in flat], buffers)
        for n, row in enumerate(rows):
            _keep(row, read, words, n, float(null[n, 0]))
            if row.request.wants_text_vector and row.text_vector is None:  # of a bundle that was exported without it
                context_CD = buffers.read("context")[n, : requests[n].num_context_tokens]
                row.text_vector = _of_length_1(context_CD.sum(axis=0))
        return decoding

    def _sum_up(self, rows: Sequence[Row], read: "WindowsRead", owners: Sequence[int], buffers: HostBuffers) -> Array:
        """Put what windows say as a whole into their requests' rows; return the scores of there being no answer."""
        summary_BD, null_BX = buffers.zeros("summary"), buffers.zeros("null")
        null_BX[: len(rows)] = np.inf
        for n, summary_D, null_X in zip(owners, read.of_windows("summary"), read.of_windows("null"), strict=True):
            summary_BD[n] += summary_D / len(rows[n].request.windows)
            null_BX[n] = np.minimum(null_BX[n], null_X)
        # quotations are decided by the scores themselves, where refusing is not favoured
        is_free = [not (row.request.request.choices or row.request.request.options.quotes) for row in rows]
        null_BX[: len(rows)][is_free, 0] += self.refusal_offset
        buffers.write("summary", summary_BD)
        buffers.write("null", null_BX)
        if "text_vector" in read.names:
            vectors = read.of_windows("text_vector")
            for n, row in enumerate(rows):
                total = vectors[[owner == n for owner in owners]].sum(axis=0)
                if row.request.wants_text_vector:
                    row.text_vector = _of_length_1(total)
        return null_BX


def _of_length_1(vector: Array) -> Array:
    return vector / max(float(np.linalg.norm(vector)), 1e-6)


class WindowsRead:
    """What a reader says of windows, on the host, and of their words, numbered from 1 on over all windows."""

    def __init__(self, reader: PieceReader, names: Sequence[str]) -> None:
        self.names = names
        self._reader = reader
        self._parts: dict[str, list[Array]] = {name: [] for name in names}
        self._rows: Buffers = {}
        self._num_words = 0

    def run(self, windows: Sequence[Window]) -> list[int]:
        """Read windows; return the number of the first word of each."""
        inputs = padded_windows(windows)
        pieces = inputs.pop("pieces")
        options = run_options(self._reader.session, pieces.size)
        with denormals_as_zero():
            [inputs["vectors"]] = self._reader.embeddings.run(None, {"pieces": pieces})
            found = self._reader.session.run(self.names, inputs, options)
        for name, array in zip(self.names, found, strict=True):
            self._parts[name].append(array)
        return self._number(len(windows), inputs["firsts"].shape[1])

    def _number(self, num_windows: int, num_words: int) -> list[int]:
        first = self._num_words + 1
        self._num_words += num_windows * num_words
        return [first + n * num_words for n in range(num_windows)]

    def of_windows(self, name: str) -> Array:
        return np.concatenate(self._parts[name])

    def of_words(self, name: str, numbers: npt.NDArray[np.int64]) -> Array:
        """Return an output for words by their numbers; zeros for 0."""
        if name not in self._rows and len(numbers) and (read := self._of_one_window(name, numbers)) is not None:
            return read
        if name not in self._rows:
            parts = [np.moveaxis(part, 1, 2) if part.ndim == 4 else part for part in self._parts.pop(name)]
            parts = [part.reshape(-1, *part.shape[2:]) for part in parts]
            self._rows[name] = np.concatenate([np.zeros_like(parts[0][:1]), *parts])
        found = self._rows[name].take(numbers, axis=0)
        return np.moveaxis(found, 2, 1) if found.ndim == 4 else found

    def _of_one_window(self, name: str, numbers: npt.NDArray[np.int64]) -> Array | None:
        """Return what ``of_words`` does where there is one window of one request, without copying what is not asked."""
        parts = self._parts[name]
        if len(parts) > 1 or len(parts[0]) > 1 or (numbers.ndim > 1 and len(numbers) > 1) or numbers.min() < 1:
            return None
        found: Array = parts[0][0].take(numbers.ravel() - 1, axis=int(parts[0].ndim == 4))
        return found[None] if numbers.ndim > 1 else found

    def fill(self, decoding: Decoding, words: "WordsOf") -> None:
        for target, (name, numbers) in self._reader.targets.items():
            decoding.buffers.write(target, self.of_words(name, words.numbers[numbers]))
            if name.startswith(("inputs", "keys", "values")):  # large, and not read again
                self._forget(name)
        self._forget("words")

    def _forget(self, name: str) -> None:
        self._rows.pop(name, None)
        self._parts.pop(name, None)


class WordsOf:
    """Which of the words that were read stand where in a batch: their numbers, 0 for none."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        axes = {"context": "C", "question": "Q", "slots": "U"}
        self.numbers = {name: np.zeros((sizes["B"], sizes[axis]), np.int64) for name, axis in axes.items()}

    def add(self, row: int, request: Request, window: Window, first: int) -> None:
        """Place the words of a window, the first of which has a number."""
        counted, num_words = window.counted, len(request.question_tokens)
        num_before = num_words + window.labels.stop - window.labels.start
        start = first + num_before - window.words.start
        numbers = np.arange(start + counted.start, start + counted.stop)
        self.numbers["context"][row, counted] = numbers
        self.numbers["slots"][row, request.slots.context[counted]] = numbers
        if window.words.start > 0:
            return
        labels = slice(num_words + window.labels.start, num_words + window.labels.stop)
        pairs = [(labels, slice(num_words, num_before))]
        if window.labels.start == 0:
            pairs.append((slice(0, num_words), slice(0, num_words)))
        for to, of in pairs:
            numbers = np.arange(first + of.start, first + of.stop)
            self.numbers["question"][row, to] = numbers
            self.numbers["slots"][row, request.slots.question[to]] = numbers


def _targets(num_layers: int) -> dict[str, tuple[str, str]]:
    """Return what a step reads of words: its name -> the reader's output, and where the words stand."""
    targets = {"context": ("words", "context"), "question": ("words", "question"), "slot_inputs": ("inputs", "slots")}
    targets |= {f"{text}_{name}": (name, text) for text in ("context", "question") for name in ("start", "end")}
    names = [f"{name}_{i}" for i in range(num_layers) for name in ("keys", "values")]
    return targets | {f"context_{name}": (name, "context") for name in names}


def _described(rows: Sequence[Row], buffers: HostBuffers) -> Buffers:
    """Return what is known of requests without reading them; rows of nobody have one word, so that all is a number."""
    masks, slots_of = ("context_mask", "question_mask", "pointed"), ("context_slots", "question_slots", "slot_ids")
    known = {name: buffers.zeros(name) for name in (*masks, *slots_of, "allowed")}
    for n, row in enumerate(rows):
        request, slots = row.request.request, row.request.request.slots
        num_context, num_question = len(slots.context), len(slots.question)
        known["context_mask"][n, :num_context] = True
        known["question_mask"][n, :num_question] = True
        known["pointed"][n, len(request.question_tokens) if request.choices else 0 : num_question] = True
        known["allowed"][n] = (0, 1, 0) if request.choices else [s in request.options.sources for s in Source]
        known["context_slots"][n, :num_context] = slots.context
        known["question_slots"][n, :num_question] = slots.question
        known["slot_ids"][n, : len(slots.pieces)] = slots.generator_ids
    for name in masks:
        known[name][len(rows) :, 0] = True
    return known


def _keep(row: Row, read: WindowsRead, words: WordsOf, place: int, null: float) -> None:
    """Give a row what its options need: what decides for its choices, scores, and room for where its steps point."""
    request = row.request.request
    options = request.options
    context_C = words.numbers["context"][place, : request.num_context_tokens]
    if request.choices and "label_evidence" in read.names:
        first = len(request.question_tokens)
        labels_L = words.numbers["question"][place, first : first + len(request.choices)]
        evidence = read.of_words("label_evidence", labels_L), read.of_words("word_evidence", context_C)
        row.evidence = EvidenceVectors(*(part.astype(np.float32) for part in evidence))
    if options.quotes or options.alternatives:
        start_C, end_C = (read.of_words(name, context_C).astype(np.float32) for name in ("start", "end"))
        row.scores = QuotationScores(start_C, end_C, null)
    if options.explain:
        row.pointers = []


def padded_windows(windows: Sequence[Window], num_words: int = 0) -> dict[str, Array]:
    """Return the inputs of windows, with zeros after those that are shorter than the longest, or than ``num_words``."""
    padded: dict[str, Array] = {}
    for name in ("pieces", *(name for name in g.PIECES_INPUTS if name != "vectors")):
        rows: list[npt.NDArray[np.int64]] = [getattr(window, name) for window in windows]
        least = num_words if name in ("firsts", "lasts") else 0
        array = np.zeros((len(rows), max(least, *map(len, rows))), np.int64)
        for target, given in zip(array, rows, strict=True):
            target[: len(given)] = given
        padded[name] = array
    return padded


class WordReader:
    """Reads requests as words with vectors. ``shared`` are the decoder's inputs for the generator's pieces."""

    num_fields: Final = NUM_PLAIN_FIELDS
    left_out: Final = g.NOT_OF_WORDS

    def __init__(self, bundle: Bundle, graphs: Graphs, open_graph: Open) -> None:
        if bundle.vectors is None:
            raise ValueError("the bundle has no vectors of words")
        sizes = bundle.manifest.sizes
        self.refusal_offset = 0.0  # it never refuses
        self._vocabulary = bundle.vocabulary
        self._vectors: WordVectors = bundle.vectors
        self._outputs = g.by_layer(g.WORDS_OUTPUTS, sizes.num_layers)
        self._sizes = {"D": sizes.width, "H": sizes.num_heads, "W": sizes.head_width, "V": sizes.num_generated}
        self._session = open_graph(graphs.reader, g.WORDS_INPUTS, self._outputs)
        try:
            self.shared: Buffers = {"generator_inputs": self._project()}
        except Exception as error:  # it runs here for the first time; onnxruntime raises many types
            message = f"{graphs.reader}: does not run with the dimensions that the manifest states: {error}"
            raise BundleError(message) from error

    def tokenise(self, context: str, question: str, options: Options, check: Check | None) -> ReadRequest:
        """Tokenise a request; refuse one that is blank, or asks for more than such a model can answer."""
        for field in options.fields:
            message = f"This model answers plain questions only: it does not take {field}."
            hint = f"Leave {field} out, or serve a model with a pretrained reader."
            raise InputError("option_not_supported", field, message, hint)
        plain = replace(options, reads_lists=False)
        return ReadRequest(read_question(self._vocabulary, context, question, plain, check))

    def read(self, rows: Sequence[Row], begin: Begin) -> Generator[None, None, Decoding]:
        yield from ()
        requests = [row.request.request for row in rows]
        decoding = begin(_sizes_of(requests))
        inputs = self._inputs(requests, decoding.sizes)
        slot_ids = np.full((decoding.sizes["B"], decoding.sizes["U"]), self._sizes["V"], np.int64)
        for n, request in enumerate(requests):
            slot_ids[n, : len(request.slots.pieces)] = request.slots.generator_ids
        for name, array in (*inputs.items(), ("slot_ids", slot_ids)):
            if name.endswith(("_slots", "_ids")):
                decoding.buffers.write(name, array)
        self._run(inputs, lambda binding, name: decoding.buffers.bind_output(binding, name, _FIRST.get(name, name)))
        return decoding

    def encode(self, requests: Sequence[Request]) -> Buffers:
        """Return the graph's outputs for a batch, for comparing with another implementation."""
        sizes = _sizes_of(requests)
        return self._outputs_of(self._inputs(requests, sizes), sizes)

    def _inputs(self, requests: Sequence[Request], sizes: Mapping[str, int]) -> Buffers:
        """Return padded inputs; rows of nobody have one word."""
        inputs = allocate(g.WORDS_INPUTS, {**sizes, "M": self._vectors.width})
        for name in ("context_lengths", "question_lengths"):
            inputs[name].fill(1)
        for n, request in enumerate(requests):
            slots, lengths = request.slots, (request.num_context_tokens, request.num_question_tokens)
            self._vectors.lookup(slots.words, out=inputs["vectors"][n, : len(slots.pieces)])
            inputs["context_slots"][n, : lengths[0]] = slots.context
            inputs["question_slots"][n, : lengths[1]] = slots.question
            inputs["context_lengths"][n], inputs["question_lengths"][n] = lengths
        return inputs

    def _outputs_of(self, inputs: Buffers, sizes: Mapping[str, int]) -> Buffers:
        outputs = allocate(self._outputs, {**self._sizes, **sizes})
        self._run(inputs, lambda binding, name: bind_output(binding, name, outputs[name]))
        return outputs

    def _run(self, inputs: Buffers, bind: Callable[[Any, str], None]) -> None:
        num_tokens = sum(inputs[name].size for name in ("context_slots", "question_slots"))
        binding = self._session.io_binding()
        for name in g.WORDS_INPUTS:
            binding.bind_cpu_input(name, inputs[name])
        for name in self._outputs:
            bind(binding, name)
        with denormals_as_zero():
            self._session.run_with_iobinding(binding, run_options(self._session, num_tokens))

    def _project(self) -> npt.NDArray[np.float32]:
        """Return the decoder's inputs for all generator pieces, [V, D]: the graph projects the slots of any request."""
        words = [word_of(piece) for piece in self._vocabulary.pieces]
        projected = np.empty((self._sizes["V"], self._sizes["D"]), np.float32)
        for first in range(0, len(words), _LOOKED_UP_TOGETHER):
            vectors = self._vectors.lookup(words[first : first + _LOOKED_UP_TOGETHER])
            one, length = np.zeros((1, 1), np.int64), np.ones(1, np.int64)
            inputs: Buffers = {"vectors": vectors[None], "context_slots": one, "question_slots": one}
            inputs |= {"context_lengths": length, "question_lengths": length}
            outputs = self._outputs_of(inputs, {"B": 1, "C": 1, "Q": 1, "U": len(vectors)})
            projected[first : first + len(vectors)] = outputs["slot_inputs"][0]
        return projected


def _sizes_of(requests: Sequence[Request]) -> dict[str, int]:
    return {
        "B": len(requests),
        "C": max(request.num_context_tokens for request in requests),
        "Q": max(len(request.slots.question) for request in requests),
        "U": max(len(request.slots.pieces) for request in requests),
    }
