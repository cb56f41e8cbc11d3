"""Texts that nothing may be trained on: of sets that are held back, of validation and of test.

Texts are compared without case, punctuation and white space ("don't" is "do n't"), by 64-bit hashes of what is left.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path

from mqan_core.example import Example
from mqan_data.files import read_json_lines
from mqan_data.formats.dataset_file import Dataset, TaskPart, dataset_names, load_dataset
from mqan_data.formats.reading import missing_files, needed_files, read_examples, read_rows
from mqan_data.formats.records import read_json_value
from mqan_data.formats.rows import Row

_WORD = re.compile(r"\w+")
_NLI_FRAME = re.compile(r"^(?:Premise|Hypothesis): | -- entailment, neutral, or contradiction\?$")
_LONG = 20  # words of a text that is held out wherever it stands, not just together with the question on it
_LONG_IF_HELD_BACK = 4
_SPLITS = ("train", "validation", "test")


class HeldOut:
    def __init__(self) -> None:
        self._rows: set[int] = set()
        self._texts: set[int] = set()

    def add(self, texts: Sequence[str], *, shortest: int | None = _LONG) -> None:
        """Hold out a row: its texts together, in any order, and each of them with at least so many words, if any."""
        read = [_letters(text) for text in texts]
        self._rows.add(_hash_of_row(letters for letters, _ in read))
        if shortest is not None:
            self._texts.update(_hash(letters) for letters, num_words in read if num_words >= shortest)

    def holds(self, texts: Sequence[str]) -> bool:
        read = [letters for letters, _ in map(_letters, texts)]
        return _hash_of_row(read) in self._rows or any(_hash(letters) in self._texts for letters in read)

    def __len__(self) -> int:
        return len(self._rows)


@lru_cache(maxsize=64)  # neighbours often share a text
def _letters(text: str) -> tuple[str, int]:
    words = _WORD.findall(text.casefold())
    return "".join(words), len(words)


@lru_cache(maxsize=64)
def _hash(letters: str) -> int:
    return int.from_bytes(blake2b(letters.encode(), digest_size=8).digest(), "little")


def _hash_of_row(texts: Iterable[str]) -> int:
    return _hash("\n".join(sorted(letters for letters in texts if letters)))


@cache
def held_out_texts(data: Path) -> HeldOut:
    """Return what must not be trained on: held-back sets, validation and test parts, and ``cases`` beside the data."""
    held_out = HeldOut()
    for name in dataset_names():
        dataset = load_dataset(name)
        if not has_files(data, dataset):
            continue
        for split in _SPLITS if dataset.held_back else _SPLITS[1:]:
            for part_name, part in dataset.parts.items():
                if isinstance(part, TaskPart) and split == "test":
                    continue  # test sets of tasks are kept apart
                for _, texts in rows_with_texts(data, dataset, part_name, split):
                    held_out.add(texts, shortest=_LONG_IF_HELD_BACK if dataset.held_back else _LONG)
        read_json_value.cache_clear()
    cases = data.parent / "cases" / "questions.jsonl"
    if cases.is_file():
        for _, row in read_json_lines(cases):
            held_out.add((row["context"], row["question"]), shortest=_LONG_IF_HELD_BACK)
    return held_out


def has_files(data: Path, dataset: Dataset) -> bool:
    """Return whether any of the files that its parts are read from is there."""
    folder = dataset.folder_in(data)
    return any(len(missing_files(folder, part)) < len(needed_files(part)) for part in dataset.parts.values())


def rows_with_texts(
    data: Path, dataset: Dataset, name: str, split: str
) -> Iterator[tuple[Row | Example, tuple[str, ...]]]:
    """Yield the rows of a part, or the examples of a mixed task, with the texts of each."""
    part = dataset.parts[name]
    if isinstance(part, TaskPart):
        examples = read_examples(dataset.folder_in(data), part, split)
        num_texts = 2 if "{" in part.question else 1  # a question that is the same for all says nothing of a row
        return ((e, tuple(_NLI_FRAME.sub("", t) for t in (e.context, e.question)[:num_texts])) for e in examples)
    return ((row, row.texts()) for row in read_rows(data, dataset, name, split))
