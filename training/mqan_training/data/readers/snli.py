"""SNLI 1.0 (Bowman et al. 2015): inference between captions, three labels.

Files: ``snli_1.0_{train,dev,test}.jsonl``, plain or in ``snli_1.0.zip``. As in decaNLP, pairs without a gold label
stay, with the answer ``-``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers.files import check_split, find_source, read_json_lines, text_field
from mqan_training.data.readers.nli import nli_example
from mqan_training.data.readers.task import Download, Task

_FILE_OF_SPLIT = {
    split: f"snli_1.0_{part}.jsonl" for split, part in (("train", "train"), ("validation", "dev"), ("test", "test"))
}
_ARCHIVE = "snli_1.0.zip"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the pairs of a split; every row gives one example."""
    check_split("snli", split, _FILE_OF_SPLIT)
    file_name = _FILE_OF_SPLIT[split]
    source = find_source("snli", folder, file_name, archive=_ARCHIVE, member=f"snli_1.0/{file_name}")
    for number, row in read_json_lines(source):
        premise, hypothesis, label = (
            text_field(source, number, row, field) for field in ("sentence1", "sentence2", "gold_label")
        )
        yield nli_example("snli", f"{split}/{number}", premise, hypothesis, label)


TASK = Task(
    name="snli",
    folder="snli",
    splits=tuple(_FILE_OF_SPLIT),
    metric="em",
    read=read,
    sources=(
        Download(
            f"https://nlp.stanford.edu/projects/snli/{_ARCHIVE}",
            _ARCHIVE,
            sha256="afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
        ),
    ),
)
