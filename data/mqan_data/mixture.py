"""All datasets as sources of questions, how often each is asked, and fixed questions to measure by."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np

from mqan_core.example import Example
from mqan_data.derived import AdversarialSource, ChangedSource, FactsSource, SurroundedSource
from mqan_data.formats.dataset_file import TASK, Dataset, EverydayPart, Part, TaskPart, dataset_names, load_dataset
from mqan_data.formats.records import read_json_value
from mqan_data.formats.rows import ChoiceRow, EverydayRow, FactRow, FieldRow, LabelRow, QuestionRow, Row
from mqan_data.held_out import held_out_texts, rows_with_texts
from mqan_data.metrics import UNANSWERABLE
from mqan_data.questions import choices, everyday, facts, fields, labels, plain
from mqan_data.source import Source
from mqan_data.synthetic.source import made_source

TRAIN: Final = "train"
_MADE = "made_"  # what the names of sources of synthetic texts begin with
_DERIVED: Final = (AdversarialSource, ChangedSource, FactsSource, SurroundedSource)
_DERIVED_ENDINGS: Final = tuple(derived.suffix for derived in _DERIVED)


def _as_often(part: Part, rows: Sequence[Row | Example]) -> Sequence[Row | Example]:
    """Return the rows with those of kinds that are drawn more often so many times."""
    if not isinstance(part, EverydayPart):
        return rows
    return [row for row in rows if isinstance(row, EverydayRow) for _ in range(part.drawn.get(row.kind, 1))]


class DatasetSource:
    """Questions about the rows of one dataset, all of its parts together; files are read at the first use."""

    def __init__(self, data: Path, dataset: Dataset, split: str) -> None:
        if dataset.held_back and split == TRAIN:
            raise ValueError(f"{dataset.name} is held back: it is for measuring only and cannot be trained on.")
        self._data = data
        self.dataset = dataset
        self.split = split

    @property
    def name(self) -> str:
        return self.dataset.name

    @cached_property
    def _rows(self) -> dict[str, Sequence[Row | Example]]:
        """The rows of each part that are there and not held out."""
        held_out = held_out_texts(self._data) if self.split == TRAIN else None
        rows: dict[str, Sequence[Row | Example]] = {}
        for name in self.dataset.parts:
            read = rows_with_texts(self._data, self.dataset, name, self.split)
            kept = [self._as_asked(row) for row, texts in read if held_out is None or not held_out.holds(texts)]
            rows[name] = kept if held_out is None else _as_often(self.dataset.parts[name], kept)
        read_json_value.cache_clear()
        return {part: of_part for part, of_part in rows.items() if of_part}

    def _as_asked(self, row: Row | Example) -> Row | Example:
        """Return an example of a task as a mixture has it: "unanswerable" is no answer, training needs no reference."""
        if not isinstance(row, Example):
            return row
        answers = () if row.answers[:1] == (UNANSWERABLE,) else row.answers
        return replace(row, answers=answers, reference=None if self.split == TRAIN else row.reference)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self._rows.values())))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def place_of(self, index: int) -> tuple[str, int]:
        """Return the part that a row is in, and its number there."""
        part = bisect_right(self._ends, index)
        before = self._ends[part - 1] if part else 0
        return list(self._rows)[part], index - before

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        name, number = self.place_of(index)
        row = self._rows[name][number]
        if isinstance(row, Example):
            return row
        return replace(self._ask(name, row, rng), task=self.name, id=f"{self.split}/{name}/{number}")

    def fixed(self, index: int, rng: np.random.Generator) -> Example:
        """Return the question about a row by which it is measured: its first wording, with all choices."""
        name, number = self.place_of(index)
        row = self._rows[name][number]
        if isinstance(row, Example):
            return row
        asked: Example = _ASKED_BY[type(row)].canonical(row, self.dataset.parts[name], rng)
        return replace(asked, task=self.name, id=f"{self.split}/{name}/{number}")

    def _ask(self, name: str, row: Row, rng: np.random.Generator) -> Example:
        part, rows, module = self.dataset.parts[name], self._rows[name], _ASKED_BY[type(row)]
        refusals = getattr(part, "refusals", 0.0)
        asked: Example | None = None
        if refusals > 0 and rng.random() < refusals:
            asked = module.draw_of_another(row, rows[int(rng.integers(len(rows)))], part, rng)
        drawn: Example = module.draw(row, part, rng) if asked is None else asked
        return drawn


_ASKED_BY: Final[Mapping[type[Row], Any]] = {
    LabelRow: labels,
    FieldRow: fields,
    ChoiceRow: choices,
    QuestionRow: plain,
    FactRow: facts,
    EverydayRow: everyday,
}
"""The module of each shape of row: ``draw(row, part, rng)``, ``canonical(row, part, rng)``, and mostly
``draw_of_another(row, other, part, rng)``, which asks of the text of another row."""


def load_sources(data: Path, names: Sequence[str] | None = None, split: str = TRAIN) -> list[Source]:
    """Return sources by name, or all datasets with rows for the split that are not held back; none is read yet.

    ``made_NAME`` is a kind of text made by program, ``NAME_adversarial`` a dataset with sentences that mislead,
    ``NAME_changed`` one with questions that are changed so that their texts do not answer them, ``NAME_facts`` one that
    asks whether statements are true, ``NAME_surrounded`` one whose texts stand between others.
    """
    if names is None:
        datasets = map(load_dataset, dataset_names())
        names = [dataset.name for dataset in datasets if not dataset.held_back and has_split(dataset, split)]
    return [_source_named(name, data, split) for name in names]


def _source_named(name: str, data: Path, split: str) -> Source:
    if name.startswith(_MADE):
        return made_source(name.removeprefix(_MADE), TRAIN if split == TRAIN else "validation")
    for derived in _DERIVED:
        if name.endswith(derived.suffix):
            return derived(_source_named(name.removesuffix(derived.suffix), data, split))
    return DatasetSource(data, load_dataset(name), split)


def dataset_of(name: str) -> str:
    """Return the dataset whose rows a source of a name asks about; of texts made by program the name itself."""
    while name.endswith(_DERIVED_ENDINGS):
        name = name.rpartition("_")[0]
    return name


def is_made(name: str) -> bool:
    """Return whether a source of a name is of texts made by program."""
    return name.startswith(_MADE)


def has_split(dataset: Dataset, split: str) -> bool:
    """Return whether a dataset file names rows for a split."""
    parts = dataset.parts.values()
    held_out = split == "validation" and any(part.hold_out for part in parts)
    return held_out or any(part.files.get(split) for part in parts)


def validation_examples(data: Path, name: str, limit: int, seed: int) -> list[Example]:
    """Return fixed questions about rows of the validation part, or of the test part where there is no other.

    They are asked in their first wording, with all labels as choices.

    ``name`` is that of a source, or ``dataset.part``. The seed decides which rows, in the order of the files, and which
    field of a row with several.
    """
    if name.startswith(_MADE) or name.endswith(_DERIVED_ENDINGS):
        made = _source_named(name, data, "validation")
        return [made.draw(i % len(made), np.random.default_rng([seed, i])) for i in range(limit)]
    dataset_name, _, part = name.partition(".")
    dataset = load_dataset(dataset_name)
    if part and part not in dataset.parts:
        raise ValueError(f"{dataset_name} has no part {part!r}; it has {', '.join(dataset.parts)}.")
    if part or isinstance(dataset.parts.get(TASK), TaskPart):
        part = part or TASK
        dataset = replace(dataset, parts={part: dataset.parts[part]})
    split = next((split for split in ("validation", "test") if has_split(dataset, split)), None)
    if split is None:
        raise ValueError(f"{name} has neither validation nor test rows.")
    source = DatasetSource(data, dataset, split)
    order = np.random.default_rng(seed).permutation(len(source))[:limit]
    return [source.fixed(int(index), np.random.default_rng([seed, int(index)])) for index in sorted(order)]


class ExampleSets(Mapping[str, Sequence[Example]]):
    """Examples to score a run on, by name of their source; each set is read when it is first looked at."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Sequence[Example]]) -> None:
        self._names, self._read = names, cache(read)

    def __getitem__(self, name: str) -> Sequence[Example]:
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
