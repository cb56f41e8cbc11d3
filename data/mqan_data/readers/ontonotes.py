"""OntoNotes 5.0, English names (Hovy et al. 2006): eighteen types of entities.

Files: ``ontonotes-release-5.0`` as LDC gives it (LDC2013T19, unpacked; it cannot be downloaded freely) and the lists
``english-ontonotes-5.0-{train,development,test}-document-ids.txt`` of its usual split. A document ``*.name`` has a
sentence a line, entities in ``<ENAMEX TYPE="...">``. The question and the form of the answer are decaNLP's, for all
entities, sentences without any included.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import check_split, find_file, malformed, missing_file, read_lines
from mqan_data.readers.task import Task
from mqan_data.readers.wnut17 import NO_ENTITY, QUESTION

_PART_OF_SPLIT = {"train": "train", "validation": "development", "test": "test"}
_ANNOTATIONS = "ontonotes-release-5.0/data/files/data/english/annotations"
_WORD_OF_TYPE = {
    "PERSON": "person",
    "NORP": "political",
    "FAC": "facility",
    "ORG": "organization",
    "GPE": "geopolitical",
    "LOC": "location",
    "PRODUCT": "product",
    "EVENT": "event",
    "WORK_OF_ART": "artwork",
    "LAW": "legal",
    "LANGUAGE": "language",
    "DATE": "date",
    "TIME": "time",
    "PERCENT": "percentage",
    "MONEY": "monetary",
    "QUANTITY": "quantitative",
    "ORDINAL": "ordinal",
    "CARDINAL": "cardinal",
}
_ENTITY = re.compile(r'<ENAMEX TYPE="(?P<type>[A-Z_]+)"[^>]*>(?P<text>.*?)</ENAMEX>')
_ANY_TAG = re.compile(r"</?(?:ENAMEX|DOC)\b[^>]*>")


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the sentences of a split."""
    check_split("ontonotes", split, _PART_OF_SPLIT)
    ids = find_file("ontonotes", folder, f"english-ontonotes-5.0-{_PART_OF_SPLIT[split]}-document-ids.txt")
    for _, line in read_lines(ids):
        if not line.strip():
            continue
        document = line.strip().removeprefix("annotations/")
        path = folder / _ANNOTATIONS / f"{document}.name"
        if not path.is_file():
            raise missing_file("ontonotes", folder, f"{_ANNOTATIONS}/{document}.name")
        for number, sentence in read_lines(path):
            if sentence.strip() and not sentence.startswith(("<DOC", "</DOC")):
                yield _example(path, number, f"{document}/{number}", sentence)


def _example(path: Path, number: int, name: str, sentence: str) -> Example:
    entities = []
    for match in _ENTITY.finditer(sentence):
        if match["type"] not in _WORD_OF_TYPE:
            raise malformed(path, number, f"unknown type of entity {match['type']!r}.")
        entities.append(f"{_plain(match['text'])} -- {_WORD_OF_TYPE[match['type']]}")
    context = _ENTITY.sub(lambda match: match["text"], sentence)
    if _ANY_TAG.search(context):
        raise malformed(path, number, f"entities are nested or not closed: {sentence!r}.")
    return Example("ontonotes", name, _plain(context), QUESTION, ("; ".join(entities) or NO_ENTITY,))


def _plain(text: str) -> str:
    return " ".join(html.unescape(text).split())


TASK = Task(name="ontonotes", folder="ontonotes", splits=tuple(_PART_OF_SPLIT), metric="nf1", read=read)
