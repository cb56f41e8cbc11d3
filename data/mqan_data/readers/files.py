"""Opening dataset files, packed or not, and the errors that every reader gives in the same words."""

import gzip
import json
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from mqan_data.errors import DatasetError, MissingFileError


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside an archive (zip or tar, compressed in any way), which is read without unpacking it."""

    archive: Path
    name: str

    def __str__(self) -> str:
        """Return how error messages call it."""
        return f"{self.archive}({self.name})"


def find_file(task: str, folder: Path, *names: str) -> Path:
    """Return the first of the named files that is in the folder.

    Raises:
        MissingFileError: none of them is.
    """
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise missing_file(task, folder, *names)


def find_source(task: str, folder: Path, name: str, *, archive: str, member: str) -> Path | Member:
    """Return a file of the folder: by its own name, unpacked from its archive, or still in it.

    Raises:
        MissingFileError: neither the file nor the archive is there.
    """
    path = find_file(task, folder, name, member, archive)
    return Member(path, member) if path == folder / archive else path


def missing_file(task: str, folder: Path, *names: str) -> MissingFileError:
    """Build the error for a task whose file is in none of the accepted places."""
    wanted = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return MissingFileError(
        f"{task}: found no {wanted} in {folder}. Download the official files with `mqan data get {task}`, "
        f"or give the folder that holds {folder.name}/ with `--data DIR`."
    )


def malformed(file: Path | Member, line: int | None, what: str) -> DatasetError:
    """Build the error for a row that is not what the format says."""
    return DatasetError(f"{file}: {what}" if line is None else f"{file}:{line}: {what}")


def check_split(task: str, split: str, splits: Iterable[str]) -> None:
    """Raise ValueError unless the task has the split."""
    splits = tuple(splits)
    if split not in splits:
        raise ValueError(f"{task} has no split {split!r}; it has {', '.join(splits)}.")


@contextmanager
def intact(file: Path | Member) -> Iterator[None]:
    """Turn what a damaged archive or a wrong encoding raises into a DatasetError that names the file."""
    damaged = "damaged or incomplete ({}); delete it and download it again."
    try:
        yield
    except UnicodeDecodeError as error:
        raise malformed(file, None, f"not {error.encoding}: {error.reason}.") from error
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise malformed(file, None, damaged.format(error)) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise malformed(file, None, damaged.format(error)) from error  # what gzip and bz2 say


@contextmanager
def _open(file: Path | Member) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed."""
    if isinstance(file, Path) and file.suffix == ".gz":
        with gzip.open(file) as unzipped:
            yield cast(IO[bytes], unzipped)
    elif isinstance(file, Path):
        with file.open("rb") as content:
            yield content
    elif zipfile.is_zipfile(file.archive):
        with zipfile.ZipFile(file.archive) as zipped:
            if file.name not in zipped.namelist():
                raise malformed(file, None, "is not in the archive.")
            with zipped.open(file.name) as content:
                yield content
    else:
        with tarfile.open(file.archive) as archive:
            extracted = archive.extractfile(file.name) if file.name in archive.getnames() else None
            if extracted is None:
                raise malformed(file, None, "is not in the archive.")
            with extracted as content:
                yield content


def read_lines(file: Path | Member, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield line numbers from 1 and lines without their newline."""
    with intact(file), _open(file) as content:
        for number, line in enumerate(content, 1):
            try:
                yield number, line.decode(encoding).rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise malformed(file, number, f"not {encoding}: {error.reason}.") from error


def read_json_lines(file: Path | Member) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line numbers from 1 and the JSON object of each line; blank lines are passed over."""
    for number, line in read_lines(file):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise malformed(file, number, f"not JSON: {error.msg} at column {error.colno}.") from error
        if not isinstance(row, dict):
            raise malformed(file, number, f"expected a JSON object, found {type(row).__name__}.")
        yield number, row


def read_table(file: Path | Member, *columns: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield line numbers and the named columns of tab-separated text with a header and without quoting."""
    places: list[int] = []
    num_columns = 0
    for number, line in read_lines(file):
        cells = line.split("\t")
        if number == 1:
            if not set(columns) <= set(cells):
                raise malformed(file, 1, f"expected the columns {', '.join(columns)} in the header, found {line!r}.")
            places, num_columns = [cells.index(column) for column in columns], len(cells)
        elif len(cells) != num_columns:
            raise malformed(file, number, f"expected {num_columns} columns, found {len(cells)}.")
        else:
            yield number, tuple(cells[place] for place in places)


def read_json(path: Path) -> Any:
    """Parse a whole JSON file."""
    with intact(path):
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise malformed(path, error.lineno, f"not JSON: {error.msg} at column {error.colno}.") from error


def text_field(file: Path | Member, line: int, row: dict[str, Any], field: str) -> str:
    """Return a field that has to be a string."""
    value = row.get(field)
    if not isinstance(value, str):
        found = f"it is {type(value).__name__}" if field in row else "it is missing"
        raise malformed(file, line, f"`{field}` must be a string; {found}.")
    return value


def count_dropped(dropped: Counter[str] | None, reason: str, num_rows: int = 1) -> None:
    """Count rows or fields that are left out, where somebody wants to know."""
    if dropped is not None and num_rows:
        dropped[reason] += num_rows


def in_words(dropped: Mapping[str, int]) -> str:
    """Return what ``count_dropped`` counted as ``reason (count), reason (count)``."""
    return ", ".join(f"{reason} ({count:,})" for reason, count in dropped.items())
