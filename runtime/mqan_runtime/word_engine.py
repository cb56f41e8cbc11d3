"""Answers questions with a bundle of the paper's network: text in, attributed answers out. Needs no torch."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.answer.trace import attribute, read_words
from mqan_core.answer.types import Answer, AnswerToken
from mqan_core.ask.options import PLAIN, Options
from mqan_core.ask.request import Check, Request, read_question
from mqan_core.bundle import Bundle, open_bundle
from mqan_core.errors import BundleError, InputError, MqanError
from mqan_core.text.tokens import word_of
from mqan_runtime.decoding import Batch, Decoding, GreedyLoop
from mqan_runtime.device_loop import SIZES, DeviceLoop, fix_sizes
from mqan_runtime.graphs import ENCODER_INPUTS, NEXT, encoder_outputs, step_constants, step_state
from mqan_runtime.row_engine import Ended, Row, RowEngine
from mqan_runtime.session import CUDA, Precision, Provider, open_session

_LOOKED_UP_TOGETHER = 1024  # pieces of the generator: the vectors of all would be a fifth of the memory


class WordEngine(RowEngine[Request]):
    """A bundle, ready to answer.

    It may be called from any thread, for one decoding from one at a time; on a GPU always from the thread that made it.

    Args:
        bundle: what to run.
        provider, num_threads: as of ``open``.
        places: rows and context tokens of the fixed buffers to decode in, as on a GPU (``DeviceLoop``); on a CPU there
            are none by default.

    Attributes:
        provider: execution provider that really runs it.
    """

    precision = "float32"
    bundle: Bundle
    loop: GreedyLoop

    def __init__(
        self,
        bundle: Bundle,
        *,
        provider: Provider = "auto",
        num_threads: int = 1,
        precision: Precision = "auto",
        places: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        if precision == "int8":
            raise ValueError("a reader of words has graphs in float32 only: set precision to auto or float32")
        self.bundle = bundle
        graphs, dimensions = bundle.manifest.graphs["cpu"], bundle.manifest.sizes
        if bundle.vectors is None:
            raise ValueError("the bundle has no vectors of words")
        self.vectors = bundle.vectors
        constants, state = step_constants(dimensions.num_layers), step_state(dimensions.num_layers)
        open_here = partial(open_session, provider=provider, num_threads=num_threads)
        outputs = list(encoder_outputs(dimensions.num_layers))
        encoder = open_here(bundle.read_graph(graphs.reader), graphs.reader, list(ENCODER_INPUTS), outputs)
        axes = {**constants, **state}
        open_step = partial(
            open_here,
            bundle.read_graph(graphs.decoder_step),
            graphs.decoder_step,
            list(axes),
            [NEXT + name for name in state],
        )
        step = open_step()
        self.provider: str = step.get_providers()[0]

        def open_captured(sizes: Mapping[str, int]) -> onnxruntime.InferenceSession:
            return open_step(fix=partial(fix_sizes, axes=axes, sizes=sizes))

        words = [word_of(piece) for piece in bundle.vocabulary.pieces]
        generator_vectors = (
            self.vectors.lookup(words[first : first + _LOOKED_UP_TOGETHER])
            for first in range(0, len(words), _LOOKED_UP_TOGETHER)
        )
        of_loop = (encoder, step, dimensions, generator_vectors)
        try:
            if self.provider == CUDA or places is not None:
                self.loop = DeviceLoop(
                    *of_loop,
                    open_captured,
                    device="cuda" if self.provider == CUDA else "cpu",
                    max_positions=bundle.manifest.max_positions,
                    sizes=SIZES if places is None else places,
                )
            else:
                self.loop = GreedyLoop(*of_loop)
        except MqanError:
            raise
        except Exception as error:  # the encoder runs here for the first time; onnxruntime raises many types
            raise BundleError(
                f"{graphs.reader}: does not run with the dimensions that the manifest states: {error}"
            ) from error

    @classmethod
    def open(
        cls, folder: Path, *, provider: Provider = "auto", num_threads: int = 1, precision: Precision = "auto"
    ) -> "WordEngine":
        """Open and verify a bundle and make it ready; arguments and errors are those of ``open_engine``."""
        return cls(open_bundle(folder), provider=provider, num_threads=num_threads, precision=precision)

    @property
    def max_answer_tokens(self) -> int:
        room = self.loop.room if isinstance(self.loop, DeviceLoop) else self.bundle.manifest.max_positions
        return room - 1

    @property
    def has_one_thread(self) -> bool:
        """Whether only the thread that made it may let it answer."""
        return isinstance(self.loop, DeviceLoop)

    def read(self, context: str, question: str, options: Options = PLAIN, check: Check | None = None) -> Request:
        """Tokenise a context and a question.

        Raises:
            InputError: the context or the question holds nothing but white space, or more is asked for than
                such a model can answer.
        """
        for field in options.fields:
            message = f"This model answers plain questions only: it does not take {field}."
            hint = f"Leave {field} out, or serve a model with a pretrained reader."
            raise InputError("option_not_supported", field, message, hint)
        plain = replace(options, reads_lists=False)
        return read_question(self.bundle.vocabulary, context, question, plain, check)

    def begin(self, rows: Sequence[Row[Request]]) -> Generator[None, None, Decoding]:
        yield from ()
        return self.loop.start(self.pad([row.request for row in rows], [row.max_answer_tokens for row in rows]), rows)

    def write(self, ended: Ended[Request]) -> Answer:
        row = ended.row
        return attribute(ended.decoded, row.request, self.bundle.vocabulary, row.max_answer_tokens)

    def read_decided(self, row: Row[Request], trace: npt.NDArray[np.float32], first: int) -> list[AnswerToken]:
        return read_words(trace[first:], row.request, self.bundle.vocabulary)

    def pad(self, requests: Sequence[Request], max_answer_tokens: Sequence[int]) -> Batch:
        """Pad requests to one batch for the loop."""
        dimensions = self.bundle.manifest.sizes
        slot_ids = _pad_rows([r.slots.generator_ids for r in requests], dimensions.num_generated)
        vectors = np.zeros((*slot_ids.shape, dimensions.reader_width), np.float32)
        for i, request in enumerate(requests):
            self.vectors.lookup(request.slots.words, out=vectors[i, : len(request.slots.pieces)])
        inputs: dict[str, npt.NDArray[np.generic]] = {
            "vectors": vectors,
            "context_slots": _pad_rows([r.slots.context for r in requests], 0),
            "question_slots": _pad_rows([r.slots.question for r in requests], 0),
            "context_lengths": np.array([r.num_context_tokens for r in requests], np.int64),
            "question_lengths": np.array([r.num_question_tokens for r in requests], np.int64),
        }
        return Batch(inputs, slot_ids, np.array(max_answer_tokens, np.int64))


def _pad_rows(rows: Sequence[npt.NDArray[np.int32]], value: int) -> npt.NDArray[np.int64]:
    padded = np.full((len(rows), max(len(row) for row in rows)), value, np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded
