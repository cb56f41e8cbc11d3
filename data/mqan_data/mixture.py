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
from mqan_data.derived import DERIVED, DerivedSource, Source
from mqan_data.formats.dataset_file import TASK, Dataset, EverydayPart, TaskPart, dataset_names, load_dataset
from mqan_data.formats.records import read_json_value
from mqan_data.formats.rows import ChoiceRow, EverydayRow, FactRow, FieldRow, LabelRow, QuestionRow, Row
from mqan_data.held_out import held_out_texts, rows_with_texts
from mqan_data.metrics import UNANSWERABLE
from mqan_data.questions import choices, everyday, facts, fields, labels, plain
from mqan_data.synthetic.source import MadeSource

TRAIN: Final = "train"
OWN: Final = "rows"  # the source of one's own rows, in a recipe
_AS_IT_IS: Final = 0.5  # of its draws: as it will be asked
_MADE = "made_"  # what the names of sources of synthetic texts begin with


class DatasetSource:
    """Questions about the rows of one dataset, all of its parts together; files are read at the first use."""

    def __init__(self, data: Path, dataset: Dataset, split: str) -> None:
        if dataset.held_back and split == TRAIN:
            raise ValueError(f"{dataset.name} is held back: it is for measuring only and cannot be trained on.")
        self._data, self.dataset, self.split, self.name = data, dataset, split, dataset.name

    @cached_property
    def _rows(self) -> dict[str, Sequence[Row | Example]]:
        held_out = held_out_texts(self._data) if self.split == TRAIN else None
        rows: dict[str, Sequence[Row | Example]] = {}
        for name, part in self.dataset.parts.items():
            kept: list[Row | Example] = []
            for row, texts in rows_with_texts(self._data, self.dataset, name, self.split):
                if held_out is not None and held_out.holds(texts):
                    continue
                often = 1
                if isinstance(row, Example):  # as a mixture has it
                    answers = () if row.answers[:1] == (UNANSWERABLE,) else row.answers
                    row = replace(row, answers=answers, reference=None if self.split == TRAIN else row.reference)
                elif isinstance(row, EverydayRow) and isinstance(part, EverydayPart) and self.split == TRAIN:
                    often = part.drawn.get(row.kind, 1)
                kept += [row] * often
            rows[name] = kept
        read_json_value.cache_clear()
        return {part: of_part for part, of_part in rows.items() if of_part}

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self._rows.values())))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def draw(self, index: int, rng: np.random.Generator, *, is_fixed: bool = False) -> Example:
        """Draw a question about a row; ``is_fixed``: the one by which it is measured, in its first wording."""
        place = bisect_right(self._ends, index)
        name, number = list(self._rows)[place], index - (self._ends[place - 1] if place else 0)
        part, rows = self.dataset.parts[name], self._rows[name]
        row = rows[number]
        if isinstance(row, Example):
            return row
        module, refusals = _ASKED_BY[type(row)], getattr(part, "refusals", 0.0)
        asked: Example | None = None
        if is_fixed:
            asked = module.canonical(row, part, rng)
        elif refusals > 0 and rng.random() < refusals:
            asked = module.draw_of_another(row, rows[int(rng.integers(len(rows)))], part, rng)
        asked = asked or module.draw(row, part, rng)
        return replace(asked, task=self.name, id=f"{self.split}/{name}/{number}")


class OwnRows:
    """Rows that somebody has labelled, each with one question; half the draws ask it as it will be asked."""

    name: Final = OWN

    def __init__(self, rows: Sequence[EverydayRow]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        row = self._rows[index]
        asked = everyday.canonical(row) if rng.random() < _AS_IT_IS else everyday.draw(row, None, rng)
        return replace(asked, task=OWN, id=f"{TRAIN}/{OWN}/{index}")


_ASKED_BY: Final[Mapping[type[Row], Any]] = {
    LabelRow: labels,
    FieldRow: fields,
    ChoiceRow: choices,
    QuestionRow: plain,
    FactRow: facts,
    EverydayRow: everyday,
}
"""The module of each shape of row; each has ``draw``, ``canonical`` for measuring, and mostly ``draw_of_another``."""


def load_sources(data: Path, names: Sequence[str] | None = None, split: str = TRAIN) -> list[Source]:
    """Return sources by name, or all datasets with rows for the split that are not held back; none is read yet."""
    if names is None:
        datasets = map(load_dataset, dataset_names())
        names = [dataset.name for dataset in datasets if not dataset.held_back and has_split(dataset, split)]
    return [_source_named(name, data, split) for name in names]


def _source_named(name: str, data: Path, split: str) -> Source:
    """Return ``made_NAME``, a kind of text made by program, ``NAME_WAY`` (see ``derived``), or a dataset."""
    if name.startswith(_MADE):
        return MadeSource(name.removeprefix(_MADE), TRAIN if split == TRAIN else "validation")
    base, _, way = name.rpartition("_")
    if way in DERIVED:
        return DerivedSource(_source_named(base, data, split), way)
    return DatasetSource(data, load_dataset(name), split)


def dataset_of(name: str) -> str:
    """Return the dataset whose rows a source of a name asks about; of texts made by program the name itself."""
    base, _, way = name.rpartition("_")
    return dataset_of(base) if way in DERIVED else name


def is_made(name: str) -> bool:
    return name.startswith(_MADE)


def has_split(dataset: Dataset, split: str) -> bool:
    parts = dataset.parts.values()
    held_out = split == "validation" and any(part.hold_out for part in parts)
    return held_out or any(part.files.get(split) for part in parts)


def validation_examples(data: Path, name: str, limit: int, seed: int) -> list[Example]:
    """Return fixed questions about rows of the validation part, or of the test part where there is no other.

    ``name`` is that of a source, or ``dataset.part``. The seed decides which rows, and which field of a row.
    """
    if is_made(name) or dataset_of(name) != name:
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
    return [source.draw(int(i), np.random.default_rng([seed, int(i)]), is_fixed=True) for i in sorted(order)]


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
