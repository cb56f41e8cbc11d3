"""Where training examples come from: an endless supply of questions about the rows of one dataset."""

from typing import ClassVar, Protocol

import numpy as np

from mqan_core.example import Example


class Source(Protocol):
    """Rows of one dataset, about each of which questions are drawn anew every time.

    Attributes:
        name: of the dataset; unique within a mixture.
    """

    @property
    def name(self) -> str:
        """Name of the dataset."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        """Return a question about a row; the same for the same row and state of ``rng``."""


class DerivedSource:
    """The rows of another source, of which each drawn question is changed in some way.

    Args:
        source: the other one, of questions that are answered by quotations.

    Attributes:
        suffix: what is added to its name.
    """

    suffix: ClassVar[str]

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """Name of the source."""
        return f"{self._source.name}{self.suffix}"

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._source)
