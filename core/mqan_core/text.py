"""Reversible tokens with their place in the caller's string.

The tokens are those of RevTok (Bradbury 2018, word level, no decapitalisation), the paper's tokenizer. A space is a
marker for half a space: between a word and its neighbour each side carries one, so that joining the pieces and
halving every run of spaces gives back the input exactly. The pieces equal the revtok package's for every string; this
module adds the span of each piece, and does without the package's undeclared dependency and reserved code point.

    >>> [t.piece for t in tokenize("Is it Tom's?")]
    [' Is ', ' it ', ' Tom ', "'", ' s ', '? ']
    >>> [(t.start, t.end) for t in tokenize("Is it Tom's?")]
    [(0, 2), (3, 5), (6, 9), (9, 10), (10, 11), (11, 12)]
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

HALF_SPACE = " "

# Which side of a boundary carries the half space: the neighbour whose Unicode major class ranks higher. A rank is a
# digit, so that a text's ranks are a string, in which runs are found; a space is its own rank, below all others.
_RANK_OF_CLASS = {"L": "7", "M": "7", "N": "5", "S": "4", "P": "3", "Z": "1", "C": "0"}
_OUTSIDE = "2"  # before and after the text; boundaries carry half spaces where a side ranks higher than this
_RUNS = re.compile("7+|5+|4+|[310]|(?<![^ 2])(?![^ 2])")  # letters and marks, numbers, symbols; between spaces nothing
_SPACES = re.compile(" +")


class _Ranks(dict[int, str]):
    """The rank of each code point."""

    def __missing__(self, code: int) -> str:
        return _RANK_OF_CLASS[unicodedata.category(chr(code))[0]]


_RANKS = _Ranks({code: _Ranks()[code] for code in range(0x500)} | {ord(" "): " "})  # Latin, Greek and Cyrillic


def _half_spaces(is_carried: Callable[[str, str], bool]) -> dict[str, str]:
    ranks = (" ", _OUTSIDE, *_RANK_OF_CLASS.values())
    return {left + right: HALF_SPACE if is_carried(left, right) else "" for left in ranks for right in ranks}


_OPENING = _half_spaces(lambda left, right: left == " " or right > max(left, _OUTSIDE))
_CLOSING = _half_spaces(lambda left, right: right == " " or left > _OUTSIDE and left >= right)


class Token(NamedTuple):
    """One token of a string.

    Attributes:
        piece: the text of the token with its half spaces, in the caller's casing.
        start: first code point of the token in the string.
        end: one past the last code point; ``string[start:end] == piece.strip(" ")``. Equal to ``start`` for a token
            that consists of half spaces only.
    """

    piece: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """The lower-cased piece: what the model reads, generates and copies."""
        return self.piece.lower()

    @property
    def word(self) -> str:
        """The lower-cased token without half spaces: what word vectors are looked up by."""
        return word_of(self.piece)

    @property
    def is_blank(self) -> bool:
        """Whether the token is white space only; the model does not read such tokens."""
        return not self.piece.strip()


def word_of(piece: str) -> str:
    """Return the lower-cased piece without surrounding white space."""
    return piece.strip().lower()


def tokenize(text: str) -> list[Token]:
    """Split a string into reversible tokens with their half-open code-point spans.

    ``detokenize(token.piece for token in tokenize(text)) == text`` for every string. Takes time linear in the length.
    """
    return list(scan(text))


def scan(text: str) -> Iterator[Token]:
    """Yield the tokens of a string one by one, for those who may stop before its end; see :func:`tokenize`."""
    if not text:
        return
    ranks = _OUTSIDE + text.translate(_RANKS) + _OUTSIDE
    for run in _RUNS.finditer(ranks, 1, len(ranks) - 1):
        start, end = run.start() - 1, run.end() - 1
        yield Token(_OPENING[ranks[start : start + 2]] + text[start:end] + _CLOSING[ranks[end : end + 2]], start, end)


def detokenize(pieces: Iterable[str]) -> str:
    """Join pieces into text: every run of n half spaces becomes n // 2 spaces."""
    return _SPACES.sub(lambda run: " " * (len(run.group()) // 2), "".join(pieces))


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a string that the model reads: all but white space."""
    return [token for token in tokenize(text) if not token.is_blank]
