"""The words a model knows, and the per-request extension for those it does not.

*Generator pieces*, ordered by use, are lower-cased pieces with their half spaces that the model can generate, the v
words of equation 11; id 0 is the end of the answer, and of a model that refuses id 1 is the refusal: the text does not
say, or none of the choices is right. *Words* are those with a pretrained vector; others have character n-grams alone.

A piece that is in the context or the question can be copied whether or not it is in either list. Each request numbers
its own distinct pieces (``Slots``), so an answer cannot depend on the other requests of a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mqan_core.text.tokens import word_of

END = "<eos>"  # cannot collide with text: the tokenizer splits at "<" and ">"
END_ID = 0
REFUSAL = "<refusal>"  # likewise; never shown as text
REFUSAL_ID = 1
NUM_SPECIAL = 2  # end and refusal, of a model that refuses

Int32Array = npt.NDArray[np.int32]


class Vocabulary:
    """Distinct generator pieces, the end marker left out, most useful first, and words in the order of their rows."""

    def __init__(self, pieces: Sequence[str], words: Sequence[str] = (), *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.pieces: tuple[str, ...] = (END, REFUSAL, *pieces) if refuses else (END, *pieces)
        self.words: tuple[str, ...] = tuple(words)
        self._piece_ids = {piece: i for i, piece in enumerate(self.pieces)}
        self._word_rows = {word: i for i, word in enumerate(self.words)}
        if len(self._piece_ids) != len(self.pieces):
            raise ValueError("vocabulary: the generator pieces hold duplicates")
        if len(self._word_rows) != len(self.words):
            raise ValueError("vocabulary: the words hold duplicates")

    @property
    def num_generated(self) -> int:
        """Size of the generator's softmax (v), the end marker included."""
        return len(self.pieces)

    def piece_id(self, piece: str) -> int | None:
        return self._piece_ids.get(piece)

    def word_row(self, word: str) -> int | None:
        return self._word_rows.get(word)


@dataclass(frozen=True, slots=True)
class Slots:
    """The distinct pieces of one request, numbered."""

    pieces: tuple[str, ...]  # lower-cased, U of them
    context: Int32Array  # slot of each token, [C]
    question: Int32Array  # [Q]
    generator_ids: Int32Array  # ``num_generated`` where a slot has none, [U]

    @property
    def words(self) -> list[str]:
        return [word_of(piece) for piece in self.pieces]


def number_slots(vocabulary: Vocabulary, context: Sequence[str], question: Sequence[str]) -> Slots:
    """Number the distinct lower-cased pieces of one request in order of appearance."""
    slot_of: dict[str, int] = {}
    context_slots = np.array([slot_of.setdefault(piece, len(slot_of)) for piece in context], np.int32)
    question_slots = np.array([slot_of.setdefault(piece, len(slot_of)) for piece in question], np.int32)
    missing = vocabulary.num_generated
    ids = (vocabulary.piece_id(piece) for piece in slot_of)
    generator_ids = np.array([missing if i is None else i for i in ids], np.int32)
    return Slots(tuple(slot_of), context_slots, question_slots, generator_ids)
