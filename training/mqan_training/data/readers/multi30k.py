"""Multi30k, task 1 (Elliott et al. 2016; Barrault et al. 2018): translation of image captions.

Files: ``{train,val,test_2016_flickr}.{en,de,cs}.gz`` of ``data/task1/raw`` of multi30k/dataset, a caption a line.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers.files import check_split, find_file, read_lines
from mqan_training.data.readers.task import Download, Task
from mqan_training.data.readers.translation import translation_examples

_PART_OF_SPLIT = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
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


def read(
    languages: tuple[str, str], folder: Path, split: str, dropped: Counter[str] | None = None, /
) -> Iterator[Example]:
    """Yield the pairs of a split in one direction; pairs with an empty side are dropped."""
    task = f"multi30k.{'.'.join(languages)}"
    check_split(task, split, _PART_OF_SPLIT)
    part = _PART_OF_SPLIT[split]
    source, target = (find_file(task, folder, f"{part}.{code}.gz", f"{part}.{code}") for code in languages)
    lines = (read_lines(source), read_lines(target))
    yield from translation_examples(task, split, languages, lines, source, dropped)


def _task(source: str, target: str) -> Task:
    files = [f"{part}.{code}.gz" for part in _PART_OF_SPLIT.values() for code in (source, target)]
    return Task(
        name=f"multi30k.{source}.{target}",
        folder="multi30k",
        splits=tuple(_PART_OF_SPLIT),
        metric="bleu",
        read=partial(read, (source, target)),
        sources=tuple(Download(_URL + name, name, sha256=_SHA256[name]) for name in files),
    )


TASKS = (_task("en", "de"), _task("de", "en"), _task("en", "cs"), _task("cs", "en"))
