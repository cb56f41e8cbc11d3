"""Texts made by program as sources of questions, one for each kind of text."""

from typing import Literal

import numpy as np

from mqan_core.example import Example
from mqan_training.data.made.asking import ask_about
from mqan_training.data.made.document import Document, make_document
from mqan_training.data.made.kind import Layout, kind_names, load_kind

_ROWS_OF_LAYOUT = 500  # decides how often a kind is asked: the more layouts it has, the more

Split = Literal["train", "validation"]


class MadeSource:
    """Questions about texts of one kind; no two draws see the same text.

    Args:
        kind: name of a file of ``kinds/``.
        split: ``validation`` for the layouts that are held back, ``train`` for the others.

    Raises:
        ValueError: there is no layout for the split, or the file is malformed.
    """

    def __init__(self, kind: str, split: Split) -> None:
        self.kind = load_kind(kind)
        self.split = split
        self.layouts: tuple[Layout, ...] = tuple(
            layout for layout in self.kind.layouts if layout.spec.held_back == (split == "validation")
        )
        if not self.layouts:
            raise ValueError(f"kinds/{kind}.yaml has no layout for {split}; set `held_back` of some, but not of all.")

    @property
    def name(self) -> str:
        """Name of the source."""
        return f"made_{self.kind.name}"

    def __len__(self) -> int:
        """Return the number of rows: some hundred for each layout."""
        return _ROWS_OF_LAYOUT * len(self.layouts)

    def document(self, index: int, rng: np.random.Generator) -> Document:
        """Return a text: the row decides the layout, ``rng`` all else."""
        return make_document(self.kind, self.layouts[index % len(self.layouts)], int(rng.integers(2**62)))

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        """Return a question about a new text; the same for the same row and state of ``rng``."""
        return ask_about(self.document(index, rng), self.kind, rng).example(self.name, f"{self.split}/{index}")


def made_sources(split: Split) -> list[MadeSource]:
    """Return all kinds of texts: with the layouts to train on, or with those held back for validation."""
    return [MadeSource(name, split) for name in kind_names()]
