"""CNN/Daily Mail (Hermann et al. 2015; Nallapati et al. 2016), not anonymised: news with highlights as summary.

Files: ``cnn_stories.tgz`` and ``dailymail_stories.tgz`` with ``{cnn,dailymail}/stories/<name>.story``, or these
folders, and the lists of See et al. 2017, ``{cnn,dailymail}_wayback_{training,validation,test}_urls.txt``, where the
name of a story is the SHA-1 of its address. In place of the lists, ``{train,val,test}.txt`` may name stories of CNN.
"""

import hashlib
import tarfile
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import check_split, count_dropped, find_file, intact, malformed, read_lines
from mqan_data.readers.task import Task, downloads

QUESTION = "What is the summary?"
_LISTS_OF_SPLIT = {
    "train": ("train.txt", "training"),
    "validation": ("val.txt", "validation"),
    "test": ("test.txt", "test"),
}
_NAME = "cnn_dailymail"
_PUBLISHERS = ("cnn", "dailymail")
_SENTENCE_ENDS = (".", "!", "?", "...", "'", "`", '"', "\u2019", "\u201d", ")")
_HIGHLIGHT = "@highlight"
_LISTS_URL = "https://raw.githubusercontent.com/abisee/cnn-dailymail/master/url_lists/"
_STORIES_URL = "https://huggingface.co/datasets/cnn_dailymail/resolve/11343c3752184397d56efc19a8a7cceb68089318/data/"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the stories of a split, CNN's first, in the order of the archive or of their names.

    Stories without an article or without highlights are dropped, as are names on a list without a story.
    """
    check_split(_NAME, split, _LISTS_OF_SPLIT)
    for publisher, names in _names(folder, split).items():
        for name, text in _stories(folder, publisher):
            if name not in names:
                continue
            names.remove(name)
            article, highlights = split_story(folder / publisher / name, text)
            if article and highlights:
                yield Example(_NAME, f"{publisher}/{name}", article, QUESTION, (highlights,))
            else:
                count_dropped(dropped, "story without article or highlights")
        count_dropped(dropped, "story is not there", len(names))


def _names(folder: Path, split: str) -> dict[str, set[str]]:
    """Return the names of a split's stories, without ``.story``, for each publisher."""
    plain, part = _LISTS_OF_SPLIT[split]
    lists = {publisher: f"{publisher}_wayback_{part}_urls.txt" for publisher in _PUBLISHERS}
    path = find_file(_NAME, folder, plain, lists["cnn"])
    if path.name == plain:
        return {"cnn": {line.strip().removesuffix(".story") for _, line in read_lines(path) if line.strip()}}
    return {
        publisher: {
            hashlib.sha1(line.strip().encode(), usedforsecurity=False).hexdigest()
            for _, line in read_lines(find_file(_NAME, folder, name))
        }
        for publisher, name in lists.items()
    }


def _stories(folder: Path, publisher: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of all stories of a publisher."""
    path = find_file(_NAME, folder, f"{publisher}_stories.tgz", f"{publisher}/stories")
    with intact(path):
        if path.is_dir():
            for file in sorted(path.glob("*.story")):
                yield file.stem, file.read_text(encoding="utf-8")
            return
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name.endswith(".story") else None
                if content:
                    yield Path(member.name).stem, content.read().decode("utf-8")


def split_story(path: Path, text: str) -> tuple[str, str]:
    """Return article and highlights, each on one line, with full stops where they are missing."""
    article: list[str] = []
    highlights: list[str] = []
    current = article
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped.startswith(_HIGHLIGHT):
            current = highlights
        elif _HIGHLIGHT in stripped:
            raise malformed(path, None, f"has {_HIGHLIGHT} inside a line.")
        elif stripped:
            current.append(stripped if stripped.endswith(_SENTENCE_ENDS) else stripped + ".")
    return unicodedata.normalize("NFKC", " ".join(article)), unicodedata.normalize("NFKC", " ".join(highlights))


_LISTS = {
    "cnn_wayback_training_urls.txt": "e074c2245c475b00c455cefb911e0066b27fe17085dd0c773101e10d3088583b",
    "cnn_wayback_validation_urls.txt": "b1ae81ff058ca640da3ae2b3c98fefca3adfea358736b6e29efc2ec1cbef5b5c",
    "cnn_wayback_test_urls.txt": "a0796c3c7812e3c9fcb1a65faa9aee7bb6f8a3869e953c7f61b401790c0a6f33",
    "dailymail_wayback_training_urls.txt": "3913d6a90c29a81196128346d81c28d6c7f7e91777d886e8417163ce83b2a04a",
    "dailymail_wayback_validation_urls.txt": "2377b8f809bd07b143bbbd9e60594d10e7b8a211c8a5672181ea6000bbf548a2",
    "dailymail_wayback_test_urls.txt": "554d18fc79a06a16902662d926cb7cc981ea36a3f82d5ae1426e25bf62f65b87",
}
TASK = Task(
    name=_NAME,
    folder="cnn_dailymail",
    splits=tuple(_LISTS_OF_SPLIT),
    metric="avg_rouge",
    read=read,
    max_context_tokens=400,
    sources=(
        *downloads(
            _STORIES_URL,
            {
                "cnn_stories.tgz": "e8fbc0027e54e0a916abd9c969eb35f708ed1467d7ef4e3b17a56739d65cb200",
                "dailymail_stories.tgz": "ad69010002210b7c406718248ee66e65868b9f6820f163aa966369878d14147e",
            },
        ),
        *downloads(_LISTS_URL, _LISTS),
    ),
)
