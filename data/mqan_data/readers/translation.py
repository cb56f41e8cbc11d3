"""Translation: one way to ask (McCann et al. 2018, table 1) of pairs of lines.

- TED talks, English to German (Cettolo et al. 2012), of the IWSLT evaluations. Files, plain, unpacked in ``en-de/`` or
  in ``en-de.tgz``: ``train.tags.en-de.{en,de}``, where lines with the talk's metadata are passed over;
  ``IWSLT16.TED.tst2013.en-de.{en,de}.xml`` for validation and ``...tst2014...`` for test; in their place also plain
  text of IWSLT14 (``IWSLT14.TED.tst2012.en-de.*``, ``IWSLT14.TEDX.dev2012.en-de.*``). The publisher gives no address
  that can be downloaded from without a browser.
- Multi30k, task 1 (Elliott et al. 2016; Barrault et al. 2018): image captions. Files:
  ``{train,val,test_2016_flickr}.{en,de,cs}.gz`` of ``data/task1/raw`` of multi30k/dataset, a caption a line.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import Member, check_split, count_dropped, find_file, malformed, read_lines
from mqan_data.readers.task import Task, downloads

_LANGUAGES = {"cs": "Czech", "de": "German", "en": "English"}

Line = tuple[int, str]
_IWSLT_FILES = {
    "train": ("train.tags.en-de.{}",),
    "validation": ("IWSLT16.TED.tst2013.en-de.{}.xml", "IWSLT14.TED.tst2012.en-de.{}"),
    "test": ("IWSLT16.TED.tst2014.en-de.{}.xml", "IWSLT14.TEDX.dev2012.en-de.{}"),
}
_IWSLT_ARCHIVE = "en-de.tgz"
_METADATA = re.compile(r"<(url|keywords|talkid|description|reviewer|translator|title|speaker)")
_SEGMENT = re.compile(r"\s*<seg [^>]*>(.*)</seg>\s*")
_MULTI30K_PARTS = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
_SHA256 = {
    "train.cs.gz": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.cs.gz": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "test_2016_flickr.cs.gz": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
}


def _examples(
    task: str,
    split: str,
    languages: tuple[str, str],
    sources: tuple[Iterable[Line], Iterable[Line]],
    file: Path | Member,
    dropped: Counter[str] | None,
) -> Iterator[Example]:
    """Pair the lines of two files; pairs with an empty side are dropped.

    Args:
        task: name of the task.
        split: name of the split.
        languages: codes of the source and the target language.
        sources: numbered lines in these languages.
        file: the source file, to name it in errors.
        dropped: counts the empty pairs.
    """
    source_language, target_language = (_LANGUAGES[code] for code in languages)
    question = f"Translate from {source_language} to {target_language}"
    for source, target in zip_longest(*sources):
        if source is None or target is None:
            raise malformed(file, None, f"has not as many lines as its counterpart in {target_language}.")
        number, context, answer = source[0], source[1].strip(), target[1].strip()
        if context and answer:
            yield Example(task, f"{split}/{number}", context, question, (answer,))
        else:
            count_dropped(dropped, "empty pair")


def _read_iwslt(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the pairs of a split; pairs with an empty side are dropped."""
    check_split("iwslt.en.de", split, _IWSLT_FILES)
    source, target = (_find(folder, split, code) for code in ("en", "de"))
    lines = (_sentences(source), _sentences(target))
    yield from _examples("iwslt.en.de", split, ("en", "de"), lines, source, dropped)


def _find(folder: Path, split: str, code: str) -> Path | Member:
    names = [name.format(code) for name in _IWSLT_FILES[split]]
    unpacked = [f"en-de/{name}" for name in names]
    path = find_file("iwslt.en.de", folder, *names, *unpacked, _IWSLT_ARCHIVE)
    return Member(path, unpacked[0]) if path.name == _IWSLT_ARCHIVE else path


def _sentences(file: Path | Member) -> Iterator[Line]:
    """Yield the sentences of a file without its markup, numbered by its lines."""
    is_xml = str(file).rstrip(")").endswith(".xml")
    for number, line in read_lines(file):
        segment = _SEGMENT.fullmatch(line) if is_xml else None
        if segment:
            yield number, html.unescape(segment[1])
        elif not is_xml and not _METADATA.search(line):
            yield number, line


def _read_multi30k(
    languages: tuple[str, str], folder: Path, split: str, dropped: Counter[str] | None = None, /
) -> Iterator[Example]:
    """Yield the pairs of a split in one direction; pairs with an empty side are dropped."""
    task = f"multi30k.{'.'.join(languages)}"
    check_split(task, split, _MULTI30K_PARTS)
    part = _MULTI30K_PARTS[split]
    source, target = (find_file(task, folder, f"{part}.{code}.gz", f"{part}.{code}") for code in languages)
    lines = (read_lines(source), read_lines(target))
    yield from _examples(task, split, languages, lines, source, dropped)


def _task(source: str, target: str) -> Task:
    files = [f"{part}.{code}.gz" for part in _MULTI30K_PARTS.values() for code in (source, target)]
    return Task(
        name=f"multi30k.{source}.{target}",
        folder="multi30k",
        splits=tuple(_MULTI30K_PARTS),
        metric="bleu",
        read=partial(_read_multi30k, (source, target)),
        sources=downloads(_URL, {name: _SHA256[name] for name in files}),
    )


TASK = Task(name="iwslt.en.de", folder="iwslt", splits=tuple(_IWSLT_FILES), metric="bleu", read=_read_iwslt)
OTHERS = (_task("en", "de"), _task("de", "en"), _task("en", "cs"), _task("cs", "en"))
