"""SUBJ (Pang and Lee 2004): sentences of reviews (subjective) and of plot summaries (objective).

Files: ``quote.tok.gt9.5000`` (subjective) and ``plot.tok.gt9.5000`` (objective), plain or in ``rotten_imdb.tar.gz``;
a sentence a line, latin-1. There is no official split. For transfer; not a task of decaNLP.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import check_split, count_dropped, find_source, read_lines
from mqan_data.readers.task import Download, Task

QUESTION = "Is this sentence subjective or objective?"
SPLITS = ("train",)
_ANSWER_OF_FILE = {"quote.tok.gt9.5000": "subjective", "plot.tok.gt9.5000": "objective"}
_ARCHIVE = "rotten_imdb.tar.gz"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield all sentences, the subjective ones first."""
    check_split("subj", split, SPLITS)
    for file_name, answer in _ANSWER_OF_FILE.items():
        source = find_source("subj", folder, file_name, archive=_ARCHIVE, member=file_name)
        for number, line in read_lines(source, "latin-1"):
            if line.strip():
                yield Example("subj", f"{answer}/{number}", line.strip(), QUESTION, (answer,))
            else:
                count_dropped(dropped, "blank line")


TASK = Task(
    name="subj",
    folder="subj",
    splits=SPLITS,
    metric="em",
    read=read,
    sources=(Download(f"https://www.cs.cornell.edu/people/pabo/movie-review-data/{_ARCHIVE}", _ARCHIVE),),
)
