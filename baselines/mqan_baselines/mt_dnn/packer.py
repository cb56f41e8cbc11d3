"""A sentence or a pair as one sequence of word pieces, as a BERT reads it.

[CLS] first [SEP]
[CLS] first [SEP] second [SEP]
"""

from collections.abc import Sequence
from typing import NamedTuple

from mqan_core.text import read_tokens
from mqan_core.word_pieces import BETWEEN, FIRST, UNKNOWN, WordPieces


class Packed(NamedTuple):
    """One sequence: ids of its pieces, and how many of them belong to the first text, [CLS] and [SEP] included."""

    pieces: tuple[int, ...]
    first: int


class Packer:
    """Packs texts.

    Args:
        word_pieces: cuts words.
        most_pieces: of a sequence; of a pair that is longer the longer text is cut first.
    """

    def __init__(self, word_pieces: WordPieces, most_pieces: int) -> None:
        self.word_pieces = word_pieces
        self._marks = word_pieces.id_of(FIRST), word_pieces.id_of(BETWEEN)
        self._unknown = word_pieces.id_of(UNKNOWN)
        self._most = most_pieces

    def count(self, *texts: str) -> int:
        """Return how many pieces a sequence would have, were it never cut, its marks included."""
        return 1 + sum(len(self._ids(text)) + 1 for text in texts)

    def pack(self, *texts: str) -> Packed:
        """Pack one text or two; an empty one counts as one unknown piece."""
        cls, sep = self._marks
        parts = [self._ids(text) for text in texts]
        room = self._most - 1 - len(parts)
        lengths = _cut([len(part) for part in parts], room)
        pieces = [cls]
        for part, length in zip(parts, lengths, strict=True):
            pieces += [*part[:length], sep]
        return Packed(tuple(pieces), lengths[0] + 2)

    def _ids(self, text: str) -> list[int]:
        return [i for token in read_tokens(text) for i in self.word_pieces.ids(token.word)] or [self._unknown]


def _cut(lengths: Sequence[int], room: int) -> list[int]:
    """Return the lengths of one text or two, cut to fit together: the longer one first."""
    if sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    shorter = min(*lengths, room // 2)
    return [shorter, room - shorter] if lengths[0] <= lengths[1] else [room - shorter, shorter]
