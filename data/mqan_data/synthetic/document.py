"""One text made by program, and what is known of it."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

from mqan_data.formats.dataset_file import Field
from mqan_data.formats.rows import FieldRow, Mention
from mqan_data.synthetic.kind import FieldSpec, Kind, Layout, RowsSpec, shared
from mqan_data.synthetic.template import Nodes, Written
from mqan_data.synthetic.values import Values

_MOST_LISTED = 7  # values of an answer that is a list
_TRIES = 40
_ABSENT_ROWS = 2  # that can be asked for in vain
_TYPE_ABSENT = 0.15  # share of the types without a value that can be asked for in vain


@dataclass(frozen=True, slots=True)
class Cell:
    """A value within a row.

    Attributes:
        row: what the row is called, as it stands in the text.
        row_kind: what rows are called in general.
        column: what the column is called.
        value: the value.
    """

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
    def random(self) -> random.Random:
        """Return where chance comes from."""
        return self.values.random

    def spec(self, key: str) -> FieldSpec:
        rows, _, column = key.partition(".")
        return self.kind.rows[rows].columns[column] if column else self.kind.fields[key]

    def value(self, key: str, row: int | None) -> str:
        place = (key, row if "." in key else None)
        if place not in self.drawn:
            spec = self.spec(key)
            rows = key.partition(".")[0]
            origin = f"{rows}.{spec.of}" if "." in key else spec.of
            self.drawn[place] = self.fresh(spec, self.value(origin, row) if spec.of else "")
        return self.drawn[place]

    def fresh(self, spec: FieldSpec, of: str = "") -> str:
        """Draw a value that no other field of the type has."""
        for _ in range(_TRIES):
            value = spec.draw(self.values, of)
            if (spec.type, value.casefold()) not in self.taken:
                break
        self.taken.add((spec.type, value.casefold()))
        return value

    def phrase(self, labels: str) -> Nodes:
        phrases = self.kind.phrases[labels]
        if labels not in self.labels:
            self.labels[labels] = self.values.random.choice(list(phrases))
        return self.values.random.choice(phrases[self.labels[labels]])

    def number_of_rows(self, name: str) -> int:
        if name not in self.counts:
            rows = self.kind.rows[name]
            self.counts[name] = self.values.random.randint(rows.least, rows.most)
        return self.counts[name]


@dataclass(frozen=True, slots=True)
class Document:
    """A text with what it says.

    Attributes:
        row: text, fields that it fills, and fields that can be asked for.
        labels: the right label of sets, by name of the set.
        cells: values that tell one row from all others.
        facts: what its values were drawn from.
        specs: by type, of a field that is filled.
    """

    row: FieldRow
    labels: Mapping[str, str]
    cells: tuple[Cell, ...]
    facts: Facts
    specs: Mapping[str, FieldSpec]

    def stranger(self, name: str) -> str | None:
        """Return a value of a type that stands nowhere in the text; None where the text has none of the type."""
        spec = self.specs.get(name)
        return None if spec is None else self.facts.fresh(spec)


def make_document(kind: Kind, layout: Layout, seed: int) -> Document:
    """Write a text by a layout; the seed decides everything in it."""
    values = Values(seed, symbols=layout.spec.symbols)
    facts = Facts(kind, values, dict(layout.spec.labels))
    written = Written(facts)
    written.write(layout.nodes)
    found: dict[str, list[Mention]] = {}
    cells: dict[tuple[str, int | None], list[Mention]] = {}
    types: dict[str, list[Mention]] = {}
    for key, row, start, value in written.places:
        mention = Mention(value, start)
        if row is not None:
            cells.setdefault((key, row), []).append(mention)
        found.setdefault(key, []).append(mention)
        types.setdefault(facts.spec(key).type, []).append(mention)
    scheme: dict[str, Field] = {}
    mentions: dict[str, list[Mention]] = {}
    _add_fields(facts, found, scheme, mentions)
    uniques: list[Cell] = []
    for name, rows in kind.rows.items():
        if f"{name}.{rows.name}" in found:
            uniques += _add_rows(facts, name, rows, found, cells, scheme, mentions)
    _add_types(facts, types, scheme, mentions)
    text = written.text.rstrip()
    specs = {facts.spec(key).type: facts.spec(key) for key in found if not facts.spec(key).of}
    row_of_text = FieldRow(text, {key: tuple(some) for key, some in mentions.items()}, scheme)
    return Document(row_of_text, facts.labels, tuple(uniques), facts, specs)


def _add_fields(
    facts: Facts,
    found: Mapping[str, list[Mention]],
    scheme: dict[str, Field],
    mentions: dict[str, list[Mention]],
) -> None:
    """Add the fields that are filled, and those that can be asked for in vain."""
    origins = {facts.kind.fields[key].of for key in found if "." not in key}
    for key, spec in facts.kind.fields.items():
        if key in found:
            mentions[key] = found[key]
            scheme[key] = spec.asked(key)
        elif not spec.only_filled and key not in origins and not any(other in found for other in spec.unless):
            scheme[key] = spec.asked(key)


def _add_rows(
    facts: Facts,
    name: str,
    rows: RowsSpec,
    found: Mapping[str, list[Mention]],
    cells: Mapping[tuple[str, int | None], list[Mention]],
    scheme: dict[str, Field],
    mentions: dict[str, list[Mention]],
) -> list[Cell]:
    """Add columns, and the cells of rows that are there and of some that are not; return what tells rows apart."""
    number = facts.counts[name]
    names = [facts.value(f"{name}.{rows.name}", row) for row in range(number)]
    absent = [facts.fresh(rows.columns[rows.name]) for _ in range(_ABSENT_ROWS)]
    uniques: list[Cell] = []
    for column, spec in rows.columns.items():
        key = f"{name}.{column}"
        if key not in found:
            continue
        distinct = {mention.text for mention in found[key]}
        if number > 1 and 1 < len(distinct) <= _MOST_LISTED:
            listed = spec.asked(column)
            scheme[key] = Field(listed.name, listed.plural, listed.synonyms, "", spec.type)
            mentions[key] = found[key]
        if column == rows.name:
            continue
        for row, called in enumerate([*names, *absent]):
            cell = (key, row)
            if row < number and cell not in cells:
                continue
            scheme[f"{key}.{row}"] = _cell_field(spec, column, called)
            if row < number:
                mentions[f"{key}.{row}"] = cells[cell]
                value = cells[cell][0].text
                if sum(facts.drawn.get((key, other)) == value for other in range(number)) == 1:
                    row_name = cells[(f"{name}.{rows.name}", row)][0]
                    uniques.append(
                        Cell(row_name, rows.columns[rows.name].asked(rows.name).name, spec.asked(column).name, value)
                    )
    return uniques


def _cell_field(spec: FieldSpec, column: str, row: str) -> Field:
    asked = spec.asked(column)
    questions = tuple(question.replace("{row}", row) for question in spec.questions)
    more = (
        f"What is the {asked.name} of {row}?",
        f"What {asked.name} does {row} have?",
        f"{asked.name} of {row}",
        f"{row}: {asked.name}?",
        f"Look up the {asked.name} for {row}.",
    )
    synonyms = tuple(f"{synonym} of {row}" for synonym in asked.synonyms)
    plural = f"{asked.plural or asked.name} of {row}"
    return Field(f"{asked.name} of {row}", plural, synonyms, "", spec.type, (*questions, *more))


def _add_types(
    facts: Facts, types: Mapping[str, list[Mention]], scheme: dict[str, Field], mentions: dict[str, list[Mention]]
) -> None:
    """Add "the date", "the phone number": whichever there is, or all of them."""
    present = set(types)
    for name, spec in shared().types.items():
        listed = Field(spec.name, spec.plural, spec.synonyms, "", name, spec.questions)
        some = sorted(types.get(name, ()), key=lambda mention: mention.start or 0)
        one_each = [next(group) for _, group in groupby(some, key=lambda mention: mention.text)]
        if present & set(spec.within):
            continue
        if some and len({mention.text for mention in one_each}) <= _MOST_LISTED:
            mentions[f"any {name}"] = one_each
            scheme[f"any {name}"] = listed
        elif some or spec.only_filled or present & set(spec.hinted_by):
            continue
        elif facts.random.random() < _TYPE_ABSENT:
            scheme[f"any {name}"] = listed
