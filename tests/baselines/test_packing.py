"""Texts as sequences of word pieces."""

from pathlib import Path

import pytest

from mqan_baselines.mt_dnn.packing import Packer, packer_of
from mqan_training.model.bert import MissingEncoderError

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "##b", "c", "."]
PAD, UNK, CLS, SEP, A, B, BB, C, DOT = range(9)


@pytest.fixture
def packer(tmp_path: Path) -> Packer:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES))
    return packer_of(tmp_path, most_pieces=8)


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


def test_a_folder_without_pieces_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingEncoderError, match=r"expected vocab\.txt"):
        packer_of(tmp_path, most_pieces=8)
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(MissingEncoderError, match=r"\[CLS\]"):
        packer_of(tmp_path, most_pieces=8)
