"""Answers questions with a bundle, in process: text in, attributed answers out. Needs no torch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mqan_core.answer import Answer
from mqan_core.attribution import attribute
from mqan_core.bundle import DECODER_STEP, ENCODER, Bundle, open_bundle
from mqan_core.request import Request, read_request
from mqan_core.text import word_of
from mqan_export.graphs import ENCODER_INPUTS, STEP_CONSTANTS, STEP_STATE
from mqan_export.greedy import Batch, GreedyLoop
from mqan_export.session import Provider, open_session


class Engine:
    """A bundle, ready to answer.

    ``read`` may be called from any thread; ``answer`` from one at a time.

    Attributes:
        bundle: what is run.
        provider: execution provider that really runs it.
        loop: the loop over token ids below the text.
    """

    def __init__(self, bundle: Bundle, *, provider: Provider = "auto", num_threads: int = 1) -> None:
        self.bundle = bundle
        encoder = open_session(
            bundle.encoder, ENCODER, list(ENCODER_INPUTS), provider=provider, num_threads=num_threads
        )
        step_inputs = [*STEP_CONSTANTS, *STEP_STATE]
        step = open_session(bundle.decoder_step, DECODER_STEP, step_inputs, provider=provider, num_threads=num_threads)
        self.provider: str = step.get_providers()[0]
        generator_vectors = bundle.vectors.lookup([word_of(piece) for piece in bundle.vocabulary.pieces])
        self.loop = GreedyLoop(encoder, step, bundle.manifest.dimensions, generator_vectors)

    @classmethod
    def open(cls, folder: Path, *, provider: Provider = "auto", num_threads: int = 1) -> "Engine":
        """Open and verify a bundle and make it ready.

        Args:
            folder: the bundle.
            provider: ``cpu``, ``cuda``, or ``auto`` for a GPU when there is one.
            num_threads: threads within an operator.

        Raises:
            BundleError: the bundle is damaged, incomplete, of an unknown version, or not allowed.
            RuntimeError: ``cuda`` was asked for and does not run here.
        """
        return cls(open_bundle(folder), provider=provider, num_threads=num_threads)

    @property
    def max_answer_tokens(self) -> int:
        """Most tokens that an answer can have: the decoder's positions less one for the end."""
        return self.bundle.manifest.max_positions - 1

    def read(self, context: str, question: str) -> Request:
        """Tokenise a context and a question.

        Raises:
            InputError: the context or the question holds nothing but white space.
        """
        return read_request(self.bundle.vocabulary, context, question)

    def answer(self, requests: Sequence[Request], max_answer_tokens: Sequence[int]) -> list[Answer]:
        """Answer a batch; each answer is what its request would get alone.

        Args:
            requests: at least one.
            max_answer_tokens: most tokens of each answer, 1 to ``max_answer_tokens``.

        Raises:
            ValueError: there are no requests, or a limit is out of range.
        """
        if not requests or len(requests) != len(max_answer_tokens):
            raise ValueError(
                f"{len(requests)} requests with {len(max_answer_tokens)} limits; expected one or more each"
            )
        if not all(1 <= limit <= self.max_answer_tokens for limit in max_answer_tokens):
            raise ValueError(
                f"max_answer_tokens must be 1 to {self.max_answer_tokens}, found {list(max_answer_tokens)}"
            )
        trace = self.loop.run(self.pad(requests, max_answer_tokens))
        return [
            attribute(row, request, self.bundle.vocabulary, limit)
            for row, request, limit in zip(trace, requests, max_answer_tokens, strict=True)
        ]

    def pad(self, requests: Sequence[Request], max_answer_tokens: Sequence[int]) -> Batch:
        """Pad requests to one batch for the loop."""
        dimensions = self.bundle.manifest.dimensions
        slot_ids = _pad_rows([r.slots.generator_ids for r in requests], dimensions.num_generated)
        vectors = np.zeros((*slot_ids.shape, dimensions.vector_width), np.float32)
        for i, request in enumerate(requests):
            vectors[i, : len(request.slots.pieces)] = self.bundle.vectors.lookup(request.slots.words)
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
