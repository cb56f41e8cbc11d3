"""WNUT-17 (Derczynski et al. 2017): new and rare entities in user-generated text.

Files: ``wnut17train.conll``, ``emerging.dev.conll``, ``emerging.test.annotated``; ``token TAB tag`` a line with BIO
tags, a blank line after each sentence. For transfer: the question and the form of the answer are those decaNLP has
for OntoNotes, ``entity -- type; entity -- type`` or ``None``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import check_split, find_file, malformed, read_lines
from mqan_data.readers.task import Task, downloads

QUESTION = "What are the tags for all entities?"
NO_ENTITY = "None"
_FILE_OF_SPLIT = {"train": "wnut17train.conll", "validation": "emerging.dev.conll", "test": "emerging.test.annotated"}
_URL = "https://raw.githubusercontent.com/leondz/emerging_entities_17/master/"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the sentences of a split; the tokens are joined by spaces."""
    check_split("wnut17", split, _FILE_OF_SPLIT)
    path = find_file("wnut17", folder, _FILE_OF_SPLIT[split])
    for index, sentence in enumerate(_sentences(path)):
        context = " ".join(token for token, _ in sentence)
        yield Example("wnut17", f"{split}/{index}", context, QUESTION, (_answer(sentence),))


def _sentences(path: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield the tokens and tags of each sentence."""
    sentence: list[tuple[str, str]] = []
    for number, line in read_lines(path):
        if not line.strip():
            if sentence:
                yield sentence
            sentence = []
            continue
        token, _, tag = line.partition("\t")
        if not token or (tag != "O" and tag[:2] not in ("B-", "I-")):
            raise malformed(path, number, f"expected a token, a tab and a BIO tag, found {line!r}.")
        sentence.append((token, tag))
    if sentence:
        yield sentence


def _answer(sentence: list[tuple[str, str]]) -> str:
    """List the entities with their types."""
    entities: list[tuple[list[str], str]] = []
    previous = "O"
    for token, tag in sentence:
        if tag.startswith("I-") and previous[2:] == tag[2:]:
            entities[-1][0].append(token)
        elif tag != "O":
            entities.append(([token], tag[2:].replace("-", " ")))
        previous = tag
    return "; ".join(f"{' '.join(tokens)} -- {kind}" for tokens, kind in entities) or NO_ENTITY


TASK = Task(
    name="wnut17",
    folder="wnut17",
    splits=tuple(_FILE_OF_SPLIT),
    metric="nf1",
    read=read,
    sources=downloads(
        _URL,
        {
            "wnut17train.conll": "731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5",
            "emerging.dev.conll": "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8",
            "emerging.test.annotated": None,
        },
    ),
)
