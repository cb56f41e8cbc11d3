"""Texts as sequences of word pieces."""

from pathlib import Path

import pytest
import torch

from mqan_baselines.mt_dnn.packing import Packed, Packer, packer_of, stack
from mqan_training.errors import MissingEncoderError

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "##b", "c", "."]
PAD, UNK, CLS, SEP, A, B, BB, C, DOT = range(9)


@pytest.fixture
def packer(tmp_path: Path) -> Packer:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES))
    return packer_of(tmp_path, most_pieces=8)


def test_a_text_and_a_pair_stand_between_marks(packer: Packer) -> None:
    assert packer.pack("A bb.") == Packed((CLS, A, B, BB, DOT, SEP), 6)
    assert packer.pack("a b", "c") == Packed((CLS, A, B, SEP, C, SEP), 4)


def test_an_empty_or_unknown_text_is_one_unknown_piece(packer: Packer) -> None:
    assert packer.pack("", "z") == Packed((CLS, UNK, SEP, UNK, SEP), 3)


@pytest.mark.parametrize(
    ("texts", "lengths"),
    [
        (("a " * 9,), [6]),
        (("a " * 9, "c"), [4, 1]),
        (("a", "c " * 9), [1, 4]),
        (("a " * 9, "c " * 9), [2, 3]),
        (("a a a", "c c c"), [2, 3]),
    ],
)
def test_what_is_too_long_is_cut_the_longer_text_first(
    packer: Packer, texts: tuple[str, ...], lengths: list[int]
) -> None:
    packed = packer.pack(*texts)
    assert [packed.pieces.count(A), packed.pieces.count(C)][: len(lengths)] == lengths
    assert len(packed.pieces) == 8
    assert packed.pieces[0] == CLS
    assert packed.pieces[packed.first - 1] == packed.pieces[-1] == SEP


def test_sequences_side_by_side_say_what_is_whose(packer: Packer) -> None:
    both = stack([packer.pack("a b", "c"), packer.pack("c")])
    assert both.pieces_NS.tolist() == [[CLS, A, B, SEP, C, SEP], [CLS, C, SEP, PAD, PAD, PAD]]
    assert both.segments_NS.tolist() == [[0, 0, 0, 0, 1, 1], [0] * 6]
    assert both.mask_NS.sum(dim=1).tolist() == [6, 3]
    assert both.first_NS.nonzero().tolist() == [[0, 1], [0, 2], [1, 1]]
    assert both.second_NS.nonzero().tolist() == [[0, 4]]
    assert both.segments_NS.dtype == torch.int64


def test_a_folder_without_pieces_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingEncoderError, match=r"expected vocab\.txt"):
        packer_of(tmp_path, most_pieces=8)
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(MissingEncoderError, match=r"\[CLS\]"):
        packer_of(tmp_path, most_pieces=8)
