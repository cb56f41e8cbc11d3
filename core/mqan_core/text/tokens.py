"""Reversible tokens with their place in the caller's string.

The tokens are those of RevTok (Bradbury 2018, word level, no decapitalisation), the paper's tokenizer, without those
of white space alone. A space is a marker for half a space: between a word and its neighbour each side carries one, so
that joining the pieces and halving every run of spaces gives back the input. The pieces equal the revtok package's for
every string without invisible characters; this module adds the span of each piece, and does without the package's
undeclared dependency and reserved code point.

    >>> [t.piece for t in read_tokens("Is it Tom's?")]
    [' Is ', ' it ', ' Tom ', "'", ' s ', '? ']
    >>> [(t.start, t.end) for t in read_tokens("Is it Tom's?")]
    [(0, 2), (3, 5), (6, 9), (9, 10), (10, 11), (11, 12)]

Characters that only say where a line may break or how letters join (``INVISIBLE``) are not read: a word with a soft
hyphen in it is the same word. Spans are of the caller's string and cover those inside a word. An emoji that is made of
several (a family, a profession) is one token, because the joiners between its parts are not read either. A variation
selector, which says whether the character in front of it is shown as an emoji or as text, is not read, and belongs to
the span of that character.

    >>> [(t.piece, t.start, t.end) for t in read_tokens("Sol\\u00adberg")]
    [(' Solberg ', 0, 8)]
    >>> [(t.piece, t.start, t.end) for t in read_tokens("\\u2764\\ufe0fAnna")]
    [(' \u2764', 0, 2), (' Anna ', 2, 6)]
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

HALF_SPACE = " "
_SELECTORS = "\ufe0e\ufe0f"  # of the variation of the character in front: text, emoji
# Soft hyphen; zero width: space, non-joiner, joiner, word joiner, no-break space.
INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff" + _SELECTORS

# Unicode's default ignorable characters, beside most of those of format.
_IGNORABLE = (
    *((0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF)),
)

# Which side of a boundary carries the half space: the neighbour whose Unicode major class ranks higher. Neighbours of
# one class make a token together if they are letters and marks, numbers, or symbols.
_RANK_OF_CLASS = {"L": 7, "M": 7, "N": 5, "S": 4, "P": 3, "Z": 1, "C": 0}
_OUTSIDE = 2  # before and after the text; boundaries carry half spaces where a side ranks higher than this
_LEAST_JOINING = 4
# Kinds beside the ranks, which have one of their own.
_SPACE, _BLANK_CONTROL, _INVISIBLE = 8, 9, 10
_SPACES = re.compile(" +")
_READABLE = re.compile(rf"[^\s{INVISIBLE}]")
_ASSIGNED = 0x40000  # beyond the first planes are unassigned and private characters (C), and few others
_OTHERS = range(0xE0000, 0xE1000)

_REMEMBERED_LABELS, _LONGEST_LABEL = 4096, 64  # characters: many texts are asked with the same labels
_REMEMBERED_TEXTS, _LONGEST_TEXT = 8, 16_384  # that many questions are asked about

Kinds = npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]


def _kind(code: int) -> int:
    character = chr(code)
    rank = _RANK_OF_CLASS[unicodedata.category(character)[0]]
    return _BLANK_CONTROL if rank == 0 and character.isspace() else rank


def _kinds() -> Kinds:
    kinds = np.zeros(sys.maxunicode + 1, np.uint8)
    for codes in (range(_ASSIGNED), _OTHERS):
        kinds[codes.start : codes.stop] = np.fromiter(map(_kind, codes), np.uint8, len(codes))
    kinds[ord(" ")] = _SPACE
    kinds[list(map(ord, INVISIBLE))] = _INVISIBLE
    return kinds


_KIND_OF_CODE = _kinds()
_RANKS = np.array([0, 1, 2, 3, 4, 5, 6, 7, -1, 0], np.int8)  # of each kind: a space's is below all others
_LEFT, _RIGHT = _RANKS[:, None], _RANKS[None, :]
# Whether the token on the right, or on the left, of a boundary carries a half space there; [kind left, kind right].
_OPENS = (_LEFT < 0) | (np.maximum(_LEFT, _OUTSIDE) < _RIGHT)
_CLOSES = (_RIGHT < 0) | ((_LEFT > _OUTSIDE) & (_LEFT >= _RIGHT))
_IS_BLANK = np.isin(np.arange(len(_RANKS)), (_SPACE, _OUTSIDE, _BLANK_CONTROL, _RANK_OF_CLASS["Z"]))


class Token(NamedTuple):
    """One token; ``string[start:end]`` without invisible characters is ``piece.strip(" ")``."""

    piece: str  # with its half spaces, in the caller's casing, without invisible characters
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


class Size(NamedTuple):
    """The amount that there is to read in a text."""

    num_tokens: int  # that the model reads
    longest: int  # code points of the longest of them, as the caller wrote it
    longest_start: int  # where it starts


def word_of(piece: str) -> str:
    """Return the lower-cased piece without surrounding white space."""
    return piece.strip().lower()


def has_words(text: str) -> bool:
    """Return whether there is anything to read in a text: more than white space and invisible characters."""
    return _READABLE.search(text) is not None


def without_invisible(text: str) -> str:
    """Return a text without all that shows nothing; some of it is read (``INVISIBLE`` is not), as it divides words."""
    return text if text.isascii() else text.translate(_hidden())


@cache
def _hidden() -> dict[int, None]:
    ignorable = chain.from_iterable(range(first, last + 1) for first, last in _IGNORABLE)
    of_format = (code for code in range(0x20000) if unicodedata.category(chr(code)) == "Cf")
    return dict.fromkeys(chain(ignorable, of_format))


def read_tokens(text: str, check: Callable[[Size], None] | None = None) -> list[Token]:
    """Split a string into its tokens, all but those of white space, in time linear in the length.

    The check gets the string's size before the tokens are made, to refuse what is too long.
    """
    found = _boundaries(text)
    if check is not None:
        check(found.size)
    return list(found.tokens)


def measure(text: str) -> Size:
    """Return how much there is to read in a text, without making its tokens: in some 20 ms for 1 MiB of anything."""
    return _boundaries(text).size


def detokenize(pieces: Iterable[str]) -> str:
    """Join pieces into text: every run of n half spaces becomes n // 2 spaces."""
    return _SPACES.sub(lambda run: " " * (len(run.group()) // 2), "".join(pieces))


class _Boundaries:
    """Where the tokens of a text are: ``starts`` and ``ends``, [T]."""

    def __init__(self, text: str) -> None:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        kinds = _KIND_OF_CODE[codes]
        is_read = kinds != _INVISIBLE
        places = None
        if not is_read.all():
            places = np.append(np.flatnonzero(is_read), len(text))
            kinds = kinds[is_read]
            text = codes[is_read].tobytes().decode("utf-32-le", "surrogatepass")
        self._text = text
        self._kinds = np.full(len(text) + 2, _OUTSIDE, np.uint8)
        self._kinds[1:-1] = kinds
        kinds = self._kinds
        is_joined = (kinds[:-1] == kinds[1:]) & (_RANKS[kinds[1:]] >= _LEAST_JOINING)  # across each boundary
        self._starts: Places = np.flatnonzero(~is_joined & ~_IS_BLANK[kinds[1:]])
        self._ends: Places = np.flatnonzero(~is_joined & ~_IS_BLANK[kinds[:-1]])
        self.starts, self.ends = self._starts, self._ends
        if places is not None:  # of the text that is read, to places in the caller's
            self.starts = places[self._starts]
            is_selector = np.append(np.isin(codes, list(map(ord, _SELECTORS))), False)
            ends = np.minimum(places[self._ends - 1] + 1, len(codes))
            self.ends = ends + is_selector[ends]

    @cached_property
    def size(self) -> Size:
        if not self.starts.size:
            return Size(0, 0, 0)
        lengths = self.ends - self.starts
        longest = int(lengths.argmax())
        return Size(lengths.size, int(lengths[longest]), int(self.starts[longest]))

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        kinds, text, halves = self._kinds, self._text, ("", HALF_SPACE)
        opens = _OPENS[kinds[self._starts], kinds[self._starts + 1]].tolist()
        closes = _CLOSES[kinds[self._ends], kinds[self._ends + 1]].tolist()
        within = zip(opens, self._starts.tolist(), self._ends.tolist(), closes, strict=True)
        pieces = [halves[is_open] + text[first:last] + halves[is_closed] for is_open, first, last, is_closed in within]
        return tuple(map(Token, pieces, self.starts.tolist(), self.ends.tolist()))


_labels = lru_cache(_REMEMBERED_LABELS)(_Boundaries)
_texts = lru_cache(_REMEMBERED_TEXTS)(_Boundaries)


def _boundaries(text: str) -> _Boundaries:
    """Return the boundaries of a text: of one that was just read, or of a label, those of the last time."""
    if len(text) <= _LONGEST_LABEL:
        return _labels(text)
    return _texts(text) if len(text) <= _LONGEST_TEXT else _Boundaries(text)
