"""A sentence or a pair as one sequence of word pieces: what the lexicon encoder l1 reads (section 3).

    [CLS] first [SEP]
    [CLS] first [SEP] second [SEP]

Segment 0 up to the first [SEP], segment 1 behind it. Shape letters: N sequences, S pieces of a sequence.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mqan_core.text import read_tokens
from mqan_core.word_pieces import BETWEEN, FIRST, UNKNOWN, WordPieces
from mqan_training.errors import MissingEncoderError


class Packed(NamedTuple):
    """One sequence: ids of its pieces, and how many of them belong to the first text, [CLS] and [SEP] included."""

    pieces: tuple[int, ...]
    first: int


class Sequences(NamedTuple):
    """Sequences side by side, padded at the end.

    Attributes:
        pieces_NS: ids.
        segments_NS: 0 for the first text, 1 for the second.
        mask_NS: which pieces are there.
        first_NS: which are of the first text, without [CLS] and [SEP].
        second_NS: which are of the second text, without [SEP].
    """

    pieces_NS: Tensor
    segments_NS: Tensor
    mask_NS: Tensor
    first_NS: Tensor
    second_NS: Tensor


class Packer:
    """Packs texts for an encoder.

    Args:
        folder: of the encoder, with ``vocab.txt``, a piece a line.
        most_pieces: of a sequence; of a pair that is longer the longer text is cut first.

    Raises:
        MissingEncoderError: there is no ``vocab.txt``, or it is none.
    """

    def __init__(self, folder: Path, most_pieces: int) -> None:
        try:
            self._word_pieces = WordPieces((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
        except (OSError, ValueError) as error:
            raise MissingEncoderError(
                f"{folder} holds no word pieces: expected vocab.txt, a piece a line: {error}"
            ) from error
        self._marks = self._word_pieces.id_of(FIRST), self._word_pieces.id_of(BETWEEN)
        self._unknown = self._word_pieces.id_of(UNKNOWN)
        self._most = most_pieces

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
        return [i for token in read_tokens(text) for i in self._word_pieces.ids(token.word)] or [self._unknown]


def _cut(lengths: Sequence[int], room: int) -> list[int]:
    """Return the lengths of one text or two, cut to fit together: the longer one first."""
    if sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    shorter = min(*lengths, room // 2)
    return [shorter, room - shorter] if lengths[0] <= lengths[1] else [room - shorter, shorter]


def stack(packed: Sequence[Packed]) -> Sequences:
    """Put sequences side by side."""
    lengths_N1 = torch.tensor([[len(one.pieces)] for one in packed])
    firsts_N1 = torch.tensor([[one.first] for one in packed])
    pieces_NS = pad_sequence([torch.tensor(one.pieces) for one in packed], batch_first=True)
    places_S = torch.arange(pieces_NS.shape[1])
    mask_NS = places_S < lengths_N1
    first_NS = (places_S > 0) & (places_S < firsts_N1 - 1)
    second_NS = (places_S >= firsts_N1) & (places_S < lengths_N1 - 1)
    return Sequences(pieces_NS, (places_S >= firsts_N1).long() * mask_NS, mask_NS, first_NS, second_NS)
