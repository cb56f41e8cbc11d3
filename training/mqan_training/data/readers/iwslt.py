"""TED talks, English to German (Cettolo et al. 2012), of the IWSLT evaluations.

Files, plain, unpacked in ``en-de/`` or in ``en-de.tgz``: ``train.tags.en-de.{en,de}``, where lines with the talk's
metadata are passed over; ``IWSLT16.TED.tst2013.en-de.{en,de}.xml`` for validation and ``...tst2014...`` for test; in
their place also plain text of IWSLT14 (``IWSLT14.TED.tst2012.en-de.*``, ``IWSLT14.TEDX.dev2012.en-de.*``). The
publisher gives no address that can be downloaded from without a browser.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers.files import Member, check_split, find_file, read_lines
from mqan_training.data.readers.task import Task
from mqan_training.data.readers.translation import Line, translation_examples

_FILES_OF_SPLIT = {
    "train": ("train.tags.en-de.{}",),
    "validation": ("IWSLT16.TED.tst2013.en-de.{}.xml", "IWSLT14.TED.tst2012.en-de.{}"),
    "test": ("IWSLT16.TED.tst2014.en-de.{}.xml", "IWSLT14.TEDX.dev2012.en-de.{}"),
}
_LANGUAGES = ("en", "de")
_ARCHIVE = "en-de.tgz"
_METADATA = re.compile(r"<(url|keywords|talkid|description|reviewer|translator|title|speaker)")
_SEGMENT = re.compile(r"\s*<seg [^>]*>(.*)</seg>\s*")


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the pairs of a split; pairs with an empty side are dropped."""
    check_split("iwslt.en.de", split, _FILES_OF_SPLIT)
    source, target = (_find(folder, split, code) for code in _LANGUAGES)
    lines = (_sentences(source), _sentences(target))
    yield from translation_examples("iwslt.en.de", split, _LANGUAGES, lines, source, dropped)


def _find(folder: Path, split: str, code: str) -> Path | Member:
    names = [name.format(code) for name in _FILES_OF_SPLIT[split]]
    unpacked = [f"en-de/{name}" for name in names]
    path = find_file("iwslt.en.de", folder, *names, *unpacked, _ARCHIVE)
    return Member(path, unpacked[0]) if path.name == _ARCHIVE else path


def _sentences(file: Path | Member) -> Iterator[Line]:
    """Yield the sentences of a file without its markup, numbered by its lines."""
    is_xml = str(file).rstrip(")").endswith(".xml")
    for number, line in read_lines(file):
        segment = _SEGMENT.fullmatch(line) if is_xml else None
        if segment:
            yield number, html.unescape(segment[1])
        elif not is_xml and not _METADATA.search(line):
            yield number, line


TASK = Task(name="iwslt.en.de", folder="iwslt", splits=tuple(_FILES_OF_SPLIT), metric="bleu", read=read)
