"""Places of forms and tables that are left empty: a text can name what is asked, and say nothing of it.

A model takes what stands near instead: the price of the next row, the end for a start. So a quotation has no value
where the text has a line or a cell for exactly what is asked and nothing stands in it.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_LEFT_OUT: Final = frozenset(
    ("a", "an", "and", "at", "for", "how", "in", "is", "many", "much", "of", "on", "s", "the", "to", "was", "what")
    + ("when", "which", "who")
)
_SAME: Final = {"qty": "quantity", "amt": "amount", "tel": "phone", "telephone": "phone", "mail": "email"}
_NOTHING: Final = frozenset({"", "na", "none", "null", "nil", "tbd", "tbc", "open", "pending"})
_SEPARATORS: Final = "|;\t,"
_LEAST_LINES: Final = 2  # of a table, its header among them


def is_left_empty(context: str, question: str) -> bool:
    """Return whether a text has a place for exactly what a question asks, and leaves all such places empty."""
    asked = _words(question)
    found = [_is_nothing(cell) for cell in _places(context, asked)] if asked else []
    return bool(found) and all(found)


def _places(context: str, asked: frozenset[str]) -> Iterator[str]:
    """Yield what stands in lines and cells that are named as what is asked."""
    lines = context.splitlines()
    for line in lines:
        for mark in ":=":
            name, is_there, rest = line.partition(mark)
            if is_there and _words(name) == asked:
                yield rest
    for separator in _SEPARATORS:
        for has_cells, block in groupby(lines, key=lambda line, mark=separator: mark in line):  # type: ignore[misc]
            rows = [_cells(line, separator) for line in block] if has_cells else []
            if len(rows) >= _LEAST_LINES:
                yield from _cells_of(rows, asked)


def _cells(line: str, separator: str) -> list[str]:
    if separator == "|" and line.lstrip().startswith("|"):  # of Markdown
        line = line.strip().removeprefix("|").removesuffix("|")
    return line.split(separator)


def _cells_of(rows: Sequence[Sequence[str]], asked: frozenset[str]) -> Iterator[str]:
    """Yield the cells whose row and column together are named as what is asked."""
    names = [_words(cell) for cell in rows[0]]
    for row in rows[1:]:
        of_row = _words(row[0])
        for name, cell in zip(names[1:], row[1:], strict=False):
            if name and of_row and name | of_row == asked:
                yield cell


def _words(text: str) -> frozenset[str]:
    words = {_SAME.get(word, word) for word in _WORD.findall(text.lower().replace("e-mail", "email"))}
    return frozenset(word if len(word) < 4 else word.removesuffix("s") for word in words - _LEFT_OUT)


def _is_nothing(cell: str) -> bool:
    return "".join(filter(str.isalnum, cell)).lower() in _NOTHING
