"""One text made by program, and what is known of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from random import Random

from mqan_data.formats.dataset_file import Field
from mqan_data.formats.rows import FieldRow, Mention
from mqan_data.synthetic.kind import FieldSpec, Kind, Layout, RowsSpec, shared
from mqan_data.synthetic.template import write
from mqan_data.synthetic.values import Values

_MOST_LISTED = 7  # values of an answer that is a list
_TRIES = 40
_ABSENT_ROWS = 2  # that can be asked for in vain
_TYPE_ABSENT = 0.15  # share of the types without a value that can be asked for in vain

Mentions = tuple[Mention, ...]
Asked = Iterator[tuple[str, Field, Mentions]]
"""Fields that can be asked for, by key, with what fills them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value that tell its row from all others: what the row, such rows, the column and the value are called."""

    row: Mention
    row_kind: str
    column: str
    value: str


@dataclass(slots=True)
class Facts:
    """Values of one text, drawn when they are first asked for, no two alike of one type."""

    kind: Kind
    values: Values
    labels: dict[str, str]
    drawn: dict[tuple[str, int | None], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    taken: set[tuple[str, str]] = field(default_factory=set)

    @property
    def random(self) -> Random:
        return self.values.random

    def value(self, key: str, row: int | None) -> str:
        if (key, row) not in self.drawn:
            spec, rows = self.kind[key], key.rpartition(".")[0]
            origin = f"{rows}.{spec.of}" if rows else spec.of
            self.drawn[key, row] = self.fresh(spec, self.value(origin, row) if spec.of else "")
        return self.drawn[key, row]

    def fresh(self, spec: FieldSpec, of: str = "") -> str:
        """Draw a value that no other field of the type has."""
        for _ in range(_TRIES):
            value = spec.draw(self.values, of)
            if (spec.type, value.casefold()) not in self.taken:
                break
        self.taken.add((spec.type, value.casefold()))
        return value

    def phrase(self, labels: str) -> str:
        phrases = self.kind.labels[labels].phrases
        if labels not in self.labels:
            self.labels[labels] = self.random.choice(list(phrases))
        return self.random.choice(phrases[self.labels[labels]])

    def number_of_rows(self, name: str) -> int:
        if name not in self.counts:
            rows = self.kind.rows[name]
            self.counts[name] = self.random.randint(rows.least, rows.most)
        return self.counts[name]


@dataclass(frozen=True, slots=True)
class Document:
    row: FieldRow
    labels: Mapping[str, str]  # the right ones, by name of the set
    cells: tuple[Cell, ...]
    facts: Facts  # what its values were drawn from
    specs: Mapping[str, FieldSpec]  # of fields that are filled, by type

    def stranger(self, name: str) -> str | None:
        """Return a value of a type that stands nowhere in the text; None where the text has none of the type."""
        spec = self.specs.get(name)
        return None if spec is None else self.facts.fresh(spec)


def make_document(kind: Kind, layout: Layout, seed: int) -> Document:
    facts = Facts(kind, Values(seed, symbols=layout.symbols), dict(layout.labels))
    text, places = write(layout.text, facts)
    found: dict[str, Mentions] = {}
    cells: dict[tuple[str, int], Mention] = {}
    for key, row, start, value in places:
        mention = Mention(value, start)
        found[key] = (*found.get(key, ()), mention)
        if row is not None:
            cells.setdefault((key, row), mention)
    uniques: list[Cell] = []
    asked = [*_fields(kind, found)]
    for name, rows in kind.rows.items():
        if f"{name}.{rows.name}" in found:
            asked += _rows(facts, name, rows, found, cells, uniques)
    asked += _types(facts, found)
    filled = {key: mentions for key, _, mentions in asked if mentions}
    row_of_text = FieldRow(text.rstrip(), filled, {key: field for key, field, _ in asked})
    specs = {spec.type: spec for spec in map(kind.__getitem__, found) if not spec.of}
    return Document(row_of_text, facts.labels, tuple(uniques), facts, specs)


def _fields(kind: Kind, found: Mapping[str, Mentions]) -> Asked:
    origins = {kind.fields[key].of for key in found if "." not in key}
    for key, spec in kind.fields.items():
        in_vain = not spec.only_filled and key not in origins and not any(other in found for other in spec.unless)
        if key in found or in_vain:
            yield key, spec, found.get(key, ())


def _rows(
    facts: Facts,
    name: str,
    rows: RowsSpec,
    found: Mapping[str, Mentions],
    cells: Mapping[tuple[str, int], Mention],
    uniques: list[Cell],
) -> Asked:
    """Return columns, and the cells of rows that are there and of some that are not; note what tells rows apart."""
    number, naming = facts.counts[name], rows.columns[rows.name]
    names = [facts.value(f"{name}.{rows.name}", row) for row in range(number)]
    names += [facts.fresh(naming) for _ in range(_ABSENT_ROWS)]
    for column, spec in rows.columns.items():
        key = f"{name}.{column}"
        mentions = found.get(key, ())
        if number > 1 and 1 < len({mention.text for mention in mentions}) <= _MOST_LISTED:
            yield key, replace(spec, questions=(), description=""), mentions
        if not mentions or column == rows.name:
            continue
        for row, called in enumerate(names):
            cell = cells.get((key, row))
            if row >= number:
                yield f"{key}.{row}", _cell_field(spec, called), ()
            elif cell is not None:
                yield f"{key}.{row}", _cell_field(spec, called), (cell,)
                if sum(facts.drawn.get((key, other)) == cell.text for other in range(number)) == 1:
                    uniques.append(Cell(cells[f"{name}.{rows.name}", row], naming.name, spec.name, cell.text))


def _cell_field(spec: FieldSpec, row: str) -> Field:
    more = ("What is the {c} of {row}?", "What {c} does {row} have?", "{c} of {row}", "{row}: {c}?")
    return Field(
        f"{spec.name} of {row}",
        f"{spec.plural or spec.name} of {row}",
        tuple(f"{synonym} of {row}" for synonym in spec.synonyms),
        type=spec.type,
        questions=tuple(
            question.replace("{c}", spec.name).replace("{row}", row)
            for question in (*spec.questions, *more, "Look up the {c} for {row}.")
        ),
    )


def _types(facts: Facts, found: Mapping[str, Mentions]) -> Asked:
    types: dict[str, list[Mention]] = {}
    for key, mentions in found.items():
        types.setdefault(facts.kind[key].type, []).extend(mentions)
    for name, spec in shared().types.items():
        some = sorted(types.get(name, ()), key=lambda mention: mention.start or 0)
        one_each = tuple(next(group) for _, group in groupby(some, key=lambda mention: mention.text))
        if not types.keys().isdisjoint(spec.within):
            continue
        may_be_there = some or spec.only_filled or not types.keys().isdisjoint(spec.hinted_by)
        if some and len({mention.text for mention in one_each}) <= _MOST_LISTED:
            yield f"any {name}", replace(spec, type=name), one_each
        elif not may_be_there and facts.random.random() < _TYPE_ABSENT:
            yield f"any {name}", replace(spec, type=name), ()
