"""WikiSQL to train on where tables are not whole: columns shuffled, more beside them, conditions as asked.

Copies of WikiSQL that were put together again from its queries know of a table only the columns that some query uses,
the selected ones first, and have the conditions of a query sorted by the names of their columns. A network learns all
of it: that every column is asked for, the first one most of all, and to sort. Official tables are whole, 5 columns and
more, and four of five official queries have their conditions in the order of the question. Here the columns of a table
stand in a random order, between columns of other tables that make them 5 to 8, and the conditions of a query in the
order in which the question names their values. All of it depends on the files alone. Files as in ``wikisql``.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mqan_core.example import Example
from mqan_training.data.readers import wikisql
from mqan_training.data.readers.files import check_split
from mqan_training.data.readers.task import Task
from mqan_training.data.sql import fold

_NAME = "wikisql_shuffled"
_LEAST_COLUMNS, _MOST_COLUMNS = 5, 8  # what a table is filled up to


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the questions of the training split; ``reference`` holds ``sql`` and ``header``."""
    check_split(_NAME, split, ("train",))
    questions = list(wikisql.read_questions(folder, split, _NAME))
    headers = {id(table): table.header for _, _, table, _ in questions}
    columns = [column for header in headers.values() for column in header]
    for number, asked, table, sql in questions:
        rng = random.Random(f"{split}/{number}")  # noqa: S311
        header = [*table.header, *_others(table.header, columns, rng)]
        order = rng.sample(range(len(header)), len(header))
        conditions = [[order.index(column), *rest] for column, *rest in in_order_of(asked, sql["conds"])]
        mixed = {**sql, "sel": order.index(sql["sel"]), "conds": conditions}
        yield wikisql.as_example(_NAME, f"{split}/{number}", asked, [header[i] for i in order], mixed, {})


def in_order_of(asked: str, conditions: Sequence[Any]) -> list[Any]:
    """Return conditions (column, operator, value) as a question names their values, first those that it does not."""

    def first_place(condition: Any) -> int:
        value = re.escape(fold(str(condition[2])))
        whole = re.search(rf"(?<!\w){value}(?!\w)", text)
        return whole.start() if whole else text.find(fold(str(condition[2])))

    text = fold(asked)
    return sorted(conditions, key=first_place)


def _others(header: Sequence[str], columns: Sequence[str], rng: random.Random) -> list[str]:
    """Return columns that make a header as wide as it shall be, none called as one that is there."""
    known = {fold(column) for column in header}
    missing = rng.randint(_LEAST_COLUMNS, _MOST_COLUMNS) - len(header)
    drawn: dict[str, str] = {}
    for column in rng.choices(columns, k=4 * _MOST_COLUMNS):  # a few more, for those that are there
        if fold(column) not in known:
            drawn.setdefault(fold(column), column)
    return list(drawn.values())[: max(missing, 0)]


TASK = Task(_NAME, "wikisql", ("train",), "lfem", read, sources=wikisql.TASK.sources)
