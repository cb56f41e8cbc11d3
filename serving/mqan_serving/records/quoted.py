"""A quotation of which a value is to be read, and the text around it, which can change the value."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from mqan_core.text.tokens import without_invisible

NEAR_CHARS: Final = 24  # around a quotation, which can change its number
WIDE_GAP: Final = "\N{EM SPACE}"  # stands for the white space between columns
_COLUMN: Final = 2  # blanks that stand between columns
_BLANKS: Final = re.compile(r"[^\S\n]+")
_LINE_ENDS: Final = re.compile(rf"[ {WIDE_GAP}]?\n[ {WIDE_GAP}\n]*")  # where blanks are single spaces
Knows = Callable[[str], bool]  # whether a word, in lower case, is one of the text's language

any_case = partial(re.compile, flags=re.IGNORECASE)


class NoValueError(ValueError):
    """A quotation has no value of the wanted kind; the message says why, to follow "The quotation"."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """A quotation with single spaces, and some characters around it, where a line feed ends each line."""

    text: str
    before: str = "\n"
    after: str = "\n"
    knows: Knows = str.isascii
    whole: str = ""  # text, whose other dates show how this one is written

    @property
    def line_before(self) -> str:
        return self.before.rpartition("\n")[2]

    @property
    def line_after(self) -> str:
        return self.after.partition("\n")[0]


def quoted_in(quotation: str, before: str, after: str, knows: Knows, whole: str) -> Quoted:
    text = " ".join(without_invisible(quotation).split())
    before = before if len(before) >= NEAR_CHARS else f"\n{before}"
    return Quoted(text, _lines(before), _lines(after), knows, whole)


def _lines(around: str) -> str:
    def shown(blank: re.Match[str]) -> str:
        return WIDE_GAP if len(blank[0]) >= _COLUMN or "\t" in blank[0] else " "

    return _LINE_ENDS.sub("\n", _BLANKS.sub(shown, without_invisible(around)))
