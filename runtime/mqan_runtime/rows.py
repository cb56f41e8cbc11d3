"""Requests on their way: as they are read, as rows of a decoding, and as they were decoded."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mqan_core.answer.evidence import EvidenceVectors
from mqan_core.answer.explain import Pointers
from mqan_core.answer.quotations import QuotationScores
from mqan_core.ask.request import Request
from mqan_core.text.layout import Window

Trace = npt.NDArray[np.float32]

SAMPLE: Final = ("The kettle is in the kitchen.", "Where is the kettle?")
"""A context and a question, to try a model with."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request and its word pieces; none where the reader reads words."""

    request: Request
    windows: tuple[Window, ...] = ()
    wants_text_vector: bool = False

    @property
    def num_context_tokens(self) -> int:
        return self.request.num_context_tokens

    @property
    def num_question_tokens(self) -> int:
        return self.request.num_question_tokens

    @property
    def num_read(self) -> int:
        """Pieces of all windows, or words."""
        return sum(len(window.pieces) for window in self.windows) or self.request.num_read


@dataclass(slots=True, eq=False)
class Row:
    """A request that is being answered, and what its options need of what the model looked at."""

    key: Any  # what the caller knows it by
    request: ReadRequest
    max_answer_tokens: int
    scores: QuotationScores | None = None  # of its words, where quotations are asked for
    evidence: EvidenceVectors | None = None  # of its choices
    pointers: list[Pointers] | None = None  # of each step that was taken, where they are asked for
    text_vector: npt.NDArray[np.float32] | None = None  # what its text is about, where that is asked for


class Steps(NamedTuple):
    """What the steps of a row chose, [steps, F], and what its first gave to each word of question and context."""

    trace: Trace
    masses: npt.NDArray[np.float32] | None = None
    evidence: npt.NDArray[np.float32] | None = None
