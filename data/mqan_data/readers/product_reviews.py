"""Multi-domain sentiment (Blitzer et al. 2007): reviews of books, DVDs, electronics and kitchen goods.

File: ``domain_sentiment_data.tar.gz`` with ``sorted_data_acl/<domain>/{positive,negative}.review`` (pseudo-XML in
latin-1), read without unpacking it. There is no official split. Where ``splits.json`` lies beside the archive, it
gives the indices: domain -> ``train``/``dev``/``test`` -> label -> list. Without it, of each file's reviews the first
70 % are train, the next 10 % validation and the rest test.
"""

import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqan_core.example import Example
from mqan_data.errors import MissingFileError
from mqan_data.readers.files import check_split, find_file, intact, malformed, read_json
from mqan_data.readers.sst import QUESTION
from mqan_data.readers.task import Download, Task

SPLITS = ("train", "validation", "test")
_ARCHIVE = "domain_sentiment_data.tar.gz"
_MEMBER = re.compile(r"(?:\./)?sorted_data_acl/([^/]+)/(negative|positive)\.review")
_REVIEW = re.compile(r"<review>(.*?)</review>", re.DOTALL)
_TEXT = re.compile(r"<review_text>(.*?)</review_text>", re.DOTALL)
_PART_OF_SPLIT = {"train": "train", "validation": "dev", "test": "test"}  # in splits.json
_SHARES = {"train": (0.0, 0.7), "validation": (0.7, 0.8), "test": (0.8, 1.0)}


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the reviews of a split, domain by domain; the id starts with the domain."""
    check_split("product_reviews", split, SPLITS)
    path = find_file("product_reviews", folder, _ARCHIVE)
    splits = _splits(folder / "splits.json", split) if (folder / "splits.json").exists() else None
    with intact(path), tarfile.open(path, "r|gz") as archive:
        for member in archive:
            match = _MEMBER.fullmatch(member.name)
            content = archive.extractfile(member) if match else None
            if not match or not content:
                continue
            domain, label = match.groups()
            reviews = _REVIEW.findall(content.read().decode("latin-1"))
            if splits is None:
                start, end = (round(share * len(reviews)) for share in _SHARES[split])
                indices = list(range(start, end))
            else:
                indices = _indices(folder / "splits.json", splits, domain, split, label)
            for index in indices:
                text = _TEXT.search(reviews[index]) if 0 <= index < len(reviews) else None
                if text is None:
                    raise malformed(path, None, f"{member.name} has no review {index} with a <review_text>.")
                yield Example("product_reviews", f"{domain}/{label}/{index}", text[1].strip(), QUESTION, (label,))


def _splits(path: Path, split: str) -> Any:
    """Return the content of ``splits.json``, if it has the split at all."""
    splits = read_json(path)
    part = _PART_OF_SPLIT[split]
    try:
        if not any(part in of_domain for of_domain in splits.values()):
            raise MissingFileError(f"product_reviews: {path} has no {part} part.")
    except (AttributeError, TypeError) as error:
        raise malformed(path, None, "expected an object with an object a domain.") from error
    return splits


def _indices(path: Path, splits: Any, domain: str, split: str, label: str) -> list[int]:
    """Return the indices that ``splits.json`` gives for one file of the archive."""
    try:
        indices = splits[domain][_PART_OF_SPLIT[split]][label]
    except (KeyError, TypeError) as error:
        raise malformed(path, None, f"gives no {split} indices for {domain}, {label}.") from error
    if not isinstance(indices, list) or not all(isinstance(index, int) for index in indices):
        raise malformed(path, None, f"the {split} indices of {domain}, {label} must be a list of whole numbers.")
    return indices


TASK = Task(
    name="product_reviews",
    folder="multidomain",
    splits=SPLITS,
    metric="em",
    read=read,
    max_context_tokens=400,
    sources=(Download("https://www.cs.jhu.edu/~mdredze/datasets/sentiment/" + _ARCHIVE, _ARCHIVE),),
)
