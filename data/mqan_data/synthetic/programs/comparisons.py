"""Numbers of some rows, in prose and in tables: which is the most, which is more, and what a cell says."""

from random import Random
from typing import Any

import numpy as np

from mqan_core.example import Example
from mqan_data.synthetic.programs.told import Span, Told, load, worded

_HELD_BACK = ("books", "machines")  # tables that are for validation only
_EMPTY = 0.35  # share of the tables that have an empty cell
_PERSONS = ("person", "runner")
_SIGNS = (" | ", " | ", ";", "\t", ", ", " / ")


def ask_comparisons(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a table or some sentences, and ask for a cell or compare."""
    file = load("comparisons")
    table = chance.choice([table for key, table in file["tables"].items() if (key in _HELD_BACK) == held_back])
    sheet = _Sheet(file, Told(chance, rng), table)
    intro, style = chance.choice(file["intros"]), chance.random()
    sheet.told.add(f"{intro}\n" if intro else "")
    write = sheet.tell if style < 0.35 else sheet.write_list if style < 0.5 else sheet.write_grid
    write()
    return sheet.ask()


class _Sheet:
    """A table that is filled: numbers by column and row, None for an empty cell, and where rows and cells stand."""

    def __init__(self, file: Any, told: Told, table: Any) -> None:
        chance = told.chance
        self.file, self.told, self.chance, self.table = file, told, chance, table
        self.names = chance.sample(table["names"], chance.choice((2, 3, 3, 4, 4, 5)))
        self.columns = chance.sample(list(table["columns"].values()), chance.randint(1, min(3, len(table["columns"]))))
        self.numbers: dict[tuple[int, int], int | None] = {}
        for place, column in enumerate(self.columns):
            some = chance.sample(range(column["low"], column["high"] + 1, column["step"]), len(self.names))
            self.numbers |= {(place, row): number for row, number in enumerate(some)}
        if chance.random() < _EMPTY:
            self.numbers[chance.randrange(len(self.columns)), chance.randrange(len(self.names))] = None
        self.spans: dict[tuple[int, int], Span] = {}
        self.rows: list[list[Span]] = [[] for _ in self.names]

    def _add_row(self, row: int, before: list[str], empty: str) -> None:
        """Write a name and its cells, each after its own sign or heading."""
        start, _ = self.told.add("{r}", {"r": self.names[row]})
        for place, (sign, column) in enumerate(zip(before, self.columns, strict=True)):
            self.told.add(sign)
            number = self.numbers[place, row]
            text = empty if number is None else _written(column, number)
            self.spans[place, row] = self.told.add("{v}", {"v": text})
        self.rows[row].append((start, len(self.told.text)))

    def write_grid(self) -> None:
        """Write rows below a line of headings."""
        chance, told = self.chance, self.told
        sign, empty = chance.choice(_SIGNS), chance.choice(self.file["empty"])
        if sign == ", " and any(":," in column["unit"] for column in self.columns):
            sign = ";"
        begin, end = ("| ", " |") if sign == " | " and chance.random() < 0.6 else ("", "")
        heads = [self.table["row"].capitalize(), *(column["head"] for column in self.columns)]
        told.add(begin + sign.join(heads) + end)
        if begin and chance.random() < 0.7:
            told.add("\n|" + "---|" * len(heads))
        for row in range(len(self.names)):
            told.add("\n" + begin)
            self._add_row(row, [sign] * len(self.columns), empty)
            told.add(end)

    def write_list(self) -> None:
        """Write one block of lines for each row."""
        mark, empty = self.chance.choice(("", "- ", "  ")), self.chance.choice(self.file["empty"])
        for row in range(len(self.names)):
            self.told.add("\n\n" if row else "")
            self._add_row(row, [f"\n{mark}{column['head']}: " for column in self.columns], empty)

    def tell(self) -> None:
        """Write a sentence for each number; nothing of what is not known."""
        cells = [(cell, number) for cell, number in self.numbers.items() if number is not None]
        if self.chance.random() < 0.6:
            cells.sort(key=lambda cell: cell[0][1])
        elif self.chance.random() < 0.5:
            self.chance.shuffle(cells)
        for first, ((place, row), number) in enumerate(cells):
            self.told.add(" " if first else "")
            column = self.columns[place]
            values = {"r": self.names[row], "v": _written(column, number)}
            span = self.told.add(f"{column['said']}.", values, capital=True)
            self.spans[place, row] = span
            self.rows[row].append(span)

    def ask(self) -> Example:
        chance, place = self.chance, self.chance.randrange(len(self.columns))
        column = self.columns[place]
        numbers = [self.numbers[place, row] for row in range(len(self.names))]
        known = {row: number for row, number in enumerate(numbers) if number is not None}
        complete = len(known) == len(numbers)
        style = chance.random()
        if style >= 0.34 and column["most"] and (complete or style >= 0.62):
            if style < 0.62:
                return self._most(place, known)
            if column["more"] and not (complete and chance.random() < 0.25):
                return self._more(place, known)
            if complete:
                return self._whether_most(place, known)
        return self._one_cell(place)

    def _one_cell(self, place: int) -> Example:
        chance, told, column = self.chance, self.told, self.columns[place]
        row = chance.randrange(len(self.names))
        missing = [row for row in range(len(self.names)) if self.numbers[place, row] is None]
        if missing and chance.random() < 0.6:
            row = missing[0]
        name, number = self.names[row], self.numbers[place, row]
        low = column["head"][:1].lower() + column["head"][1:]
        values = {"row": self.table["row"], "head": column["head"], "low": low, "r": name}
        if number is not None and chance.random() < 0.25:
            values["v"] = _written(column, number)
            question = worded(chance, self.file["questions"]["row_of_cell"], values)
            return told.quote(question, name, [self.spans[place, row]], self.rows[row])
        templates = (*column["cell"], *self.file["questions"]["cell"])
        if chance.random() < 0.1:
            others = [other for other in self.table["names"] if other not in self.names]
            return told.unknown(worded(chance, templates, {**values, "r": chance.choice(others)}))
        question = worded(chance, templates, values)
        if number is None:
            return told.unknown(question)
        return told.quote(question, _written(column, number), [self.spans[place, row]])

    def _extremes(self, place: int, known: dict[int, int]) -> tuple[str, list[int]]:
        """Return words for the most or the least, and the rows in that order."""
        column, ranked = self.columns[place], sorted(known, key=lambda row: known[row])
        return self.chance.choice(((column["most"], ranked[::-1]), (column["least"], ranked)))

    def _most(self, place: int, known: dict[int, int]) -> Example:
        """Ask for the row with the most, the least, or the second of more than two."""
        chance, (words, ranked) = self.chance, self._extremes(place, known)
        templates = self.file["questions"]["most_of_people" if self.table["row"] in _PERSONS else "most"]
        right = ranked[0]
        can_be_second = len(ranked) > 2 and words.startswith("the ") and words.split()[1].endswith("est")
        if can_be_second and chance.random() < 0.25:
            templates, right, words = self.file["questions"]["second"], ranked[1], words.removeprefix("the ")
        question = worded(chance, templates, {"row": self.table["row"], "words": words})
        spans = [self.spans[place, row] for row in sorted(known)]
        if chance.random() < 0.4:
            names = chance.sample(self.names, len(self.names))
            return self.told.offer(question, (self.names[right],), names, spans)
        return self.told.quote(question, self.names[right], spans)

    def _whether_most(self, place: int, known: dict[int, int]) -> Example:
        words, ranked = self._extremes(place, known)
        row = ranked[0] if self.chance.random() < 0.5 else self.chance.choice(ranked[1:])
        spans = [self.spans[place, row] for row in sorted(known)]
        return self.told.whether(f"Is {self.names[row]} {words}?", row == ranked[0], spans)

    def _more(self, place: int, known: dict[int, int]) -> Example:
        """Compare two rows; where one of them has an empty cell the text does not say."""
        chance, column = self.chance, self.columns[place]
        one, other = chance.sample(range(len(self.names)), 2)
        missing = [row for row in range(len(self.names)) if row not in known]
        if missing and chance.random() < 0.6:
            one, other = missing[0], chance.choice(list(known))
        asks_more = chance.random() < 0.5
        names, wordings = [self.names[one], self.names[other]], self.file["questions"]
        values = {"one": names[0], "other": names[1], "words": column["more"] if asks_more else column["less"]}
        values["which"] = "Who" if self.table["row"] in _PERSONS else "Which"
        if one not in known or other not in known:
            return self.told.unknown(worded(chance, wordings["whether_more"], values), ("yes", "no"))
        spans = [self.spans[place, one], self.spans[place, other]]
        holds = (known[one] > known[other]) == asks_more
        if chance.random() >= 0.3:
            return self.told.whether(worded(chance, wordings["whether_more"], values), holds, spans)
        choices = names if chance.random() < 0.6 else ()
        return self.told.offer(worded(chance, wordings["which_more"], values), (names[not holds],), choices, spans)


def _written(column: Any, number: int) -> str:
    written: str = column["unit"].format(n=number, tenth=number / 10, hours=number // 60, minutes=number % 60)
    return written
