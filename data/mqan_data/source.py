"""Where training examples come from: an endless supply of questions about the rows of one dataset."""

from typing import Protocol

import numpy as np

from mqan_core.example import Example


class Source(Protocol):
    """Rows of one dataset, about each of which questions are drawn anew every time."""

    @property
    def name(self) -> str:
        """Name of the dataset; unique within a mixture."""

    def __len__(self) -> int: ...

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        """Return a question about a row; the same for the same row and state of ``rng``."""
