"""Sequences of word pieces side by side: what the lexicon encoder l1 reads (section 3).

Segment 0 up to the first [SEP], segment 1 behind it. Shape letters: N sequences, S pieces of a sequence.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mqan_baselines.mt_dnn.packer import Packed, Packer
from mqan_baselines.recipes import MtDnnRecipe
from mqan_training.device import moved
from mqan_training.errors import MissingEncoderError
from mqan_training.model.bert import read_config
from mqan_training.sentence_encoder import encoder_folder, read_word_pieces


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

    def to(self, device: torch.device) -> "Sequences":
        """Return the sequences on a device, as ``moved`` does."""
        return Sequences(*(moved(tensor, device) for tensor in self))


def packer_of(folder: Path, most_pieces: int) -> Packer:
    """Return what packs texts for an encoder.

    Args:
        folder: of the encoder, with ``vocab.txt``, a piece a line.
        most_pieces: of a sequence.

    Raises:
        MissingEncoderError: there is no ``vocab.txt``, or it is none.
    """
    try:
        word_pieces = read_word_pieces(folder)
    except (OSError, ValueError) as error:
        raise MissingEncoderError(
            f"{folder} holds no word pieces: expected vocab.txt, a piece a line: {error}"
        ) from error
    return Packer(word_pieces, most_pieces)


def checked_packer(recipe: MtDnnRecipe) -> Packer:
    """Return what packs texts for the encoder of a recipe.

    Raises:
        MissingEncoderError: the encoder's folder holds none.
        ValueError: the recipe's sequences are longer than what the encoder reads.
    """
    folder = encoder_folder(recipe.encoder)
    most = read_config(folder).max_position_embeddings
    if recipe.most_pieces > most:
        raise ValueError(
            f"most_pieces is {recipe.most_pieces}, and max_position_embeddings of the encoder in {folder} is {most}: "
            f"lower most_pieces to {most}, or give another encoder"
        )
    return packer_of(folder, recipe.most_pieces)


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
