"""Word pieces of a pretrained encoder (WordPiece, Wu et al. 2016), of which any word is put together.

A word is cut as BERT's uncased tokenizer does it: accents are dropped, punctuation and ideographs stand alone, the rest
is matched from the left, the longest piece first. Other than there, letters and digits in forms that are only
typography ("ﬂoor", "ＡＢＣ") are read as plain ones: a PDF is full of them.
"""

import unicodedata
from collections.abc import Sequence

FIRST, BETWEEN, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"  # marks of a sequence; what stands for a word without pieces
_INSIDE = "##"  # begins a piece that goes on within a word
_LONGEST_WORD = 100  # characters; what is longer is unknown
_REMEMBERED, _LONGEST_REMEMBERED = 50_000, 32  # words, and characters of one
_FORMS = {"<compat>", "<wide>", "<narrow>", "<font>"}  # what Unicode says of a form that is only typography
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    *((0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
_FIRST_IDEOGRAPH = min(first for first, _ in _IDEOGRAPHS)


class WordPieces:
    """Cuts words into distinct pieces, with ``[CLS]``, ``[SEP]`` and ``[UNK]`` among them."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = tuple(pieces)
        self._id_of = {piece: i for i, piece in enumerate(self.pieces)}
        if len(self._id_of) != len(self.pieces):
            raise ValueError("word pieces: a piece is there twice")
        if missing := [mark for mark in (FIRST, BETWEEN, UNKNOWN) if mark not in self._id_of]:
            raise ValueError(f"word pieces: {', '.join(missing)} is missing")
        self._known: dict[str, tuple[int, ...]] = {}
        # The number of each piece, and none of what only begins one: looking for the longest piece goes no further.
        self._beginnings: dict[str, int | None] = {}
        for piece in self.pieces:
            for end in range(1, len(piece)):
                self._beginnings.setdefault(piece[:end])
        self._beginnings |= self._id_of

    def id_of(self, piece: str) -> int:
        return self._id_of[piece]

    def knows(self, word: str) -> bool:
        return word in self._id_of

    def ids(self, word: str) -> tuple[int, ...]:
        """Return the numbers of a word's pieces, at least one."""
        known = self._known.get(word)
        if known is None and word.isascii() and word.isalpha() and word in self._id_of:
            known = self._known[word] = (self._id_of[word],)  # a plain word, which is one piece
        if known is None:
            parts = [self._match(part) for part in _parts(word)]
            known = tuple(i for part in parts for i in part) or (self._id_of[UNKNOWN],)
            if len(word) <= _LONGEST_REMEMBERED and len(self._known) < _REMEMBERED:
                self._known[word] = known
        return known

    def _match(self, part: str) -> list[int]:
        unknown = [self._id_of[UNKNOWN]]
        if len(part) > _LONGEST_WORD:
            return unknown
        ids: list[int] = []
        start = 0
        while start < len(part):
            beginning = _INSIDE if start else ""
            longest, end = None, start
            for place in range(start, len(part)):
                beginning += part[place]
                if beginning not in self._beginnings:
                    break
                number = self._beginnings[beginning]
                if number is not None:
                    longest, end = number, place + 1
            if longest is None:
                return unknown
            ids.append(longest)
            start = end
        return ids


def _parts(word: str) -> list[str]:
    """Split a lower-cased word where an ideograph or punctuation stands, without accents and control characters."""
    parts = [""]
    for character in unicodedata.normalize("NFD", "".join(map(_plain, word))):
        category = unicodedata.category(character)
        if category == "Mn" or category[0] == "C" or character == "\ufffd":
            continue
        if category[0] == "Z":
            parts.append("")
        elif _stands_alone(character, category):
            parts += [character, ""]
        else:
            parts[-1] += character
    return [part for part in parts if part]


def _plain(character: str) -> str:
    """Return a letter or digit in its plain form: ligatures ("ﬂ") as letters, wide and mathematical ones as usual."""
    tag, _, _ = unicodedata.decomposition(character).partition(" ")
    if tag not in _FORMS or unicodedata.category(character)[0] not in "LN":
        return character
    return unicodedata.normalize("NFKD", character).lower()


def _stands_alone(character: str, category: str) -> bool:
    code = ord(character)
    if category[0] == "P" or (33 <= code <= 126 and not character.isalnum()):
        return True
    return code >= _FIRST_IDEOGRAPH and any(first <= code <= last for first, last in _IDEOGRAPHS)
