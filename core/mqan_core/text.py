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
from collections.abc import Iterable
from dataclasses import dataclass

HALF_SPACE = " "

# Which side of a boundary carries the half space: the neighbour whose Unicode major class ranks higher.
_RANK_OF_CLASS = {"L": 7, "M": 7, "N": 5, "S": 3, "P": 1, "Z": -1, "C": -3}
_FIRST_GLUED_RANK = 3  # letters, marks, numbers and symbols run together; each punctuation mark stands alone
_SPACES = re.compile(" +")


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
    tokens: list[Token] = []
    category = unicodedata.category
    ranks = _RANK_OF_CLASS
    current = ""  # the piece being built
    start = end = 0  # its span
    started = False  # whether a piece is being built at all
    previous: int | None = 0  # rank of the last character; None right after a space

    for position, char in enumerate(text):
        if char == " ":
            if started:
                tokens.append(Token(current + HALF_SPACE, start, end))
            else:
                tokens.append(Token(HALF_SPACE, 0, 0))
            current, start, end, started, previous = HALF_SPACE, position + 1, position + 1, True, None
            continue
        rank = ranks[category(char)[0]]
        if previous is None or (rank == previous and rank >= _FIRST_GLUED_RANK and started):
            current += char
        else:
            opens_with_half_space = False
            if rank <= 0 and previous <= 0:
                closing = ""
            elif rank <= previous:
                closing = HALF_SPACE
            else:
                closing, opens_with_half_space = "", True
            if started:
                tokens.append(Token(current + closing, start, end))
            current = HALF_SPACE + char if opens_with_half_space else char
            start, started = position, True
        end = position + 1
        previous = rank

    if started:
        closing = HALF_SPACE if previous is not None and previous > 0 else ""
        tokens.append(Token(current + closing, start, end))
    return tokens


def detokenize(pieces: Iterable[str]) -> str:
    """Join pieces into text: every run of n half spaces becomes n // 2 spaces."""
    return _SPACES.sub(lambda run: " " * (len(run.group()) // 2), "".join(pieces))


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a string that the model reads: all but white space."""
    return [token for token in tokenize(text) if not token.is_blank]
