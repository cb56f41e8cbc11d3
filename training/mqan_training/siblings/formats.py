"""The official files of the siblings' tasks -> rows: a sentence or a pair, and its class or score.

The files are those of the folder of datasets, in the layouts that their publishers or GLUE gave them.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mqan_training.data.readers.files import (
    find_file,
    intact,
    malformed,
    read_json_lines,
    read_lines,
    read_table,
    text_field,
)
from mqan_training.data.readers.registry import task_named


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled example.

    Attributes:
        texts: a sentence; or a pair; or, for ranking, a question, the candidate that answers it, and the others.
        gold: number of the class; or a score from 0 to 1; 0 for ranking.
    """

    texts: tuple[str, ...]
    gold: float = 0.0


def rows_of_examples(task: str, folder: Path, split: str, labels: Sequence[str], id_prefix: str = "") -> Iterator[Row]:
    """Yield the contexts and answers of a question-answering task that asks for one of some classes.

    Args:
        task: its name in the registry.
        folder: folder of the datasets.
        split: one of the task's splits.
        labels: the answers, in the order of their numbers.
        id_prefix: take only examples whose id begins so.
    """
    found = task_named(task)
    for example in found.read(folder / found.folder, split):
        if example.id.startswith(id_prefix):
            yield Row((example.context,), labels.index(example.answers[0]))


def sst_fine(folder: Path, part: str) -> Iterator[Row]:
    """Yield the sentences of SST with five classes: csv, ``label,sentence``, labels 0 to 4."""
    path = find_file("sst-1", folder / "sst", f"{part}_fine_sent.csv")
    for number, cells in _csv_rows(path, 2, has_header=True):
        yield Row((cells[1],), _number(path, number, cells[0], range(5)))


def cola(folder: Path, *names: str) -> Iterator[Row]:
    """Yield sentences of CoLA: source, label, the author's mark and the sentence, without header."""
    for name in names:
        path = find_file("cola", folder / "cola", name)
        for number, line in read_lines(path):
            cells = line.split("\t")
            if len(cells) != 4:
                raise malformed(path, number, f"expected source, label, mark and sentence, found {len(cells)} columns.")
            yield Row((cells[3],), _number(path, number, cells[1], range(2)))


def mrpc(folder: Path, name: str) -> Iterator[Row]:
    """Yield pairs of MRPC: quality, two ids, two sentences."""
    path = find_file("mrpc", folder / "mrpc", name, f"{name}.gz")
    for number, (label, *pair) in read_table(path, "Quality", "#1 String", "#2 String"):
        yield Row(tuple(pair), _number(path, number, label, range(2)))


def stsb(folder: Path, part: str) -> Iterator[Row]:
    """Yield pairs of STS-B: csv without header, two sentences and a score from 0 to 5, here divided by 5."""
    path = find_file("sts-b", folder / "stsb", f"stsb-en-{part}.csv")
    for number, cells in _csv_rows(path, 3, has_header=False):
        try:
            score = float(cells[2])
        except ValueError as error:
            raise malformed(path, number, f"expected a score from 0 to 5, found {cells[2]!r}.") from error
        if not 0 <= score <= 5:
            raise malformed(path, number, f"expected a score from 0 to 5, found {cells[2]!r}.")
        yield Row((cells[0], cells[1]), score / 5)


def pairs(
    task: str,
    folder: Path,
    names: Sequence[str],
    labels: Mapping[str, int],
    columns: Sequence[str] = ("sentence1", "sentence2", "label"),
) -> Iterator[Row]:
    """Yield pairs of tab-separated files with a header and without quoting.

    Args:
        task: what errors call it.
        folder: that the files are in.
        names: of the files, each as it is or with ``.gz`` behind it.
        labels: what the files call the classes, and their numbers.
        columns: of first text, second text and label.
    """
    for name in names:
        path = find_file(task, folder, name, f"{name}.gz")
        for number, (first, second, label) in read_table(path, *columns):
            if label not in labels:
                raise malformed(path, number, f"unknown label {label!r}; known are {', '.join(labels)}.")
            yield Row((first, second), labels[label])


def multinli(folder: Path, part: str, labels: Mapping[str, int]) -> Iterator[Row]:
    """Yield pairs of MultiNLI's json lines; those without a gold label (``-``) are passed over."""
    path = find_file("mnli", folder / "multinli", f"multinli_1.0_{part}.jsonl")
    for number, row in read_json_lines(path):
        first, second, label = (
            text_field(path, number, row, field) for field in ("sentence1", "sentence2", "gold_label")
        )
        if label in labels:
            yield Row((first, second), labels[label])
        elif label != "-":
            raise malformed(path, number, f"unknown label {label!r}; known are {', '.join(labels)}.")


def _csv_rows(path: Path, num_columns: int, *, has_header: bool) -> Iterator[tuple[int, list[str]]]:
    with intact(path), path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if has_header:
            next(rows, None)
        for cells in rows:
            if len(cells) != num_columns:
                raise malformed(path, rows.line_num, f"expected {num_columns} columns, found {len(cells)}.")
            yield rows.line_num, cells


def _number(path: Path, line: int, text: str, known: range) -> int:
    if not (text.isdecimal() and int(text) in known):
        raise malformed(path, line, f"expected a label from {known[0]} to {known[-1]}, found {text!r}.")
    return int(text)
