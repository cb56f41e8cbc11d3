"""MultiNLI 1.0 (Williams et al. 2018): ten genres, three labels.

Files: ``multinli_1.0_{train,dev_matched,dev_mismatched}.jsonl``, plain or in ``multinli_1.0.zip``. Validation is the
matched and then the mismatched half. As in decaNLP, pairs without a gold label stay, with the answer ``-``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers.files import check_split, count_dropped, find_source, read_json_lines, text_field
from mqan_training.data.readers.nli import nli_example
from mqan_training.data.readers.task import Download, Task

SPLITS = ("train", "validation")
_NAME = "multinli_1.0"
_ARCHIVE = f"{_NAME}.zip"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the pairs of a split; where the mismatched half is not there, that is counted."""
    check_split("multinli", split, SPLITS)
    parts = ("train",) if split == "train" else ("dev_matched", "dev_mismatched")
    for part in parts:
        file_name = f"{_NAME}_{part}.jsonl"
        try:
            source = find_source("multinli", folder, file_name, archive=_ARCHIVE, member=f"{_NAME}/{file_name}")
        except FileNotFoundError:
            if part != "dev_mismatched":
                raise
            count_dropped(dropped, f"{file_name} is not there")
            continue
        for number, row in read_json_lines(source):
            premise, hypothesis, label, name = (
                text_field(source, number, row, field) for field in ("sentence1", "sentence2", "gold_label", "pairID")
            )
            yield nli_example("multinli", f"{part}/{name}", premise, hypothesis, label)


TASK = Task(
    name="multinli",
    folder="multinli",
    splits=SPLITS,
    metric="em",
    read=read,
    sources=(
        Download(
            f"https://www.nyu.edu/projects/bowman/multinli/{_ARCHIVE}",
            _ARCHIVE,
            sha256="049f507b9e36b1fcb756cfd5aeb3b7a0cfcb84bf023793652987f7e7e0957822",
        ),
    ),
)
