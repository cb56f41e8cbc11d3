"""SICK (Marelli et al. 2014): inference between simple sentences, three labels.

Files: ``SICK_{train,trial,test_annotated}.txt`` of SemEval 2014, task 1, plain or each in its zip; tab-separated with
a header.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers.files import check_split, find_source, malformed, read_table
from mqan_training.data.readers.nli import THREE_LABELS, nli_example
from mqan_training.data.readers.task import Download, Task

_PART_OF_SPLIT = {"train": "train", "validation": "trial", "test": "test_annotated"}
_URL = "https://alt.qcri.org/semeval2014/task1/data/uploads/"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the pairs of a split; every row gives one example."""
    check_split("sick", split, _PART_OF_SPLIT)
    part = _PART_OF_SPLIT[split]
    name = f"SICK_{part}.txt"
    source = find_source("sick", folder, name, archive=f"sick_{part}.zip", member=name)
    columns = ("pair_ID", "sentence_A", "sentence_B", "entailment_judgment")
    for number, (pair, premise, hypothesis, judgment) in read_table(source, *columns):
        if judgment.lower() not in THREE_LABELS:
            raise malformed(source, number, f"unknown judgment {judgment!r}.")
        yield nli_example("sick", pair, premise, hypothesis, judgment.lower())


TASK = Task(
    name="sick",
    folder="nli_extra/sick",
    splits=tuple(_PART_OF_SPLIT),
    metric="em",
    read=read,
    sources=tuple(Download(f"{_URL}sick_{part}.zip", f"sick_{part}.zip") for part in _PART_OF_SPLIT.values()),
)
