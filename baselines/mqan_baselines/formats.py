"""The files of datasets -> rows of the baselines' tasks: a sentence or a pair, and its class or score."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mqan_training.data.readers.registry import task_named
from mqan_training.data.shapes.dataset_file import LabelsPart, load_dataset
from mqan_training.data.shapes.records import read_records
from mqan_training.errors import DatasetError

_MOST_SIMILAR = 5  # of STS-B


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


def rows_of_part(
    name: str,
    folder: Path,
    *,
    splits: Sequence[str],
    columns: Sequence[str],
    keys: Sequence[str],
    files: Mapping[str, tuple[str, ...]] | None = None,
) -> Iterator[Row]:
    """Yield the rows of the part of a dataset file that asks for labels.

    Args:
        name: ``dataset.part``.
        folder: folder of the datasets.
        splits: of the part, one behind the other.
        columns: of the texts.
        keys: of the labels, in the order of the classes; empty where the label is a score from 0 to 5.
        files: where others than the part's are to be read.

    Raises:
        MissingFileError, DatasetError: a file is not there, or malformed.
    """
    dataset_name, _, part_name = name.partition(".")
    dataset = load_dataset(dataset_name)
    part = dataset.parts[part_name]
    if not isinstance(part, LabelsPart):
        raise ValueError(f"{name}: expected a part with labels")
    part = replace(part, files=files or part.files)
    for split in splits:
        for record in read_records(folder / dataset.folder, part, split):
            try:
                label, texts = part.label.format(**record), tuple(record[column] for column in columns)
            except KeyError as error:
                raise DatasetError(f"{record['file']}: a row has no column {error}.") from error
            if label not in part.drop:
                yield Row(texts, _gold(record["file"], label, keys))


def _gold(where: str, label: str, keys: Sequence[str]) -> float:
    if keys:
        if label not in keys:
            raise DatasetError(f"{where}: unknown label {label!r}; known are {', '.join(keys)}.")
        return keys.index(label)
    try:
        score = float(label)
    except ValueError:
        score = -1.0
    if not 0 <= score <= _MOST_SIMILAR:
        raise DatasetError(f"{where}: expected a score from 0 to {_MOST_SIMILAR}, found {label!r}.")
    return score / _MOST_SIMILAR
