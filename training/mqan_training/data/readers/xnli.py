"""XNLI, English part (Conneau et al. 2018): evaluation sets in the style of MultiNLI, three labels.

Files: ``xnli.{dev,test}.en.tsv``, or ``xnli.{dev,test}.tsv`` with all languages, plain or in ``XNLI-1.0.zip``;
tab-separated with a header and without quoting. There is no English training set.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers.files import check_split, count_dropped, find_source, malformed, read_table
from mqan_training.data.readers.nli import THREE_LABELS, nli_example
from mqan_training.data.readers.task import Download, Task

_PART_OF_SPLIT = {"validation": "dev", "test": "test"}


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the English pairs of a split."""
    check_split("xnli", split, _PART_OF_SPLIT)
    part = _PART_OF_SPLIT[split]
    source = find_source(
        "xnli", folder, f"xnli.{part}.en.tsv", archive="XNLI-1.0.zip", member=f"XNLI-1.0/xnli.{part}.tsv"
    )
    columns = ("language", "gold_label", "sentence1", "sentence2")
    for number, (language, label, premise, hypothesis) in read_table(source, *columns):
        if language != "en":
            count_dropped(dropped, "row in another language")
            continue
        if label not in THREE_LABELS:
            raise malformed(source, number, f"unknown label {label!r}.")
        yield nli_example("xnli", f"{split}/{number}", premise, hypothesis, label)


TASK = Task(
    name="xnli",
    folder="nli_extra/xnli",
    splits=tuple(_PART_OF_SPLIT),
    metric="em",
    read=read,
    sources=(Download("https://dl.fbaipublicfiles.com/XNLI/XNLI-1.0.zip", "XNLI-1.0.zip"),),
)
