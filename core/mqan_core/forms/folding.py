"""Texts folded to be compared: in lower case, with single spaces and none at their ends."""

import re
from typing import NamedTuple

_WORDS = re.compile(r"\S+")
_LONGEST_SHOWN = 40  # characters


class Part(NamedTuple):
    """Part of a text: folded, and the half-open range of code points that it has in the text as it was."""

    folded: str
    start: int
    end: int


def fold(text: str) -> str:
    return " ".join(text.lower().split())


def shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


class FoldedText:
    """A text as of ``fold`` that knows where each of its characters was."""

    def __init__(self, text: str) -> None:
        self.text = fold(text)
        self._places: list[int] = []
        for word in _WORDS.finditer(text):
            if self._places:
                self._places.append(word.start())  # of the space in front of it
            for place, character in enumerate(word.group(), word.start()):
                self._places += [place] * len(character.lower())

    def part(self, start: int, end: int) -> Part:
        """Return what is between two places of ``text``, without the spaces at its ends."""
        found = self.text[start:end]
        if not found.strip():
            return Part("", 0, 0)
        start += len(found) - len(found.lstrip())
        found = found.strip()
        end = start + len(found)
        return Part(found, self._places[start], self._places[end - 1] + 1)
