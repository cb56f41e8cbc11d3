"""Large movie reviews (Maas et al. 2011): positive or negative, never neutral.

Files, the first that is there: ``aclImdb.{train,test}.jsonl.gz`` (a json line per review with the official path as
``id``, ``label`` and ``text``), the official folder ``aclImdb/{train,test}/{pos,neg}/*.txt``, or the official archive
``aclImdb_v1.tar.gz``, which is read without unpacking it. The unlabelled reviews are not used.
"""

import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import check_split, find_file, intact, malformed, read_json_lines, text_field
from mqan_data.readers.sst import QUESTION
from mqan_data.readers.task import Download, Task

SPLITS = ("train", "test")
_ANSWER_OF_LABEL = {"neg": "negative", "pos": "positive"}
_ARCHIVE = "aclImdb_v1.tar.gz"
_MEMBER = re.compile(r"aclImdb/((train|test)/(pos|neg)/[^/]+)\.txt")


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the reviews of a split; the context is the first line of the review, which is the whole review."""
    check_split("imdb", split, SPLITS)
    path = find_file("imdb", folder, f"aclImdb.{split}.jsonl.gz", "aclImdb", _ARCHIVE)
    if path.is_dir():
        reviews = _from_folder(path, split)
    elif path.name == _ARCHIVE:
        reviews = _from_archive(path, split)
    else:
        reviews = _from_json_lines(path)
    with intact(path):
        for name, label, text in reviews:
            yield Example("imdb", name, text.partition("\n")[0], QUESTION, (_ANSWER_OF_LABEL[label],))


def _from_json_lines(path: Path) -> Iterator[tuple[str, str, str]]:
    for number, row in read_json_lines(path):
        name, label, text = (text_field(path, number, row, field) for field in ("id", "label", "text"))
        if label not in _ANSWER_OF_LABEL:
            raise malformed(path, number, f"`label` must be pos or neg, found {label!r}.")
        yield name, label, text


def _from_folder(path: Path, split: str) -> Iterator[tuple[str, str, str]]:
    for label in _ANSWER_OF_LABEL:
        files = sorted((path / split / label).glob("*.txt"))
        if not files:
            raise malformed(path / split / label, None, "holds no reviews (*.txt).")
        for file in files:
            yield f"{split}/{label}/{file.stem}", label, file.read_text(encoding="utf-8")


def _from_archive(path: Path, split: str) -> Iterator[tuple[str, str, str]]:
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            match = _MEMBER.fullmatch(member.name)
            content = archive.extractfile(member) if match and match[2] == split else None
            if match and content:
                yield match[1], match[3], content.read().decode("utf-8")


TASK = Task(
    name="imdb",
    folder="imdb",
    splits=SPLITS,
    metric="em",
    read=read,
    max_context_tokens=400,
    sources=(
        Download(
            "https://ai.stanford.edu/~amaas/data/sentiment/" + _ARCHIVE,
            _ARCHIVE,
            sha256="c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
        ),
    ),
)
