"""Opening dataset files, and the errors that every reader gives in the same words."""

import gzip
import json
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mqan_training.errors import DatasetError, MissingFileError


def find_file(task: str, folder: Path, *names: str) -> Path:
    """Return the first of the named files that is in the folder.

    Raises:
        MissingFileError: none of them is.
    """
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise missing_file(task, folder, *names)


def missing_file(task: str, folder: Path, *names: str) -> MissingFileError:
    """Build the error for a task whose file is in none of the accepted places."""
    wanted = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return MissingFileError(
        f"{task}: found no {wanted} in {folder}. Download the official files with `mqan data get {task}`, "
        f"or give the folder that holds {folder.name}/ with `--data DIR`."
    )


def malformed(path: Path | str, line: int | None, what: str) -> DatasetError:
    """Build the error for a row that is not what the format says."""
    return DatasetError(f"{path}: {what}" if line is None else f"{path}:{line}: {what}")


def check_split(task: str, split: str, splits: Iterable[str]) -> None:
    """Raise ValueError unless the task has the split."""
    splits = tuple(splits)
    if split not in splits:
        raise ValueError(f"{task} has no split {split!r}; it has {', '.join(splits)}.")


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield line numbers from 1 and lines without their newline."""
    number = 0
    with path.open(encoding=encoding, newline="\n") as file:
        try:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise malformed(path, number + 1, f"not {encoding}: {error.reason}.") from error


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line numbers from 1 and the JSON object of each line; blank lines are passed over."""
    for number, line in read_lines(path):
        if line.strip():
            yield number, parse_json_object(path, number, line)


def parse_json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    """Parse one line that has to be a JSON object."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise malformed(path, number, f"not JSON: {error.msg} at column {error.colno}.") from error
    if not isinstance(row, dict):
        raise malformed(path, number, f"expected a JSON object, found {type(row).__name__}.")
    return row


@contextmanager
def compressed(path: Path) -> Iterator[None]:
    """Turn what a damaged archive raises into a DatasetError that names it."""
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise malformed(path, None, f"damaged or incomplete ({error}); delete it and download it again.") from error
    except UnicodeDecodeError as error:
        raise malformed(path, None, f"not {error.encoding}: {error.reason}.") from error


def read_json(path: Path) -> Any:
    """Parse a whole JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise malformed(path, error.lineno, f"not JSON: {error.msg} at column {error.colno}.") from error
    except UnicodeDecodeError as error:
        raise malformed(path, None, f"not utf-8: {error.reason}.") from error


def text_field(path: Path, line: int, row: dict[str, Any], field: str) -> str:
    """Return a field that has to be a string."""
    value = row.get(field)
    if not isinstance(value, str):
        found = f"it is {type(value).__name__}" if field in row else "it is missing"
        raise malformed(path, line, f"`{field}` must be a string; {found}.")
    return value


def count_dropped(dropped: Counter[str] | None, reason: str) -> None:
    """Count a row or field that is left out, where somebody wants to know."""
    if dropped is not None:
        dropped[reason] += 1
