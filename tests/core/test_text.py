"""Tokens are revtok's, their spans cut them out of the text, and joining them loses nothing."""

import gc
import random
import time

import pytest
import revtok
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mqan_core.text import Token, detokenize, tokenize, word_of
from mqan_core.vocab import END

NUM_RANDOM_TEXTS = 10_000
MAX_RANDOM_LENGTH = 60
# Each alphabet is where tokenizers go wrong; a random text mixes them.
ALPHABETS = [
    "abc XYZ",
    "     ",
    " \n\t\r\v\f\x85\xa0\u2003\u2028\u2029\u3000",
    "0123456789.,-%$",
    "...,;:!?'\"()[]{}<>«»¿",
    "e\u0301a\u0308o\u0303\u0483\u20e3\ufe0f",  # combining marks
    "\u200b\u200c\u200d\ufeff\u2060",  # zero width, joiners
    "👩\u200d👩\u200d👧🏽🇩🇪❤\ufe0f",
    "שלום עולם \u200f\u202b\u202c",
    "مرحبا بالعالم ١٢٣",
    "日本語のテキスト。한국어",
    "İıſßΣςϴǅ",  # change length or differ when lower-cased
    "\x00\x01\x1c\x1f\x7f",
    "\ue302\ue000\U000f0000\U0010ffff",  # private use, the marker of the revtok package among them
    "\ud800\udfff",  # lone surrogates, which JSON can carry
    "+=<>|~^`€¥",
]

any_text = st.text(st.characters(exclude_categories=()), max_size=80)
tricky_text = st.lists(st.one_of([st.sampled_from(alphabet) for alphabet in ALPHABETS]), max_size=80).map("".join)


def random_texts() -> list[str]:
    generator = random.Random(20180620)
    texts = []
    for _ in range(NUM_RANDOM_TEXTS):
        chosen = generator.sample(ALPHABETS, generator.randint(1, 4))
        characters = [
            chr(generator.randrange(0x110000))
            if generator.random() < 0.1
            else generator.choice(generator.choice(chosen))
            for _ in range(generator.randint(0, MAX_RANDOM_LENGTH))
        ]
        texts.append("".join(characters))
    return texts


def check(text: str) -> None:
    tokens = tokenize(text)
    assert [token.piece for token in tokens] == revtok.tokenize(text, decap=False)
    assert detokenize(token.piece for token in tokens) == text
    position = 0
    for token in tokens:
        assert text[token.start : token.end] == token.piece.strip(" ")
        assert position <= token.start <= token.end <= len(text)
        assert text[position : token.start].strip(" ") == "", "only spaces lie between tokens"
        position = token.end
    assert text[position:].strip(" ") == ""


def test_spans_and_joining_are_exact_on_random_texts() -> None:
    for text in random_texts():
        check(text)


@settings(max_examples=1000)
@given(st.one_of(any_text, tricky_text))
@example("")
@example(" ")
@example("  leading and trailing  ")
@example("a  b   c    d")
@example("line\n\nline \n end")
@example('He said: "No... (really)!"')
@example("x \ue302ab y")
def test_spans_and_joining_are_exact(text: str) -> None:
    check(text)


@given(st.one_of(any_text, tricky_text))
def test_a_token_is_blank_or_holds_no_white_space(text: str) -> None:
    for token in tokenize(text):
        word = token.piece.strip(" ")
        assert token.is_blank == (not word.strip())
        assert token.is_blank or word.split() == [word]


@given(st.one_of(any_text, tricky_text))
def test_the_end_marker_is_never_a_token(text: str) -> None:
    assert END not in {token.key for token in tokenize(text + END + text)}


def test_key_and_word() -> None:
    assert tokenize("Is it TOM's?")[2] == Token(" TOM ", 6, 9)
    assert tokenize("Is it TOM's?")[2].key == " tom "
    assert tokenize("Is it TOM's?")[2].word == "tom"
    assert word_of("? ") == "?"
    assert word_of("  ") == ""


def test_lower_casing_does_not_move_spans() -> None:
    text = "İstanbul'da İYİ"
    cut = [text[token.start : token.end] for token in tokenize(text)]
    assert cut == ["İstanbul", "'", "da", "İYİ"]
    assert len(tokenize(text)[0].key) != len(tokenize(text)[0].piece)


@pytest.mark.parametrize("unit", ["word ", " ", "a", ".", "\n", "a.", "é "])
def test_time_is_linear(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            tokenize(text)
            best = min(best, time.process_time() - start)
        return best

    gc.disable()  # it would look at every object of the whole test run, the more often the longer the text
    try:
        short, long = seconds(20_000), seconds(200_000)
    finally:
        gc.enable()
    assert long < 40 * short  # 10 times the text; 100 times the time if it were quadratic
