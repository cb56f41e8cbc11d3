"""Lines of forms and cells of tables, which can be named as what is asked, and end what stands in them.

A model takes what stands near instead: the price of the next row, the end for a start. So a quotation has no value
where the text has a line or a cell for exactly what is asked and nothing stands in it, or where it stands outside the
cells of tables for just that. What is in other cells changes no value.
"""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import groupby
from typing import Final

_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_LEFT_OUT: Final = frozenset(
    ("a", "an", "and", "at", "for", "from", "how", "in", "is", "many", "much", "of", "on", "s", "the", "to", "was")
    + ("what", "when", "which", "who")
)
_SAME: Final = {"qty": "quantity", "amt": "amount", "tel": "phone", "telephone": "phone", "mail": "email"}
_NOTHING: Final = frozenset({"", "na", "none", "null", "nil", "tbd", "tbc", "open", "pending"})
_LINE: Final = re.compile("^.*$", re.MULTILINE)
_GAP: Final = "  "  # or more, between columns that stand under each other
_CELLS: Final = {  # by what separates them; in quotation marks it does not
    "|": re.compile(r'(?:^|\|)((?:[^"|\n]++|"(?:[^"\n]*")?)*+)', re.MULTILINE),
    ";": re.compile(r'(?:^|;)((?:[^";\n]++|"(?:[^"\n]*")?)*+)', re.MULTILINE),
    "\t": re.compile(r'(?:^|\t)((?:[^"\t\n]++|"(?:[^"\n]*")?)*+)', re.MULTILINE),
    ",": re.compile(r'(?:^|,)((?:[^",\n]++|"(?:[^"\n]*")?)*+)', re.MULTILINE),
    _GAP: re.compile(r"(?:^[^\S\n]?(?=\S)|^|[^\S\n]{2,})((?:\S++(?:[^\S\n]\S++)*+)?)", re.MULTILINE),
}
_OF_PROSE: Final = ";,"  # too: names of columns between them begin with letters
_NAME: Final = re.compile(r' ?"?[^\W\d_]')

_Row = tuple[re.Match[str], list[range]]  # its line, and where its cells are in the text
_Table = tuple[list[frozenset[str]], list[_Row], bool]  # words of its columns' names, rows, if cells are sure


class Places:
    """The lines and the cells of tables in a text."""

    def __init__(self, context: str) -> None:
        self.context = context
        self._asked: dict[str, list[range]] = {}

    def is_left_empty(self, question: str) -> bool:
        """Return whether there is a place for exactly what a question asks, and all such places are left empty."""
        asked = _words(question)
        found = [self.context[cell.start : cell.stop] for cell in self.cells_for(question)]
        for line in self._lines:
            for mark in ":=":
                name, is_there, rest = line[0].partition(mark)
                if is_there and _words(name) == asked:
                    found.append(rest)
        return bool(asked and found) and all(map(_is_nothing, found))

    def cells_for(self, question: str) -> list[range]:
        """Return the cells that a question asks for: it names their column, and with all its other words their row."""
        if question in self._asked:
            return self._asked[question]
        asked, found = _words(question), self._asked.setdefault(question, [])
        for names, rows, _ in self._tables:
            columns = [(place, asked - name) for place, name in enumerate(names) if name and name < asked]
            for line, cells in rows if columns else ():
                words = _words(line[0])
                found += [cells[place] for place, rest in columns if rest <= words]
        return found

    def cell_at(self, start: int, end: int) -> range | None:
        """Return the cell of a table that a quotation stands in, if it is all in one."""
        rows = (row for _, rows, is_sure in self._tables if is_sure for _, row in rows)
        return cell_of(start, end, (cell for row in rows if row[0].start <= start <= row[-1].stop for cell in row))

    @cached_property
    def _lines(self) -> list[re.Match[str]]:
        return list(_LINE.finditer(self.context))

    @cached_property
    def _tables(self) -> list[_Table]:
        blocks = [
            (mark, list(block))
            for mark in _CELLS
            for has_cells, block in groupby(self._lines, key=lambda line, mark=mark: mark in line[0])  # type: ignore[misc]
            if has_cells
        ]
        return [table for mark, lines in blocks if (table := _table(mark, *lines))]


def cell_of(start: int, end: int, cells: Iterable[range]) -> range | None:
    return next((cell for cell in cells if start in cell and end - 1 in cell), None)


def _table(separator: str, header: re.Match[str], *lines: re.Match[str]) -> _Table | None:
    columns = _cells(header, separator)
    names = [header.string[cell.start : cell.stop] for cell in columns]
    if not names or (separator in _OF_PROSE and not all(map(_NAME.match, names))):
        return None
    rows = [
        (line, cells)
        for line in lines
        if len(cells := _cells(line, separator)) == len(names)
        and (separator != _GAP or _are_under(columns, cells, header.start() - line.start()))
    ]
    # A comma may be that of a number. What gaps end need not be a cell.
    is_sure = separator != _GAP and (separator != "," or (names[1:-1] and ", " not in header[0]))
    return list(map(_words, names)), rows, bool(is_sure) and len(rows) == len(lines)


def _are_under(columns: list[range], cells: list[range], shift: int) -> bool:
    follow = all(column.stop <= cell.start + shift for column, cell in zip(columns, cells[1:], strict=False))
    precede = all(cell.stop + shift <= column.start for column, cell in zip(columns[2:], cells[1:], strict=False))
    return follow and precede


def _cells(line: re.Match[str], separator: str) -> list[range]:
    end = line.start() + len(line[0].rstrip(" "))
    cells = [range(*found.span(1)) for found in _CELLS[separator].finditer(line.string, line.start(), end)]
    if separator == "|" and line[0].lstrip().startswith("|"):  # of Markdown
        return cells[1:-1] if line[0].rstrip().endswith("|") else cells[1:]
    return cells


def _words(text: str) -> frozenset[str]:
    words = {_SAME.get(word, word) for word in _WORD.findall(text.lower().replace("e-mail", "email"))}
    return frozenset(word if len(word) < 4 else word.removesuffix("s") for word in words - _LEFT_OUT)


def _is_nothing(cell: str) -> bool:
    return "".join(filter(str.isalnum, cell)).lower() in _NOTHING
