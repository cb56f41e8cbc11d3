"""Every dataset of the table, read from its own files.

MQAN_DATASET_ROWS=1000000 pytest tests/data/test_tasks.py    all rows of each split, not the first ones
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from mqan_core.example import Example
from mqan_data.formats.dataset_file import dataset_names, load_dataset
from mqan_data.formats.rows import ChoiceRow, FieldRow, LabelRow
from mqan_data.held_out import rows_with_texts
from mqan_data.mixture import DatasetSource, has_split, validation_examples

pytestmark = [pytest.mark.data, pytest.mark.slow]

_DRAWN = 200
_ROWS = int(os.environ.get("MQAN_DATASET_ROWS", "2000"))  # of a split


def _drawn(data: Path, name: str) -> Iterator[Example]:
    source = DatasetSource(data, load_dataset(name), "validation")
    if not len(source):
        return
    for seed in range(_DRAWN):
        index = int(np.random.default_rng(seed).integers(len(source)))
        example, again = (source.draw(index, np.random.default_rng([seed, 1])) for _ in range(2))
        assert example == again
        yield example


@pytest.mark.parametrize("name", dataset_names())
def test_each_dataset_is_read_and_asked(data_folder: Path, name: str) -> None:
    dataset = load_dataset(name)
    for split in ("train", "validation"):  # not part by part: each file would be read again for each part
        for part_name, part in dataset.parts.items():
            rows = rows_with_texts(data_folder, dataset, part_name, split)
            num_rows = 0
            for row, texts in islice(rows, _ROWS):
                num_rows += 1
                assert all(isinstance(text, str) for text in texts)
                if isinstance(row, LabelRow):
                    assert set(row.right) <= set(part.labels)  # type: ignore[union-attr]
                if isinstance(row, FieldRow):
                    assert set(row.mentions) <= set(row.scheme)
                    found = [m for mentions in row.mentions.values() for m in mentions if m.start is not None]
                    assert all(row.text.startswith(mention.text, mention.start or 0) for mention in found)
                if isinstance(row, ChoiceRow):
                    assert len(set(row.options)) == len(row.options) > 1
                    assert all(place < len(row.options) for place in row.right)
            promised = part.files.get(split) or (split == "validation" and part.hold_out)
            assert bool(num_rows) == bool(promised), (part_name, split)
    for example in _drawn(data_folder, name):
        assert example.context.strip(), example
        assert example.question.strip(), example
        labels = [choice.label for choice in example.choices]
        assert len(set(labels)) == len(labels), example
        if labels:
            assert len(labels) > 1, example
            assert set(example.answers) <= set(labels), example
        if example.answer_start is not None:
            assert example.context.startswith(example.answers[0], example.answer_start), example


@pytest.mark.parametrize("name", [name for name in dataset_names() if load_dataset(name).held_back])
def test_held_back_datasets_can_only_be_measured(data_folder: Path, name: str) -> None:
    with pytest.raises(ValueError, match="held back"):
        DatasetSource(data_folder, load_dataset(name), "train")
    examples = validation_examples(data_folder, name, 50, 0)
    assert len(examples) == 50
    assert examples == validation_examples(data_folder, name, 50, 0)


def test_training_rows_do_not_repeat_what_is_measured(data_folder: Path, tmp_path: Path) -> None:
    names = ["snli", "qnli", "absa"]
    for name in names:  # alone: what is measured of all others takes half a minute to read
        (tmp_path / load_dataset(name).folder).symlink_to(data_folder / load_dataset(name).folder)
    sources = [DatasetSource(tmp_path, load_dataset(name), "train") for name in names]
    for source in sources:
        read = sum(len(list(rows_with_texts(tmp_path, source.dataset, part, "train"))) for part in source.dataset.parts)
        assert 1000 < len(source) < read


def test_every_dataset_can_be_validated() -> None:
    without = {
        name
        for name in dataset_names()
        if load_dataset(name).parts
        and not any(has_split(load_dataset(name), split) for split in ("validation", "test"))
    }
    assert without == set()
