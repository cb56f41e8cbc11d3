"""Tokens are revtok's, their spans cut them out of the text, and joining them loses nothing."""

import pytest
import revtok
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mqan_core.text import tokens as text_module
from mqan_core.text.tokens import (
    INVISIBLE,
    Token,
    detokenize,
    has_words,
    measure,
    read_tokens,
    without_invisible,
    word_of,
)
from mqan_core.text.vocab import END

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

SELECTORS = ("\ufe0e", "\ufe0f")

any_text = st.text(st.characters(exclude_categories=()), max_size=80)
tricky_text = st.lists(st.one_of([st.sampled_from(alphabet) for alphabet in ALPHABETS]), max_size=80).map("".join)


def seen(text: str) -> str:
    """Return a text as it is read: without its invisible characters."""
    return "".join(character for character in text if character not in INVISIBLE)


def check(text: str) -> None:
    tokens = read_tokens(text)
    pieces = revtok.tokenize(seen(text), decap=False)
    assert [token.piece for token in tokens] == [piece for piece in pieces if piece.strip()]
    assert detokenize(pieces) == seen(text)
    position = 0
    for token in tokens:
        cut = text[token.start : token.end]
        assert seen(cut) == token.piece.strip(" ")
        assert cut[:1] not in INVISIBLE or not cut, "what is invisible in front of a word is not the word's"
        alone = cut[:-1] if cut[-1:] in SELECTORS else cut
        assert alone.rstrip(INVISIBLE) == alone, "nor is what stands behind, but for one variation selector"
        assert position <= token.start <= token.end <= len(text)
        assert seen(text[position : token.start]).strip() == "", "only white space lies between tokens"
        position = token.end
    assert seen(text[position:]).strip() == ""
    assert has_words(text) == bool(tokens)
    longest = max(tokens, key=lambda token: token.end - token.start, default=Token("", 0, 0))
    assert measure(text) == (len(tokens), longest.end - longest.start, longest.start)


@settings(max_examples=1000)
@given(st.one_of(any_text, tricky_text))
@example("")
@example(" ")
@example("  leading and trailing  ")
@example("a  b   c    d")
@example("line\n\nline \n end")
@example('He said: "No... (really)!"')
@example("x \ue302ab y")
@example("In\u00adgrid Sol\u00adberg")
@example("\ufeff")
@example(" \u200b a\u2060 ")
def test_spans_and_joining_are_exact(text: str) -> None:
    check(text)


@given(st.one_of(any_text, tricky_text))
def test_a_token_holds_no_white_space(text: str) -> None:
    for token in read_tokens(text):
        word = token.piece.strip(" ")
        assert word.split() == [word]


@given(st.one_of(any_text, tricky_text))
def test_the_end_marker_is_never_a_token(text: str) -> None:
    assert END not in {token.key for token in read_tokens(text + END + text)}


def test_key_and_word() -> None:
    assert read_tokens("Is it TOM's?")[2] == Token(" TOM ", 6, 9)
    assert read_tokens("Is it TOM's?")[2].key == " tom "
    assert read_tokens("Is it TOM's?")[2].word == "tom"
    assert word_of("? ") == "?"
    assert word_of("  ") == ""


def test_lower_casing_does_not_move_spans() -> None:
    text = "İstanbul'da İYİ"
    cut = [text[token.start : token.end] for token in read_tokens(text)]
    assert cut == ["İstanbul", "'", "da", "İYİ"]
    assert len(read_tokens(text)[0].key) != len(read_tokens(text)[0].piece)


def cut(text: str) -> list[tuple[str, str]]:
    """Return each token as it is read, and as it stands in the text."""
    return [(token.word, text[token.start : token.end]) for token in read_tokens(text)]


@pytest.mark.parametrize("invisible", [character for character in INVISIBLE if character not in SELECTORS])
def test_words_are_read_without_what_is_invisible(invisible: str) -> None:
    text = f"{invisible}In{invisible}grid {invisible} Sol{invisible}{invisible}berg{invisible}!"
    quoted = [f"In{invisible}grid", f"Sol{invisible}{invisible}berg", "!"]
    assert cut(text) == list(zip(["ingrid", "solberg", "!"], quoted, strict=True))
    assert [token.piece for token in read_tokens(f"a{invisible}b c")] == [" ab ", " c "]
    assert read_tokens(f"{invisible}{invisible}") == read_tokens(invisible) == []


def test_what_stands_for_nothing_else_is_read_as_before() -> None:
    """Other characters without a width of their own change words or where they begin: they are kept, or divide them."""
    for character in "\u200e\u202a\u180e\u0301\ufe00\x00":
        assert character in "".join(token.piece for token in read_tokens(f"a{character}b"))
    for blank in "\u2028\t":
        assert [token.piece for token in read_tokens(f"a{blank}b")] == [" a ", " b "]


def test_what_shows_nothing_is_left_out() -> None:
    for code in (0xAD, 0x34F, 0x61C, 0x115F, 0x17B4, 0x180E, 0x200E, 0x2065, 0x2069, 0x3164, 0xFE00, 0xFEFF, 0xE0FFF):
        assert without_invisible(f"a{chr(code)}b") == "ab", hex(code)
    assert all(without_invisible(character) == "" for character in INVISIBLE)
    assert without_invisible("é\u0301 \t\n\u2028日本語👩") == "é\u0301 \t\n\u2028日本語👩"


@pytest.mark.parametrize(
    ("emoji", "tokens"),
    [
        ("\N{WOMAN}\u200d\N{PERSONAL COMPUTER}", 1),  # a programmer
        ("\N{WOMAN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}\u200d\N{PERSONAL COMPUTER}", 1),
        ("\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}\u200d\N{BOY}", 1),  # a family
        ("\N{HEAVY BLACK HEART}\ufe0f\u200d\N{FIRE}", 1),
        ("\N{HEAVY BLACK HEART}\ufe0f", 1),
        ("\N{HEAVY BLACK HEART}\ufe0e", 1),
        ("\N{WAVING WHITE FLAG}\ufe0f\u200d\N{RAINBOW}", 1),
        ("\N{WOMAN}\u200d\N{HEAVY BLACK HEART}\ufe0f\u200d\N{KISS MARK}\u200d\N{WOMAN}", 1),
        ("\N{WOMAN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}\u200d\N{STAFF OF AESCULAPIUS}\ufe0f", 1),
        ("1\ufe0f\N{COMBINING ENCLOSING KEYCAP}", 2),  # a number and a mark
    ],
)
def test_no_quotation_tears_an_emoji_apart_at_a_joiner(emoji: str, tokens: int) -> None:
    """The first token begins where the emoji does, the last ends there, and no token ends at a joiner."""
    text = f"She is a {emoji} ."
    found = [token for token in read_tokens(text) if text.index(emoji) <= token.start < text.index(emoji) + len(emoji)]
    assert len(found) == tokens
    assert text[found[0].start : found[-1].end] == emoji
    assert all("\u200d" not in (text[token.start], text[token.end - 1]) for token in found)
    assert detokenize(token.piece for token in found).strip() == seen(emoji)


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_variation_selector_is_not_read_and_belongs_to_the_character_in_front(selector: str) -> None:
    heart = f"\N{HEAVY BLACK HEART}{selector}"
    bare = "\N{HEAVY BLACK HEART}"
    assert cut(f"{heart}Anna") == [(bare, heart), ("anna", "Anna")]
    assert cut(f"Anna{heart}") == [("anna", "Anna"), (bare, heart)]
    assert cut(f"5{selector} {heart}!") == [("5", f"5{selector}"), (bare, heart), ("!", "!")]
    assert cut(f"{selector}Anna{selector}{selector}") == [("anna", f"Anna{selector}")]
    assert [token.piece for token in read_tokens(f"{heart}Anna")] == [
        token.piece for token in read_tokens(f"{bare}Anna")
    ]
    assert read_tokens(selector) == []
    assert not has_words(f" {selector}")


def test_the_kind_of_every_character_is_unicodes() -> None:
    kinds = text_module._KIND_OF_CODE
    for code in range(0x110000):
        if chr(code) not in INVISIBLE + " ":
            assert kinds[code] == text_module._kind(code), hex(code)
