"""Files to records: one dict a row, whatever the format.

The format NAME is the function ``format_NAME`` here or beside it; it yields the records of a file, or of several that
have a line a row each (``a.txt|b.txt``).
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final
from xml.etree import ElementTree

from mqan_data.files import File, malformed, read_json_lines, read_lines
from mqan_data.formats.dataset_file import Part

Record = dict[str, Any]
DROPPED: Final = "(dropped)"  # key of a record: why something was left out; nothing else may be in it
TIMES: Final = "(times)"  # beside it: how often, if not once
_NO_SPACE_BEFORE = frozenset((
    ".", ",", ";", ":", "!", "?", ")", "]", "}", "%", "'s", "'S", "n't", "'re", "'ve", "'ll", "'d", "'m", "''",
    "\u201d", "...",
))  # fmt: skip
_NO_SPACE_BEHIND = frozenset(["(", "[", "{", "$", "#", "``", "“", "£", "€"])
_WRITTEN = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"'}
_QUOTE = '"'


def pick(record: Any, path: str) -> Any:
    """Return what a dotted path leads to; ``*`` takes the rest of the path of every entry of a list."""
    key, _, rest = path.partition(".")
    if key == "*":
        return [pick(entry, rest) if rest else entry for entry in record]
    value = record[int(key)] if isinstance(record, list) else record[key]
    return pick(value, rest) if rest else value


def as_text(value: Any) -> str:
    """Return a value as JSON writes it, a text without space around it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.strip() if isinstance(value, str) else str(value)


def format_csv(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Quoted text with a delimiter.

    Options: ``delimiter``, a comma by default; ``header: skip`` where ``columns`` rename those of the file;
    ``extra: ignore`` where lines may have more cells.
    """
    lines = (line + "\n" for _, line in read_lines(files[0], "utf-8-sig"))
    csv.field_size_limit(2**24)
    rows = csv.reader(lines, delimiter=part.options.get("delimiter", ","))
    header = [] if part.columns and part.options.get("header") != "skip" else next(rows, [])
    columns = list(part.columns) or header
    for row in filter(None, rows):
        cells = row[: len(columns)] if part.options.get("extra") == "ignore" else row
        if len(cells) != len(columns):
            raise malformed(files[0], rows.line_num, f"expected {len(columns)} columns, found {len(cells)}.")
        yield dict(zip(columns, cells, strict=True))


def format_tsv(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Lines without quoting, separated by tabs or the option ``delimiter``; ``line`` is the number of each."""
    columns = list(part.columns)
    for number, line in read_lines(files[0]):
        cells = line.split(part.options.get("delimiter", "\t"))
        if not columns:
            columns = cells
        elif number == 1 and part.options.get("header") == "skip":
            continue
        elif line and len(cells) != len(columns):
            raise malformed(files[0], number, f"expected {len(columns)} columns, found {len(cells)}.")
        elif line:
            yield {"line": number, **dict(zip(columns, cells, strict=True))}


def format_jsonl(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """A JSON object a line, whose number is ``line``."""
    for number, row in read_json_lines(files[0]):
        yield {"line": number, **row}


@lru_cache(maxsize=2)  # parts of a dataset often read the same files
def read_json_value(file: File) -> Any:
    """Return the value of a JSON file, or that of its key; it must not be changed."""
    text = "\n".join(line for _, line in read_lines(file))
    try:
        value = json.loads(text)
        return pick(value, file.key) if file.key else value
    except (json.JSONDecodeError, KeyError) as error:
        raise malformed(file, None, f"not JSON, or without the key: {error}.") from error


def format_json(files: Sequence[File], part: Part) -> Iterator[Record]:
    """A list of objects, or of lists whose entries ``columns`` name; or an object of them, by ``key``."""
    value = read_json_value(files[0])
    for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
        record = dict(zip(part.columns, entry, strict=True)) if isinstance(entry, list) else dict(entry)
        yield {"key": key, **record}


def format_lines(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Files with a line a row each, side by side; ``columns`` name the files (option ``encoding``)."""
    encoding = part.options.get("encoding", "utf-8")
    content = [[line for _, line in read_lines(file, encoding)] for file in files]
    if len({len(lines) for lines in content}) != 1:
        raise malformed(files[0], None, f"has not as many lines as {files[-1]}.")
    for number, cells in enumerate(zip(*content, strict=True), 1):
        yield {"line": number, **dict(zip(part.columns, map(str.strip, cells), strict=True))}


def format_xml(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Elements of one tag (option ``item``); attributes and the texts of children are the columns."""
    root = read_xml(files[0])
    for element in root.iter(part.options["item"]):
        yield {**element.attrib, **{child.tag: (child.text or "").strip() for child in element}}


def read_xml(file: File) -> ElementTree.Element:
    text = "\n".join(line for _, line in read_lines(file))
    try:
        return ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError as error:
        raise malformed(file, error.position[0], f"not XML: {error}.") from error


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text and, for each token, where it begins and ends in code points."""
    text = ""
    spans: list[tuple[int, int]] = []
    open_quote = False
    glued = True  # whether the next token stands directly behind the last one
    for token in tokens:
        is_quote, written = token == _QUOTE, _WRITTEN.get(token, token)
        if not glued and not {token, written} & _NO_SPACE_BEFORE and not (is_quote and open_quote):
            text += " "
        spans.append((len(text), len(text) + len(written)))
        text += written
        glued = bool({token, written} & _NO_SPACE_BEHIND) or (is_quote and not open_quote)
        open_quote ^= is_quote
    return text, spans


def written(text: str) -> str:
    """Return a text that has spaces between its tokens as it would be written."""
    return join_tokens(text.split())[0].replace("``", '"').replace("''", '"')


def tagged(tokens: Sequence[str], tags: Sequence[str]) -> Record:
    """Return a text and its mentions ``[field, start, end]`` from tokens with BIO or IOB tags."""
    text, spans = join_tokens(tokens)
    return {"text": text, "mentions": [(kind, spans[a][0], spans[b - 1][1]) for kind, a, b in entities_of(tags)]}


def entities_of(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the kind of each entity of BIO or IOB tags, its first token and the one after its last."""
    found: list[tuple[str, int, int]] = []
    previous = "O"
    for place, tag in enumerate(tags):
        if tag.startswith("I-") and previous[1:2] == "-" and previous[2:] == tag[2:]:
            found[-1] = (tag[2:], found[-1][1], place + 1)
        elif tag[1:2] == "-":
            found.append((tag[2:], place, place + 1))
        previous = tag
    return found


def format_conll(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """A token a line with its tag last, a blank line after each sentence."""
    lines = ("" if line.startswith("-DOCSTART-") else line for _, line in read_lines(files[0]))
    for is_sentence, group in groupby(map(str.split, lines), bool):
        if is_sentence:
            cells = list(group)
            yield tagged([row[0] for row in cells], [row[-1] for row in cells])


def format_bio(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Lines of ``tokens`` beside lines of their ``tags``, and others; ``columns`` name them."""
    for row in format_lines(files, part):
        tokens, tags = row["tokens"].split(), row["tags"].split()
        if len(tokens) != len(tags):
            raise malformed(files[0], None, f"has not as many tokens as tags: {row['tokens']!r}.")
        yield {**row, **tagged(tokens, tags)}


def format_marked(files: Sequence[File], part: Part) -> Iterator[Record]:
    """JSON lines whose ``text`` has terms between markers (option NAME: opening and closing one, with a space)."""
    marks = {name: mark.split() for name, mark in part.options.items()}
    for _, row in read_json_lines(files[0]):
        yield {**row, **without_marks(row["text"], marks)}


def without_marks(text: str, marks: Mapping[str, Sequence[str]]) -> Record:
    """Return a text without its markers, and what stood between them by name."""
    found: Record = {}
    for name, (opening, closing) in marks.items():
        match = re.search(rf"{re.escape(opening)}\s*(.*?)\s*{re.escape(closing)}", text)
        found[name] = match[1] if match else ""
        text = text[: match.start()] + match[1] + text[match.end() :] if match else text
    for name in marks:  # one term may stand inside the other
        for mark in (mark for pair in marks.values() for mark in pair):
            found[name] = found[name].replace(mark, "").strip()
    return {**found, "text": text}
