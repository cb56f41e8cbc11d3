"""Runs the contextual encoder over requests, window by window: what it returns is added to the projected words."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.request import Request
from mqan_core.vectors import FloatArray
from mqan_core.windows import MOST_QUESTION, windows_of
from mqan_core.word_pieces import PieceVectors
from mqan_export.denormals import denormals_as_zero
from mqan_export.graphs import CONTEXTUAL_OUTPUTS

Inputs = Mapping[str, npt.NDArray[np.generic]]


class WindowReader:
    """Reads requests, each window alone, so that nothing is padded and a row gets what it gets alone.

    Args:
        session: of ``contextual.onnx``.
        pieces: vectors of word pieces.
        width: D, of the model.
    """

    def __init__(self, session: onnxruntime.InferenceSession, pieces: PieceVectors, width: int) -> None:
        self._session = session
        self._pieces = pieces
        self._width = width

    def read(self, requests: Sequence[Request]) -> dict[str, FloatArray]:
        """Return what is added to contexts, [B, C, D], and questions, [B, Q, D], by name of the encoder's input."""
        most_context = max(request.num_context_tokens for request in requests)
        most_question = max(request.num_question_tokens for request in requests)
        c_added_BCD = np.zeros((len(requests), most_context, self._width), np.float32)
        q_added_BQD = np.zeros((len(requests), most_question, self._width), np.float32)
        for row, request in enumerate(requests):
            for place, inputs in window_inputs(self._pieces, request):
                with denormals_as_zero():
                    context, question = self._session.run(list(CONTEXTUAL_OUTPUTS), inputs)
                c_added_BCD[row, place] = context[0]
                if place.start == 0:
                    q_added_BQD[row, : question.shape[1]] = question[0]
        return {"context_added": c_added_BCD, "question_added": q_added_BQD}


def window_inputs(pieces: PieceVectors, request: Request) -> list[tuple[slice, Inputs]]:
    """Return the windows of a request: their places in the context, and what the graph reads of each."""
    words_UM = pieces.lookup(request.slots.words)
    question = words_UM[request.slots.question[:MOST_QUESTION]][None]
    return [
        (
            place,
            {
                "context_words": words_UM[request.slots.context[place]][None],
                "question_words": question,
                "context_lengths": np.array([place.stop - place.start], np.int64),
                "question_lengths": np.array([question.shape[1]], np.int64),
            },
        )
        for place in windows_of(request.num_context_tokens)
    ]
