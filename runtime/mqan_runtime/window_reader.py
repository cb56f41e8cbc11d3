"""Runs the contextual encoder over requests, window by window: what it returns is added to the projected words."""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
import onnxruntime

from mqan_core.request import Request
from mqan_core.vectors import FloatArray
from mqan_core.windows import MOST_QUESTION, windows_of
from mqan_core.word_pieces import PieceVectors
from mqan_runtime.denormals import denormals_as_zero
from mqan_runtime.graphs import CONTEXTUAL_OUTPUTS

Inputs = Mapping[str, npt.NDArray[np.generic]]


class WindowReader:
    """Reads requests: on a CPU each window alone, so that nothing is padded and a row gets what it gets alone.

    Args:
        session: of ``contextual.onnx``.
        pieces: vectors of word pieces.
        width: D, of the model.
        num_together: most windows that are read together, padded; 1 on a CPU.
    """

    def __init__(
        self, session: onnxruntime.InferenceSession, pieces: PieceVectors, width: int, num_together: int = 1
    ) -> None:
        self._session = session
        self._pieces = pieces
        self._width = width
        self._num_together = num_together

    def read(self, requests: Sequence[Request]) -> dict[str, FloatArray]:
        """Return what is added to contexts, [B, C, D], and questions, [B, Q, D], by name of the encoder's input."""
        most_context = max(request.num_context_tokens for request in requests)
        most_question = max(request.num_question_tokens for request in requests)
        c_added_BCD = np.zeros((len(requests), most_context, self._width), np.float32)
        q_added_BQD = np.zeros((len(requests), most_question, self._width), np.float32)
        windows = (
            (row, place, inputs)
            for row, request in enumerate(requests)
            for place, inputs in window_inputs(self._pieces, request)
        )
        while some := list(islice(windows, self._num_together)):
            with denormals_as_zero():
                read = self._session.run(list(CONTEXTUAL_OUTPUTS), _padded([inputs for _, _, inputs in some]))
            for (row, place, inputs), context_CD, question_QD in zip(some, *read, strict=True):
                c_added_BCD[row, place] = context_CD[: place.stop - place.start]
                if place.start == 0:
                    num_question = inputs["question_words"].shape[1]
                    q_added_BQD[row, :num_question] = question_QD[:num_question]
        return {"context_added": c_added_BCD, "question_added": q_added_BQD}


def _padded(windows: Sequence[Inputs]) -> Inputs:
    """Join the inputs of some windows, with zeros behind those that are shorter than the longest."""
    if len(windows) == 1:
        return windows[0]
    joined: dict[str, npt.NDArray[np.generic]] = {}
    for name in ("context_words", "question_words"):
        texts = [inputs[name][0] for inputs in windows]
        padded = np.zeros((len(texts), max(map(len, texts)), texts[0].shape[1]), np.float32)
        for row, text in zip(padded, texts, strict=True):
            row[: len(text)] = text
        joined[name] = padded
    for name in ("context_lengths", "question_lengths"):
        joined[name] = np.concatenate([inputs[name] for inputs in windows])
    return joined


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
