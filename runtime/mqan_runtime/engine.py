"""Answers questions with a bundle that has a pretrained reader: text in, attributed answers out. Needs no torch."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer.calibration import Temperatures
from mqan_core.answer.decide import REPEATS, count_decided, find_repeats
from mqan_core.answer.explain import Pointers
from mqan_core.answer.finish import Decoded, finish
from mqan_core.answer.trace import read_words
from mqan_core.answer.types import Answer, AnswerToken
from mqan_core.ask.options import PLAIN, Options
from mqan_core.ask.request import Check, read_question
from mqan_core.bundle import Bundle, open_bundle
from mqan_core.errors import BundleError
from mqan_core.manifest import EMBEDDINGS, Device, Graphs
from mqan_core.text.layout import Layout
from mqan_runtime.answering_graphs import (
    EMBEDDINGS_INPUTS,
    EMBEDDINGS_OUTPUTS,
    EVIDENCE_CONSTANTS,
    NUM_FIELDS,
    READER_INPUTS,
    reader_outputs,
    step_constants,
    step_state,
)
from mqan_runtime.graphs import NEXT
from mqan_runtime.row_engine import Ended, Row, RowEngine
from mqan_runtime.session import CUDA, Precision, Provider, has_cuda, is_int8, open_session
from mqan_runtime.step_loop import Array, Buffers, Decoding, StepLoop
from mqan_runtime.window_texts import TextReader, WindowedRequest, evidence_of, scores_of

_WINDOWS_TOGETHER: Final = 32  # on a GPU

Trace = npt.NDArray[np.float32]


class AnsweringLoop(StepLoop):
    """Takes the steps of answers; one that says the same for ever is ended. Its keys are rows of windowed requests."""

    def watch(self, decoding: Decoding) -> None:
        for place in np.flatnonzero(decoding.is_live):
            request: WindowedRequest = decoding.keys[place].request
            if request.pointers is not None:
                pointed = (
                    decoding.state[f"{text}_pointer"][place].astype(np.float32) for text in ("context", "question")
                )
                context_C, question_Q = pointed
                request.pointers.append(
                    Pointers(context_C[: request.num_context_tokens], question_Q[: request.num_question_tokens])
                )

    def ended(self, state: Mapping[str, Array], max_tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        ended = super().ended(state, max_tokens)
        position: npt.NDArray[np.int64] = state["position"]  # type: ignore[assignment]
        for row in np.flatnonzero((position > 0) & (position % REPEATS == 0) & ~ended):
            ended[row] = find_repeats(state["trace"][row, : position[row]]) is not None  # type: ignore[arg-type]
        return ended

    def hand_out(
        self, state: Mapping[str, Array], row: int
    ) -> tuple[Trace, npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        trace: Trace = super().hand_out(state, row)
        masses, attention = (state[name][row].astype(np.float32) for name in ("masses", "evidence"))
        return trace, masses, attention


class Engine(RowEngine[WindowedRequest]):
    """A bundle with a pretrained reader, ready to answer.

    It may be called from any thread, for one decoding from one at a time.

    Args:
        bundle: what to run.
        provider, num_threads, precision: as of ``open``.
        num_together: most windows that are read together, padded; by default 1 on a CPU.

    Attributes:
        provider: execution provider that really runs it.
    """

    bundle: Bundle
    loop: AnsweringLoop

    def __init__(
        self,
        bundle: Bundle,
        *,
        provider: Provider = "auto",
        num_threads: int = 1,
        precision: Precision = "auto",
        num_together: int | None = None,
    ) -> None:
        graphs = _choose(bundle, provider, precision)
        sizes = bundle.manifest.sizes
        constants, state = step_constants(sizes.num_layers), step_state(sizes.num_layers)
        named = {
            graphs.reader: (READER_INPUTS, reader_outputs(sizes.num_layers, sizes.evidence_width)),
            EMBEDDINGS: (EMBEDDINGS_INPUTS, EMBEDDINGS_OUTPUTS),
            graphs.decoder_step: ({**constants, **state}, {NEXT + name: axes for name, axes in state.items()}),
        }
        sessions = {
            name: open_session(
                bundle.read_graph(name), name, list(inputs), list(outputs), provider=provider, num_threads=num_threads
            )
            for name, (inputs, outputs) in named.items()
        }
        self.bundle = bundle
        self.precision: str = graphs.precision
        self.provider: str = sessions[graphs.reader].get_providers()[0]
        self._temperatures = Temperatures(bundle.manifest.calibration)
        if bundle.word_pieces is None:
            raise ValueError("the bundle has no word pieces")
        self.layout = Layout(bundle.word_pieces)
        lengths = {
            "D": sizes.width,
            "H": sizes.num_heads,
            "W": sizes.head_width,
            "V": sizes.num_generated,
            "E": sizes.evidence_width,
        }
        if num_together is None:
            num_together = _WINDOWS_TOGETHER if self.provider == CUDA else 1
        reads = (sessions[EMBEDDINGS], sessions[graphs.reader])
        offset = bundle.manifest.refusal_offset
        self.reader = TextReader(*reads, {**lengths, "F": NUM_FIELDS}, sizes.num_layers, num_together, offset)
        self.loop = AnsweringLoop(sessions[graphs.decoder_step], constants, state)

    @classmethod
    def open(
        cls, folder: Path, *, provider: Provider = "auto", num_threads: int = 1, precision: Precision = "auto"
    ) -> "Engine":
        """Open and verify a bundle and make it ready; arguments and errors are those of ``open_engine``."""
        bundle = open_bundle(folder)
        return cls(bundle, provider=provider, num_threads=num_threads, precision=precision)

    @property
    def max_answer_tokens(self) -> int:
        return self.bundle.manifest.max_positions - 1

    def read(
        self, context: str, question: str, options: Options = PLAIN, check: Check | None = None
    ) -> WindowedRequest:
        """Tokenise a context, a question and what else is asked for.

        Raises:
            InputError: one of them holds nothing but white space, the question is too long for a window, or
                the options make no sense together.
        """
        request = read_question(self.bundle.vocabulary, context, question, options, check)
        windows = self.layout.windows(request.question_tokens, request.choice_tokens, request.context_tokens)
        return WindowedRequest(request, tuple(windows), request.options)

    def begin(self, rows: Sequence[Row[WindowedRequest]]) -> Generator[None, None, Decoding]:
        constants, sizes = yield from self.reader.read([row.request for row in rows])
        rows = [_with_what_is_kept(row, constants, place) for place, row in enumerate(rows)]
        for name in EVIDENCE_CONSTANTS:
            constants.pop(name, None)  # no step reads them
        # a choice and a quotation are made in one step: no word of it follows
        most = [
            0 if row.request.request.choices or row.request.options.quotes else row.max_answer_tokens for row in rows
        ]
        return self.loop.begin(constants, rows, np.array(most, np.int64), sizes)

    def write(self, ended: Ended[WindowedRequest]) -> Answer:
        row, request = ended.row, ended.row.request.request
        trace, masses, attention = ended.decoded
        first = len(request.question_tokens)  # of the choices' separators
        decoded = Decoded(
            trace,
            masses[first : first + len(request.choices)].tolist(),
            attention[: request.num_context_tokens],
            row.request.scores,
            row.request.pointers,
            row.request.evidence,
            len(row.request.windows),
        )
        return finish(decoded, request, self.bundle.vocabulary, self._temperatures, row.max_answer_tokens)

    def read_decided(self, row: Row[WindowedRequest], trace: Trace, first: int) -> list[AnswerToken]:
        if row.request.options.min_probability is not None:
            return []  # whether there is an answer is known at its end
        return read_words(trace[first : count_decided(trace)], row.request.request, self.bundle.vocabulary)


def _with_what_is_kept(row: Row[WindowedRequest], constants: Buffers, place: int) -> Row[WindowedRequest]:
    """Return a row with what its options need: the scores of its words, and room for where its steps point."""
    windowed, options = row.request, row.request.options
    needs_scores = options.quotes or options.alternatives
    if windowed.request.choices:
        windowed = replace(windowed, evidence=evidence_of(constants, place, windowed.request))
        row = replace(row, request=windowed)
    if not (needs_scores or options.explain):
        return row
    scores = scores_of(constants, place, windowed.num_context_tokens) if needs_scores else None
    return replace(row, request=replace(windowed, scores=scores, pointers=[] if options.explain else None))


def _choose(bundle: Bundle, provider: Provider, precision: Precision) -> Graphs:
    """Return the graphs to run: those for the device, or of the precision that was asked for.

    Raises:
        BundleError: the bundle has none.
        ValueError: int8 was asked for on a GPU.
    """
    int8 = is_int8(provider, precision)
    device: Device = "cuda" if provider == "cuda" or (provider == "auto" and has_cuda()) else "cpu"
    graphs = bundle.manifest.graphs
    if precision == "auto" and device in graphs:
        return graphs[device]
    found = next((some for some in graphs.values() if (some.precision == "int8") == int8), None)
    if found is None:
        raise BundleError(f"bundle {bundle.folder}: has no graphs for {device} with precision {precision}")
    return found
