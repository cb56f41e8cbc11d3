"""The files of datasets -> rows of the baselines' tasks: a sentence or a pair, and its class or score.

QNLI is made out of SQuAD, as its authors did (Wang et al. 2018, "GLUE"): every question meets each sentence of its
paragraph; the sentence with the answer is the right one, and sentences that have little in common with the question are
left out. What they did not write down is ours: a sentence has to share a word of four letters or more with the
question; it has the answer if one of the gold answers stands in it as whole words; and a question of which no sentence
has the answer, or more than one, is left out, so that no candidate is wrong by accident.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mqan_core.example import Example
from mqan_data.files import DatasetError
from mqan_data.formats.dataset_file import LabelsPart, load_dataset
from mqan_data.formats.reading import read_records
from mqan_data.tasks import task_named

QNLI_LABELS: Final = ("entailment", "not entailment")
_MOST_SIMILAR: Final = 5  # of STS-B
_SENTENCE_END: Final = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[A-Z\"'(])")
_WORD: Final = re.compile(r"\w{4,}")  # shorter ones are shared by any two texts


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled example: the number of its class, or a score from 0 to 1.

    The texts are a sentence, a pair, or for ranking a question, the candidate that answers it, and the others.
    """

    texts: tuple[str, ...]
    gold: float = 0.0


def rows_of_examples(task: str, folder: Path, split: str, labels: Sequence[str], id_prefix: str = "") -> Iterator[Row]:
    """Yield the contexts and answers of a question-answering task that asks for one of some labels."""
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

    ``name`` is ``dataset.part``; ``keys`` are those of the labels, in the order of the classes, none where the label is
    a score from 0 to 5; ``files`` take the place of the part's.
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


def rankings(folder: Path, split: str) -> Iterator[Row]:
    """Yield for each question of SQuAD: the question, the sentence that answers it, and others of its paragraph."""
    squad = task_named("squad")
    for example in squad.read(folder / squad.folder, split):
        row = _ranking(example)
        if row is not None:
            yield row


def pairs_of(rankings: Iterator[Row]) -> Iterator[Row]:
    """Yield of each question two pairs, with the right sentence and with the first other one: as many of both."""
    for row in rankings:
        question, right, wrong, *_ = row.texts
        yield Row((question, right), QNLI_LABELS.index("entailment"))
        yield Row((question, wrong), QNLI_LABELS.index("not entailment"))


def _ranking(example: Example) -> Row | None:
    asked = _words(example.question)
    sentences = (" ".join(part.split()) for part in _SENTENCE_END.split(example.context))
    candidates = [part for part in dict.fromkeys(sentences) if asked & _words(part)]
    answers = [" ".join(answer.split()) for answer in example.answers]
    right = [part for part in candidates if any(_has(part, answer) for answer in answers)]
    wrong = [part for part in candidates if part not in right]
    if len(right) != 1 or not wrong:
        return None
    return Row((example.question, right[0], *wrong))


def _has(sentence: str, answer: str) -> bool:
    start = sentence.find(answer)
    while start >= 0:
        around = sentence[max(start - 1, 0) : start], sentence[start + len(answer) : start + len(answer) + 1]
        if not any(map(str.isalnum, around)):
            return True
        start = sentence.find(answer, start + 1)
    return False


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
