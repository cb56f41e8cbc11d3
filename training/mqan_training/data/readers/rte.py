"""RTE in the layout of GLUE (Dagan et al. 2006 and later; Wang et al. 2018): does the one text entail the other.

Files: ``train.tsv`` and ``dev.tsv``, plain or in ``RTE.zip``; tab-separated with a header and without quoting. The
labels of the test set are not public. Not a task of decaNLP, so the words of the question are ours.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers.files import check_split, find_source, malformed, read_table
from mqan_training.data.readers.nli import nli_example
from mqan_training.data.readers.task import Download, Task

_FILE_OF_SPLIT = {"train": "train.tsv", "validation": "dev.tsv"}
_ANSWER_OF_LABEL = {"entailment": "entailment", "not_entailment": "not entailment"}


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the pairs of a split; every row gives one example."""
    check_split("rte", split, _FILE_OF_SPLIT)
    file_name = _FILE_OF_SPLIT[split]
    source = find_source("rte", folder, file_name, archive="RTE.zip", member=f"RTE/{file_name}")
    for number, (name, premise, hypothesis, label) in read_table(source, "index", "sentence1", "sentence2", "label"):
        if label not in _ANSWER_OF_LABEL:
            raise malformed(source, number, f"unknown label {label!r}.")
        answer = _ANSWER_OF_LABEL[label]
        yield nli_example("rte", f"{split}/{name}", premise, hypothesis, answer, "entailment or not entailment")


TASK = Task(
    name="rte",
    folder="nli_extra/rte",
    splits=tuple(_FILE_OF_SPLIT),
    metric="em",
    read=read,
    sources=(Download("https://dl.fbaipublicfiles.com/glue/data/RTE.zip", "RTE.zip"),),
)
