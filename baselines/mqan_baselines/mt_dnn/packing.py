"""Sequences of word pieces, alone and side by side: what the lexicon encoder l1 reads (section 3).

    [CLS] first [SEP]
    [CLS] first [SEP] second [SEP]

Segment 0 up to the first [SEP], segment 1 after it. Shape letters: N sequences, S pieces of a sequence.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mqan_baselines.recipes import MtDnnRecipe
from mqan_core.text.tokens import read_tokens
from mqan_core.text.word_pieces import BETWEEN, FIRST, UNKNOWN, WordPieces
from mqan_training.batch import moved
from mqan_training.model.bert import MissingEncoderError, encoder_folder, read_config, read_word_pieces


class Packed(NamedTuple):
    """One sequence: ids of its pieces, and how many of them belong to the first text, [CLS] and [SEP] included."""

    pieces: tuple[int, ...]
    first: int


class Packer:
    """Packs texts into so many pieces at most; of a pair that is longer the longer text is cut first."""

    def __init__(self, word_pieces: WordPieces, most_pieces: int) -> None:
        self._word_pieces = word_pieces
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
        lengths = _cut([len(part) for part in parts], self._most - 1 - len(parts))
        pieces = [cls]
        for part, length in zip(parts, lengths, strict=True):
            pieces += [*part[:length], sep]
        return Packed(tuple(pieces), lengths[0] + 2)

    def _ids(self, text: str) -> list[int]:
        return [i for token in read_tokens(text) for i in self._word_pieces.ids(token.word)] or [self._unknown]


def _cut(lengths: Sequence[int], room: int) -> list[int]:
    if sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    shorter = min(*lengths, room // 2)
    return [shorter, room - shorter] if lengths[0] <= lengths[1] else [room - shorter, shorter]


class Sequences(NamedTuple):
    """Sequences side by side, padded at the end; ``first`` and ``second`` are the texts, without the marks."""

    pieces_NS: Tensor
    segments_NS: Tensor
    mask_NS: Tensor
    first_NS: Tensor
    second_NS: Tensor

    def to(self, device: torch.device) -> "Sequences":
        return Sequences(*(moved(tensor, device) for tensor in self))


def packer_of(folder: Path, most_pieces: int) -> Packer:
    try:
        word_pieces = read_word_pieces(folder)
    except (OSError, ValueError) as error:
        message = f"{folder} holds no word pieces: expected vocab.txt, a piece a line: {error}"
        raise MissingEncoderError(message) from error
    return Packer(word_pieces, most_pieces)


def checked_packer(recipe: MtDnnRecipe) -> Packer:
    """Return what packs texts for a recipe's encoder; ValueError where its sequences are longer than that reads."""
    folder = encoder_folder(recipe.encoder)
    most = read_config(folder).max_position_embeddings
    if recipe.most_pieces > most:
        raise ValueError(
            f"most_pieces is {recipe.most_pieces}, and max_position_embeddings of the encoder in {folder} is {most}: "
            f"lower most_pieces to {most}, or give another encoder"
        )
    return packer_of(folder, recipe.most_pieces)


def stack(packed: Sequence[Packed]) -> Sequences:
    lengths_N1 = torch.tensor([[len(one.pieces)] for one in packed])
    firsts_N1 = torch.tensor([[one.first] for one in packed])
    pieces_NS = pad_sequence([torch.tensor(one.pieces) for one in packed], batch_first=True)
    places_S = torch.arange(pieces_NS.shape[1])
    mask_NS = places_S < lengths_N1
    first_NS = (places_S > 0) & (places_S < firsts_N1 - 1)
    second_NS = (places_S >= firsts_N1) & (places_S < lengths_N1 - 1)
    return Sequences(pieces_NS, (places_S >= firsts_N1).long() * mask_NS, mask_NS, first_NS, second_NS)
