"""Texts made by program as sources of questions, one for each kind of text."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Final, Literal

import numpy as np

from mqan_core.example import Example
from mqan_data.synthetic.asking import ask_about
from mqan_data.synthetic.document import make_document
from mqan_data.synthetic.kind import kind_names, load_kind
from mqan_data.synthetic.programs.comparisons import ask_comparisons
from mqan_data.synthetic.programs.corrections import ask_corrections
from mqan_data.synthetic.programs.judgements import ask_judgements
from mqan_data.synthetic.programs.transfers import ask_transfers

PROGRAMS: Final[Mapping[str, Callable[..., Example]]] = {
    "comparisons": ask_comparisons,
    "corrections": ask_corrections,
    "judgements": ask_judgements,
    "transfers": ask_transfers,
}
"""What fields and layouts cannot say: each writes a text and asks about it."""
_ROWS_OF_PROGRAM = 8_000
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
        self.kind, self.split, self.name = load_kind(kind), split, f"made_{kind}"
        self.layouts = tuple(one for one in self.kind.layouts if one.held_back == (split == "validation"))
        if not self.layouts:
            raise ValueError(f"kinds/{kind}.yaml has no layout for {split}; set `held_back` of some, but not of all.")

    def __len__(self) -> int:
        """Return the number of rows: some hundred for each layout."""
        return _ROWS_OF_LAYOUT * len(self.layouts)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        """Return a question about a new text: the row decides the layout, ``rng`` all else."""
        document = make_document(self.kind, self.layouts[index % len(self.layouts)], int(rng.integers(2**62)))
        return replace(ask_about(document, self.kind, rng), task=self.name, id=f"{self.split}/{index}")


class ProgramSource:
    """Questions about texts of a program of ``PROGRAMS``; no two draws see the same text.

    Args:
        program: its name.
        split: ``validation`` for the words and cases that are held back, ``train`` for the others.
    """

    def __init__(self, program: str, split: Split) -> None:
        self._ask, self._split, self.name = PROGRAMS[program], split, f"made_{program}"

    def __len__(self) -> int:
        """Return the number of rows."""
        return _ROWS_OF_PROGRAM

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        """Return a question about a new text; the same for the same row and state of ``rng``."""
        chance = Random(int(rng.integers(2**62)))  # noqa: S311 - texts, not secrets
        asked = self._ask(chance, rng, held_back=self._split == "validation")
        return replace(asked, task=self.name, id=f"{self._split}/{index}")


def made_source(name: str, split: Split) -> MadeSource | ProgramSource:
    """Return a kind of text by its name.

    Raises:
        ValueError: there is none of the name.
    """
    return ProgramSource(name, split) if name in PROGRAMS else MadeSource(name, split)


def made_sources(split: Split) -> list[MadeSource]:
    """Return all kinds of texts: with the layouts to train on, or with those held back for validation."""
    return [MadeSource(name, split) for name in kind_names()]
