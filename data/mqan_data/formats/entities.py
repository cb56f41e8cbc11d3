"""Files whose entities are named in one answer: ``text -- type; text -- type``."""

import html
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from mqan_data.errors import MissingFileError
from mqan_data.files import File, malformed, read_lines
from mqan_data.formats.dataset_file import Part
from mqan_data.formats.records import Format, Record, entities_of

_NO_ENTITY: Final = "None"
_WORD_OF_TYPE: Final = {
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
_ENTITY: Final = re.compile(r'<ENAMEX TYPE="(?P<type>[A-Z_]+)"[^>]*>(?P<text>.*?)</ENAMEX>')
_ANY_TAG: Final = re.compile(r"</?(?:ENAMEX|DOC)\b[^>]*>")


def _entities_in_markup(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """OntoNotes 5.0: the documents of a list, below a folder: ``*.name`` with a sentence a line."""
    for _, line in read_lines(files[0]):
        document = line.strip().removeprefix("annotations/")
        path = files[1].path / f"{document}.name"
        if document and not path.is_file():
            raise MissingFileError(f"found no {path}, which {files[0]} lists.")
        for number, sentence in read_lines(path) if document else ():
            if sentence.strip() and not sentence.startswith(("<DOC", "</DOC")):
                context = _ENTITY.sub(lambda match: match["text"], sentence)
                if _ANY_TAG.search(context):
                    raise malformed(path, number, f"entities are nested or not closed: {sentence!r}.")
                found = [
                    (_plain(entity["text"]), _WORD_OF_TYPE[entity["type"]]) for entity in _ENTITY.finditer(sentence)
                ]
                yield {"id": f"{document}/{number}", "context": _plain(context), "answers": [_listed(found)]}


def _plain(text: str) -> str:
    return " ".join(html.unescape(text).split())


def _listed(entities: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{text} -- {kind}" for text, kind in entities) or _NO_ENTITY


def _entities_by_token(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """WNUT-17: ``token TAB tag`` a line with BIO tags, a blank line after each sentence."""
    for is_sentence, lines in groupby(read_lines(files[0]), lambda line: bool(line[1].strip())):
        if is_sentence:
            tokens, tags = zip(*(_token(files[0], number, line) for number, line in lines), strict=True)
            found = [(" ".join(tokens[a:b]), kind.replace("-", " ")) for kind, a, b in entities_of(tags)]
            yield {"context": " ".join(tokens), "answers": [_listed(found)]}


def _token(file: File, number: int, line: str) -> tuple[str, str]:
    token, _, tag = line.partition("\t")
    if not token or (tag != "O" and tag[:2] not in ("B-", "I-")):
        raise malformed(file, number, f"expected a token, a tab and a BIO tag, found {line!r}.")
    return token, tag


FORMATS: Final[dict[str, Format]] = {
    "entities_in_markup": _entities_in_markup,
    "entities_by_token": _entities_by_token,
}
"""Reader of each format."""
