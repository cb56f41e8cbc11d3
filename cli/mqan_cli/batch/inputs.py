"""The rows that ``mqan batch`` asks about: of tables, of lines of JSON, and whole texts; read one by one."""

import csv
import glob
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mqan_cli.errors import CommandError
from mqan_cli.files import STANDARD_INPUT

SUFFIX: Final = ".partial"  # of what is answered, after the name of the output; no input
_TEXT: Final = "text"  # the column that is asked about if none is named
_PLACES: Final = re.compile(r"\{([^{}]+)\}")
_LINES: Final = (".jsonl", ".ndjson")
_TABLES: Final = (".csv", ".tsv", ".parquet", *_LINES)
_GROUP_ROWS: Final = 256  # of Parquet, in memory at a time

TextOption = Annotated[str | None, typer.Option("--text", "-t", help="A column, or '{subject} {body}'.")]


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its columns, what is asked about, and why nothing can be, where nothing can."""

    values: dict[str, Any]
    text: str = ""
    error: str | None = None


class Rows:
    """The rows of files, in their order; each iteration reads them anew.

    ``template`` is a column, or a text with columns in braces; ``taken`` are columns that the input may not have.
    """

    def __init__(self, inputs: Sequence[str], template: str | None, taken: Sequence[str]) -> None:
        named = template or _TEXT
        self.template = named if _PLACES.search(named) else f"{{{named}}}"
        self._has_header = template is not None  # on standard input
        self._taken = set(taken)
        self._files = [name for given in inputs for name in _find(given)]
        self._folder = Path.cwd()  # other processes may have another

    def count(self) -> int | None:
        if STANDARD_INPUT in self._files:
            return None
        return sum(sum(1 for _ in self._read(name)) if _kind(name) in _TABLES else 1 for name in self._files)

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows; a file that cannot be read, or whose first row has not the right columns, ends it."""
        for name in self._files:
            is_first = True
            try:
                for row in self._read(name):
                    problem = row.error or self._wrong_columns(row)
                    if is_first and problem is not None and row.error is None:
                        raise CommandError(f"{name}: {problem}")
                    is_first = False
                    yield self._told(row) if problem is None else Row(row.values, "", problem)
            except (OSError, csv.Error) as error:
                raise CommandError(f"cannot read {name}: {error}") from None

    def _read(self, name: str) -> Iterator[Row]:
        path, kind, is_file = self._folder / name, _kind(name), name != STANDARD_INPUT
        if kind == ".parquet":
            yield from _parquet(path)
        elif is_file and kind not in _TABLES:
            text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
            yield Row({"file": name}, text, None if text.strip() else "there is no text")
        else:
            how: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
            with open(path if is_file else 0, closefd=is_file, **how) as stream:
                first = stream.readline()
                lines = chain([first], stream)
                if kind in _LINES or (not is_file and first.lstrip().startswith("{")):
                    yield from _json_lines(lines)
                elif is_file or self._has_header:
                    yield from _table(lines, max(",;\t", key=first.count))
                else:
                    yield from (Row({_TEXT: line.rstrip("\r\n")}) for line in lines if line.strip())

    def _wrong_columns(self, row: Row) -> str | None:
        if both := ", ".join(name for name in row.values if name in self._taken):
            return f"the output has {both}, too: rename these columns, or the questions (NAME=QUESTION) or fields"
        missing = [name for name in _PLACES.findall(self.template) if name not in row.values]
        if missing and not row.text:
            return f"there is no column {missing[0]}; there are {', '.join(row.values)}: give --text"
        return None

    def _told(self, row: Row) -> Row:
        text = row.text or _PLACES.sub(lambda place: _said(row.values[place[1]]), self.template)
        if not row.text and not any(_said(row.values[name]).strip() for name in _PLACES.findall(self.template)):
            return Row(row.values, "", "there is no text")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return Row(row.values, "", f"the text is not UTF-8 at character {error.start}")
        return Row(row.values, text)


def _find(given: str) -> list[str]:
    path = Path(given)
    if given == STANDARD_INPUT or path.is_file():
        return [given]
    found = path.rglob("*") if path.is_dir() else map(Path, glob.glob(given, recursive=True))
    names = sorted(str(p) for p in found if p.is_file() and p.suffix != SUFFIX and not p.name.startswith("."))
    if not names:
        raise typer.BadParameter(f"there is no file {given}", param_hint="INPUT")
    return names


def _kind(name: str) -> str:
    return Path(name).suffix.lower()


def _table(lines: Iterable[str], delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(lines, delimiter=delimiter)
    header = next(reader, [])
    if twice := [name for name in header if header.count(name) > 1]:
        raise csv.Error(f"two columns have the name {twice[0]!r}")
    for cells in filter(None, reader):
        more = len(cells) - len(header)
        values = dict(zip(header, cells + [""] * -more, strict=False))
        yield Row(values, "", f"the row has {more} more cells than the header" if more > 0 else None)


def _json_lines(lines: Iterable[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                values = json.loads(line)
            except (ValueError, RecursionError):
                values = None
            yield Row(values) if isinstance(values, dict) else Row({}, "", f"line {number} is no object of JSON")


def _parquet(path: Path) -> Iterator[Row]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        for group in file.iter_batches(_GROUP_ROWS):
            yield from (Row(json.loads(json.dumps(values, default=str))) for values in group.to_pylist())


def _said(value: Any) -> str:
    return value or "" if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
