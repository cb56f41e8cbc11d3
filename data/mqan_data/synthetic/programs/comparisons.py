"""Numbers of some rows, in prose and in tables: which is the most, which is more, and what a cell says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.questions.asked import ask, ask_yes_no
from mqan_data.settings import parse, read_yaml
from mqan_data.synthetic.programs.told import Span, Told

_PATH = Path(__file__).resolve().with_suffix(".yaml")
_HELD_BACK = ("books", "machines")  # tables that are for validation only
_EMPTY = 0.35  # share of the tables that have an empty cell
_PERSONS = ("person", "runner")
_SIGNS = (" | ", " | ", ";", "\t", ", ", " / ")


@dataclass(frozen=True, slots=True)
class Column:
    """Numbers of one kind.

    Attributes:
        head, unit: heading, and how a number is written.
        low, high, step: which numbers.
        more, less, most, least: words that compare; empty for none.
        said: sentence for one row.
        cell: questions for one cell.
        tenth, comma, clock: whether it is written with a decimal, with a comma for thousands, or as a time of day.
    """

    head: str
    unit: str
    low: int
    high: int
    step: int
    more: str
    less: str
    most: str
    least: str
    said: str
    cell: tuple[str, ...]
    tenth: bool = False
    comma: bool = False
    clock: bool = False

    def written(self, number: int) -> str:
        """Return a number as it stands in the text."""
        text = f"{number:,}" if self.comma else str(number)
        if self.tenth:
            text = f"{number / 10:.1f}"
        if self.clock:
            text = f"{number // 60:02}:{number % 60:02}"
        return self.unit.replace("{n}", text)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one kind: what one is called, their names, and the columns."""

    row: str
    names: tuple[str, ...]
    columns: dict[str, Column]


@dataclass(frozen=True, slots=True)
class _File:
    tables: dict[str, Table]
    empty: tuple[str, ...]
    intros: tuple[str, ...]


@dataclass(slots=True)
class _Drawn:
    """A table that is filled: numbers by column and row, None for an empty cell, and where each cell stands."""

    table: Table
    names: list[str]
    columns: list[Column]
    numbers: dict[tuple[int, int], int | None]
    spans: dict[tuple[int, int], Span]
    rows: dict[int, list[Span]]


@cache
def _file() -> _File:
    return parse(_File, read_yaml(_PATH), str(_PATH))


def ask_comparisons(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a table or some sentences, and ask for a cell or compare."""
    tables = [table for key, table in _file().tables.items() if (key in _HELD_BACK) == held_back]
    drawn = _draw(chance, chance.choice(tables))
    told = Told()
    intro = chance.choice(_file().intros)
    told.add(f"{intro}\n" if intro else "")
    style = chance.random()
    if style < 0.35:
        _tell(chance, told, drawn)
    elif style < 0.5:
        _list(chance, told, drawn)
    else:
        _grid(chance, told, drawn)
    asked = _ask(chance, rng, told, drawn)
    return replace(asked, question=asked.question[:1].upper() + asked.question[1:])


def _draw(chance: Random, table: Table) -> _Drawn:
    names = chance.sample(table.names, chance.choice((2, 3, 3, 4, 4, 5)))
    keys = chance.sample(list(table.columns), chance.randint(1, min(3, len(table.columns))))
    columns = [table.columns[key] for key in keys]
    numbers: dict[tuple[int, int], int | None] = {}
    for place, column in enumerate(columns):
        some = chance.sample(range(column.low, column.high + 1, column.step), len(names))
        numbers |= {(place, row): number for row, number in enumerate(some)}
    if chance.random() < _EMPTY:
        numbers[chance.randrange(len(columns)), chance.randrange(len(names))] = None
    return _Drawn(table, names, columns, numbers, {}, {row: [] for row in range(len(names))})


def _cell(told: Told, drawn: _Drawn, place: int, row: int, empty: str) -> None:
    number = drawn.numbers[place, row]
    text = empty if number is None else drawn.columns[place].written(number)
    drawn.spans[place, row] = told.add("{v}", {"v": text})


def _grid(chance: Random, told: Told, drawn: _Drawn) -> None:
    """Write rows below a line of headings."""
    sign, empty = chance.choice(_SIGNS), chance.choice(_file().empty)
    if sign == ", " and any(column.comma for column in drawn.columns):
        sign = ";"
    begin, end = ("| ", " |") if sign == " | " and chance.random() < 0.6 else ("", "")
    heads = [drawn.table.row.capitalize(), *(column.head for column in drawn.columns)]
    told.add(begin + sign.join(heads) + end)
    if begin and chance.random() < 0.7:
        told.add("\n|" + "---|" * len(heads))
    for row, name in enumerate(drawn.names):
        told.add("\n" + begin)
        start = len(told.text)
        told.add("{r}", {"r": name})
        for place in range(len(drawn.columns)):
            told.add(sign)
            _cell(told, drawn, place, row, empty)
        drawn.rows[row].append((start, len(told.text)))
        told.add(end)


def _list(chance: Random, told: Told, drawn: _Drawn) -> None:
    """Write one block of lines for each row."""
    mark, empty = chance.choice(("", "- ", "  ")), chance.choice(_file().empty)
    for row, name in enumerate(drawn.names):
        told.add("\n\n" if row else "")
        start = len(told.text)
        told.add("{r}", {"r": name})
        for place, column in enumerate(drawn.columns):
            told.add(f"\n{mark}{column.head}: ")
            _cell(told, drawn, place, row, empty)
        drawn.rows[row].append((start, len(told.text)))


def _tell(chance: Random, told: Told, drawn: _Drawn) -> None:
    """Write a sentence for each number; nothing of what is not known."""
    cells = [cell for cell, number in drawn.numbers.items() if number is not None]
    if chance.random() < 0.6:
        cells.sort(key=lambda cell: cell[1])
    elif chance.random() < 0.5:
        chance.shuffle(cells)
    first = True
    for place, row in cells:
        told.add("" if first else " ")
        first = False
        column, name = drawn.columns[place], drawn.names[row]
        start = len(told.text)
        before, _, after = column.said.partition("{v}")
        told.add(before, {"r": name}, capital=True)
        _cell(told, drawn, place, row, "")
        told.add(after + ".")
        drawn.spans[place, row] = (start, len(told.text))
        drawn.rows[row].append((start, len(told.text)))


def _ask(chance: Random, rng: np.random.Generator, told: Told, drawn: _Drawn) -> Example:
    place = chance.randrange(len(drawn.columns))
    column = drawn.columns[place]
    numbers = {row: drawn.numbers[place, row] for row in range(len(drawn.names))}
    known = {row: number for row, number in numbers.items() if number is not None}
    complete = len(known) == len(numbers)
    style = chance.random()
    if style < 0.34 or not column.most or (style < 0.62 and not complete):
        return _ask_cell(chance, told, drawn, place)
    if style < 0.62:
        return _ask_most(chance, told, drawn, place, known)
    one, other = chance.sample(range(len(drawn.names)), 2)
    if not column.more or (complete and chance.random() < 0.25):
        return (
            _ask_whether_most(chance, rng, told, drawn, place, known)
            if complete
            else _ask_cell(chance, told, drawn, place)
        )
    missing = [row for row in numbers if row not in known]
    if missing and chance.random() < 0.6:
        one = missing[0]
        other = chance.choice([row for row in numbers if row != one])
    asks_more = chance.random() < 0.5
    words = column.more if asks_more else column.less
    question = chance.choice(("Is {one} {words} than {other}?", "Is it true that {one} is {words} than {other}?"))
    question = question.format(one=drawn.names[one], words=words, other=drawn.names[other])
    if one not in known or other not in known:
        return ask(told.text, question, (), choices=(Choice("yes"), Choice("no")))
    spans = (drawn.spans[place, one], drawn.spans[place, other])
    if chance.random() < 0.3:
        asks_for = "Who" if drawn.table.row in _PERSONS else "Which"
        which = f"{asks_for} is {words}: {drawn.names[one]} or {drawn.names[other]}?"
        right = one if (known[one] > known[other]) == asks_more else other
        name = drawn.names[right]
        choices = (Choice(drawn.names[one]), Choice(drawn.names[other])) if chance.random() < 0.6 else ()
        return ask(told.text, which, (name,), choices=choices, evidence=spans)
    return _yes_no(rng, told, question, (known[one] > known[other]) == asks_more, spans)


def _ask_cell(chance: Random, told: Told, drawn: _Drawn, place: int) -> Example:
    row = chance.randrange(len(drawn.names))
    missing = [row for row in range(len(drawn.names)) if drawn.numbers[place, row] is None]
    if missing and chance.random() < 0.6:
        row = missing[0]
    column, name, number = drawn.columns[place], drawn.names[row], drawn.numbers[place, row]
    head = column.head[:1].lower() + column.head[1:]
    templates = [*column.cell, f"{column.head} of {{r}}", f"{{r}}: {head}?"]
    if number is not None and chance.random() < 0.25:  # the row by its cell
        value = column.written(number)
        question = chance.choice(
            (
                f"Which {drawn.table.row} has {value} as {head}?",
                f"{column.head} {value}: which {drawn.table.row}?",
            )
        )
        found = told.quoted(name, drawn.rows[row][0])
        text, start = found or (name, None)
        return ask(told.text, question, (text,), start, evidence=(drawn.spans[place, row],))
    if chance.random() < 0.1:
        absent = chance.choice([other for other in drawn.table.names if other not in drawn.names] or [name])
        if absent != name:
            return ask(told.text, chance.choice(templates).replace("{r}", absent), ())
    question = chance.choice(templates).replace("{r}", name)
    if number is None:
        return ask(told.text, question, ())
    answer = column.written(number)
    span = drawn.spans[place, row]
    return ask(told.text, question, (answer,), told.text.index(answer, span[0]), evidence=(span,))


def _ranked(known: dict[int, int]) -> list[int]:
    return sorted(known, key=lambda row: known[row])


def _ask_most(chance: Random, told: Told, drawn: _Drawn, place: int, known: dict[int, int]) -> Example:
    """Ask for the row with the most, the least, or the second of more than two."""
    column, row_kind = drawn.columns[place], drawn.table.row
    ranked = _ranked(known)
    words, right = chance.choice(((column.most, ranked[-1]), (column.least, ranked[0])))
    templates = [f"Which {row_kind} is {words}?", f"Which of them is {words}?", f"Which one is {words}?"]
    if row_kind in _PERSONS:
        templates = [f"Who is {words}?", f"Which {row_kind} is {words}?"]
    if len(ranked) > 2 and words.startswith("the ") and words.split()[1].endswith("est") and chance.random() < 0.25:
        right = ranked[-2] if words == column.most else ranked[1]
        templates = [f"Which {row_kind} is the second {words.removeprefix('the ')}?"]
    spans = tuple(drawn.spans[place, row] for row in sorted(known))
    name = drawn.names[right]
    question = chance.choice(templates)
    if chance.random() < 0.4:
        names = chance.sample(drawn.names, len(drawn.names))
        return ask(told.text, question, (name,), choices=tuple(map(Choice, names)), evidence=spans)
    found = told.quoted(name)
    return ask(told.text, question, (found[0] if found else name,), found[1] if found else None, evidence=spans)


def _ask_whether_most(
    chance: Random, rng: np.random.Generator, told: Told, drawn: _Drawn, place: int, known: dict[int, int]
) -> Example:
    column, ranked = drawn.columns[place], _ranked(known)
    words, right = chance.choice(((column.most, ranked[-1]), (column.least, ranked[0])))
    row = right if chance.random() < 0.5 else chance.choice([row for row in ranked if row != right])
    spans = tuple(drawn.spans[place, row] for row in sorted(known))
    return _yes_no(rng, told, f"Is {drawn.names[row]} {words}?", row == right, spans)


def _yes_no(rng: np.random.Generator, told: Told, question: str, says_yes: bool, spans: Sequence[Span]) -> Example:
    return replace(ask_yes_no(rng, told.text, question, says_yes), evidence=tuple(spans))
