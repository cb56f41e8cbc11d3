"""Answers questions with a bundle, in process: text in, attributed answers out. Needs no torch."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.answer import Answer
from mqan_core.attribution import attribute
from mqan_core.bundle import CONTEXTUAL, DECODER_STEP, ENCODER, Bundle, open_bundle
from mqan_core.calibration import calibrate
from mqan_core.errors import BundleError, InputError, MqanError
from mqan_core.options import PLAIN, Options
from mqan_core.request import Request, read_request
from mqan_core.text import word_of
from mqan_runtime.decoding import Batch, Decoding, GreedyLoop, Trace
from mqan_runtime.device_loop import SIZES, DeviceLoop, fix_sizes
from mqan_runtime.graphs import (
    CONTEXTUAL_INPUTS,
    CONTEXTUAL_OUTPUTS,
    NEXT,
    encoder_inputs,
    encoder_outputs,
    step_constants,
    step_state,
)
from mqan_runtime.quantize import quantize_contextual, quantize_encoder, quantize_step
from mqan_runtime.session import CUDA, Precision, Provider, is_int8, open_session
from mqan_runtime.window_reader import WindowReader

_WINDOWS_TOGETHER = 32  # of contexts, on a GPU: 0.4 GB of attention weights at most
_LOOKED_UP_TOGETHER = 1024  # pieces of the generator: the vectors of all would be a fifth of the memory


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """What a row of a decoding answers."""

    key: Any
    request: Request
    max_answer_tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """What has been decoded of a request, to be written as an answer."""

    row: _Row
    trace: Trace


class Engine:
    """A bundle, ready to answer.

    It may be called from any thread, for one decoding from one at a time; on a GPU always from the thread that made it.

    Args:
        bundle: what to run.
        provider, num_threads, precision: as of ``open``.
        places: rows and context tokens of the fixed buffers to decode in, as on a GPU (``DeviceLoop``), where windows
            are read together, too; on a CPU there are none by default.

    Attributes:
        bundle: what is run.
        provider: execution provider that really runs it.
        precision: ``float32``, or ``int8`` where the products that dominate are 8-bit.
        loop: the loop over token ids below the text.
        windows: what runs the contextual encoder, if the bundle has one.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        provider: Provider = "auto",
        num_threads: int = 1,
        precision: Precision = "auto",
        places: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.bundle = bundle
        int8 = is_int8(provider, precision)
        self.precision = "int8" if int8 else "float32"
        dimensions = bundle.manifest.dimensions
        num_layers = dimensions.num_layers
        self.windows: WindowReader | None = None
        if bundle.contextual is not None:  # the largest: what is free behind it serves the others
            contextual = open_session(
                bundle.contextual.graph,
                CONTEXTUAL,
                list(CONTEXTUAL_INPUTS),
                list(CONTEXTUAL_OUTPUTS),
                provider=provider,
                num_threads=num_threads,
                rewrite=partial(quantize_contextual, ranges=bundle.input_ranges[CONTEXTUAL]) if int8 else None,
            )
            num_together = _WINDOWS_TOGETHER if contextual.get_providers()[0] == CUDA or places is not None else 1
            self.windows = WindowReader(contextual, bundle.contextual.pieces, dimensions.width, num_together)
        encoder = open_session(
            bundle.encoder,
            ENCODER,
            list(encoder_inputs(dimensions)),
            list(encoder_outputs(num_layers)),
            provider=provider,
            num_threads=num_threads,
            rewrite=partial(quantize_encoder, ranges=bundle.input_ranges[ENCODER]) if int8 else None,
        )
        state = step_state(dimensions)
        step = open_session(
            bundle.decoder_step,
            DECODER_STEP,
            [*step_constants(num_layers), *state],
            [NEXT + name for name in state],
            provider=provider,
            num_threads=num_threads,
            rewrite=partial(quantize_step, ranges=bundle.input_ranges[DECODER_STEP]) if int8 else None,
        )
        self.provider: str = step.get_providers()[0]

        def open_captured(sizes: Mapping[str, int]) -> onnxruntime.InferenceSession:
            axes = {**step_constants(num_layers), **state}
            return open_session(
                bundle.decoder_step,
                DECODER_STEP,
                list(axes),
                [NEXT + name for name in state],
                provider=provider,
                num_threads=num_threads,
                rewrite=partial(fix_sizes, axes=axes, sizes=sizes),
                is_captured=True,
            )

        words = [word_of(piece) for piece in bundle.vocabulary.pieces]
        generator_vectors = (
            bundle.vectors.lookup(words[first : first + _LOOKED_UP_TOGETHER])
            for first in range(0, len(words), _LOOKED_UP_TOGETHER)
        )
        graphs = (encoder, step, dimensions, generator_vectors)
        self.loop: GreedyLoop
        try:
            if self.provider == CUDA or places is not None:
                self.loop = DeviceLoop(
                    *graphs,
                    open_captured,
                    device="cuda" if self.provider == CUDA else "cpu",
                    max_positions=bundle.manifest.max_positions,
                    sizes=SIZES if places is None else places,
                )
            else:
                self.loop = GreedyLoop(*graphs)
        except MqanError:
            raise
        except Exception as error:  # the encoder runs here for the first time; onnxruntime raises many types
            raise BundleError(
                f"{ENCODER}: does not run with the dimensions that the manifest states: {error}"
            ) from error

    @classmethod
    def open(
        cls, folder: Path, *, provider: Provider = "auto", num_threads: int = 1, precision: Precision = "auto"
    ) -> "Engine":
        """Open and verify a bundle and make it ready.

        Args:
            folder: the bundle.
            provider: ``cpu``, ``cuda``, or ``auto`` for a GPU when there is one.
            num_threads: threads within an operator.
            precision: ``float32`` computes what the checkpoint does to 1e-4; ``int8`` (a CPU's ``auto``) is faster.

        Raises:
            BundleError: the bundle is damaged, incomplete, of an unknown version, or not allowed.
            RuntimeError: ``cuda`` was asked for and does not run here.
            ValueError: ``int8`` was asked for on a GPU.
        """
        return cls(open_bundle(folder), provider=provider, num_threads=num_threads, precision=precision)

    @property
    def max_answer_tokens(self) -> int:
        """Most tokens that an answer can have: the decoder's positions less one for the end."""
        return self.bundle.manifest.max_positions - 1

    def read(self, context: str, question: str, options: Options = PLAIN) -> Request:
        """Tokenise a context and a question.

        Raises:
            InputError: the context or the question holds nothing but white space, or more is asked for than
                such a model can answer.
        """
        if options.choices:
            raise InputError(
                "choices_not_supported",
                "choices",
                "This model does not choose from a list of labels.",
                "Name the labels in the question, or serve a model of bundle format 6.",
            )
        if not options.is_plain:
            raise InputError(
                "options_not_supported",
                "question",
                "This model answers plain questions only.",
                "Leave the options out, or serve a model of bundle format 6.",
            )
        return read_request(self.bundle.vocabulary, context, question)

    def answer(self, requests: Sequence[Request], max_answer_tokens: Sequence[int]) -> list[Answer]:
        """Answer a batch; each answer is what its request would get alone.

        Args:
            requests: at least one.
            max_answer_tokens: most tokens of each answer, 1 to ``max_answer_tokens``.

        Raises:
            ValueError: there are no requests, or a limit is out of range.
        """
        decoding = self.start(requests, max_answer_tokens, range(len(requests)))
        answers: dict[int, Answer] = {}
        while decoding.num_live:
            answers.update((place, self.write(ended)) for place, ended in self.step(decoding))
        return [answers[place] for place in range(len(requests))]

    def start(self, requests: Sequence[Request], max_answer_tokens: Sequence[int], keys: Sequence[Any]) -> Decoding:
        """Encode a batch, whose answers then come from ``step``, each as soon as it has ended.

        Args:
            requests: at least one.
            max_answer_tokens: most tokens of each answer, 1 to ``max_answer_tokens``.
            keys: what the caller knows each request by.

        Raises:
            ValueError: there are no requests, or a limit is out of range.
        """
        if not requests or not len(requests) == len(max_answer_tokens) == len(keys):
            raise ValueError(
                f"{len(requests)} requests with {len(max_answer_tokens)} limits and {len(keys)} keys; "
                "expected one or more each"
            )
        if not all(1 <= limit <= self.max_answer_tokens for limit in max_answer_tokens):
            raise ValueError(
                f"max_answer_tokens must be 1 to {self.max_answer_tokens}, found {list(max_answer_tokens)}"
            )
        rows = [_Row(*row) for row in zip(keys, requests, max_answer_tokens, strict=True)]
        return self.loop.start(self.pad(requests, max_answer_tokens), rows)

    def step(self, decoding: Decoding) -> list[tuple[Any, Ended]]:
        """Take one step, of at least one row; return the keys of those that it ended, and what to ``write``."""
        return [(row.key, Ended(row, trace)) for row, trace in self.loop.step(decoding)]

    def write(self, ended: Ended) -> Answer:
        """Turn what was decoded into text, with the sources of its words."""
        row = ended.row
        answer = attribute(ended.trace, row.request, self.bundle.vocabulary, row.max_answer_tokens)
        return calibrate(answer, self.bundle.manifest.calibration)

    def drop(self, decoding: Decoding, keys: Collection[Any]) -> None:
        """Let rows leave whose answers nobody waits for."""
        for row in decoding.live_keys:
            if any(row.key is key for key in keys):
                decoding.drop(row)

    def merge(self, decodings: Sequence[Decoding]) -> Decoding:
        """Return decodings, of which at least one row has not left, as one; they are not to be used again."""
        return self.loop.merge(decodings)

    def pad(self, requests: Sequence[Request], max_answer_tokens: Sequence[int]) -> Batch:
        """Read requests in their contexts, where the model does, and pad them to one batch for the loop."""
        dimensions = self.bundle.manifest.dimensions
        slot_ids = _pad_rows([r.slots.generator_ids for r in requests], dimensions.num_generated)
        vectors = np.zeros((*slot_ids.shape, dimensions.vector_width), np.float32)
        for i, request in enumerate(requests):
            self.bundle.vectors.lookup(request.slots.words, out=vectors[i, : len(request.slots.pieces)])
        inputs: dict[str, npt.NDArray[np.generic]] = {
            "vectors": vectors,
            "context_slots": _pad_rows([r.slots.context for r in requests], 0),
            "question_slots": _pad_rows([r.slots.question for r in requests], 0),
            "context_lengths": np.array([r.num_context_tokens for r in requests], np.int64),
            "question_lengths": np.array([r.num_question_tokens for r in requests], np.int64),
        }
        if self.windows is not None:
            inputs.update(self.windows.read(requests))
        return Batch(inputs, slot_ids, np.array(max_answer_tokens, np.int64))


def _pad_rows(rows: Sequence[npt.NDArray[np.int32]], value: int) -> npt.NDArray[np.int64]:
    padded = np.full((len(rows), max(len(row) for row in rows)), value, np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded
