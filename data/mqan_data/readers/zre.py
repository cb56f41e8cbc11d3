"""QA-ZRE (Levy et al. 2017): relations as questions, none of them seen in training.

Files: ``{train,dev,test}.0`` of ``relation_splits.tar.bz2``, plain or in it: relation, question with ``XXX`` for the
subject, subject, sentence and the answers, tab-separated. Without answers the question is unanswerable.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.metrics import UNANSWERABLE
from mqan_data.readers.files import check_split, find_source, malformed, read_lines
from mqan_data.readers.task import Download, Task

_FILE_OF_SPLIT = {"train": "train.0", "validation": "dev.0", "test": "test.0"}
_ARCHIVE = "relation_splits.tar.bz2"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the questions of a split; several answers are one, with commas, as in decaNLP."""
    check_split("zre", split, _FILE_OF_SPLIT)
    file_name = _FILE_OF_SPLIT[split]
    source = find_source("zre", folder, file_name, archive=_ARCHIVE, member=f"relation_splits/{file_name}")
    for number, line in read_lines(source):
        fields = line.split("\t")
        if len(fields) < 4:
            raise malformed(source, number, f"expected at least 4 columns, found {len(fields)}.")
        _, question, subject, sentence, *answers = fields
        answer = ", ".join(answers) or UNANSWERABLE
        yield Example("zre", f"{split}/{number}", sentence, question.replace("XXX", subject), (answer,))


TASK = Task(
    name="zre",
    folder="zre",
    splits=tuple(_FILE_OF_SPLIT),
    metric="corpus_f1",
    read=read,
    sources=(
        Download(
            f"https://nlp.cs.washington.edu/zeroshot/{_ARCHIVE}",
            _ARCHIVE,
            sha256="e33d0e367b6e837370da17a2d09d217e0a92f8d180f7abb3fd543a2d1726b2b4",
        ),
    ),
)
