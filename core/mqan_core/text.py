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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

HALF_SPACE = " "

# Which side of a boundary carries the half space: the neighbour whose Unicode major class ranks higher.
_RANK_OF_CLASS = {"L": 7, "M": 7, "N": 5, "S": 3, "P": 1, "Z": -1, "C": -3}
_FIRST_GLUED_RANK = 3  # letters, marks, numbers and symbols run together; each punctuation mark stands alone
_SPACES = re.compile(" +")


def _rank_of(char: str) -> int:
    return _RANK_OF_CLASS[unicodedata.category(char)[0]]


_COMMON_RANKS = {chr(code): _rank_of(chr(code)) for code in range(0x500)}  # Latin, Greek and Cyrillic


@dataclass(frozen=True, slots=True)
class Token:
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
    opening = ""  # the half space that the piece being read begins with
    start = 0  # where its characters begin
    started = False  # whether a piece is being read at all
    previous: int | None = 0  # rank of the last character; None right after a space

    for position, char in enumerate(text):
        if char == " ":
            yield Token(opening + text[start:position] + HALF_SPACE, start, position)
            opening, start, started, previous = HALF_SPACE, position + 1, True, None
            continue
        rank = _COMMON_RANKS.get(char)
        if rank is None:
            rank = _rank_of(char)
        if rank == previous and rank >= _FIRST_GLUED_RANK:
            continue
        if previous is not None:
            has_boundary = rank > 0 or previous > 0
            if started:
                closing = HALF_SPACE if has_boundary and rank <= previous else ""
                yield Token(opening + text[start:position] + closing, start, position)
            opening = HALF_SPACE if has_boundary and rank > previous else ""
            start, started = position, True
        previous = rank

    if started:
        closing = HALF_SPACE if previous is not None and previous > 0 else ""
        yield Token(opening + text[start:] + closing, start, len(text))


def detokenize(pieces: Iterable[str]) -> str:
    """Join pieces into text: every run of n half spaces becomes n // 2 spaces."""
    return _SPACES.sub(lambda run: " " * (len(run.group()) // 2), "".join(pieces))


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a string that the model reads: all but white space."""
    return [token for token in tokenize(text) if not token.is_blank]
