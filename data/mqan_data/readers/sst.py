"""Stanford Sentiment Treebank, two classes, whole sentences (Socher et al. 2013).

Files: ``{train,dev,test}_binary_sent.csv`` of openai/generating-reviews-discovering-sentiment, with the header
``label,sentence`` and labels 0 and 1.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import check_split, find_file, malformed
from mqan_data.readers.task import Task, downloads

QUESTION = "Is this review negative or positive?"
LABELS = ("negative", "positive")
_FILE_OF_SPLIT = {"train": "train", "validation": "dev", "test": "test"}
_URL = "https://raw.githubusercontent.com/openai/generating-reviews-discovering-sentiment/master/data/"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the sentences of a split; every row gives one example."""
    check_split("sst", split, _FILE_OF_SPLIT)
    path = find_file("sst", folder, f"{_FILE_OF_SPLIT[split]}_binary_sent.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows, None)  # the header
        for index, row in enumerate(rows):
            if len(row) != 2 or row[0] not in ("0", "1"):
                raise malformed(path, rows.line_num, f"expected a label 0 or 1 and a sentence, found {row!r}.")
            yield Example("sst", f"{split}/{index}", row[1], QUESTION, (LABELS[int(row[0])],))


TASK = Task(
    name="sst",
    folder="sst",
    splits=tuple(_FILE_OF_SPLIT),
    metric="em",
    read=read,
    sources=downloads(
        _URL,
        {
            "train_binary_sent.csv": "6003623bcb35aad3a446a265b8931b7ccab61fcc10f2e9c1fec916ff67c7be35",
            "dev_binary_sent.csv": "f34c4987fea208fefc2d62a1b42c83a766cbfc7ce58c2a878ef953cf91f01729",
            "test_binary_sent.csv": "519cea7ed4d22fe7ec4eccbb3d5ba6d88902a3b15ce129f476aa8364463a9fc7",
        },
    ),
)
