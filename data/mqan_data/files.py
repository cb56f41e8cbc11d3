"""Files of datasets, packed or not, and errors that say where, in the same words for every format."""

import gzip
import hashlib
import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from mqan_core.errors import MqanError

_IN_ARCHIVE = re.compile(r"(?P<folder>(?:[^()]*/)?)(?P<archive>[^()/]+)\((?P<member>[^()]+)\)")


class DatasetError(MqanError):
    """A dataset file does not hold what its format says; the message gives file and line."""


class MissingFileError(DatasetError, FileNotFoundError):
    """A dataset file is not there; the message says where it was looked for and how to get it."""


@dataclass(frozen=True, slots=True)
class File:
    """A file or folder of a dataset, or a member of an archive (zip or tar), which is read without unpacking it."""

    path: Path
    member: str = ""
    key: str = ""  # which part of the content is meant; its format says how

    def __str__(self) -> str:
        return f"{self.path}({self.member})" if self.member else str(self.path)


def find_file(folder: Path, spec: str) -> File:
    """Return the first file of ``NAME or ARCHIVE(MEMBER)#KEY`` that is there, also gzipped, or beside its archive."""
    names, _, key = spec.partition("#")
    places: list[tuple[str, str]] = []
    for name in names.split(" or "):
        if (match := _IN_ARCHIVE.fullmatch(name)) is None:
            places.append((name.removesuffix(".gz"), ""))
        else:
            within, member = match["folder"], match["member"]
            beside = dict.fromkeys((within + member.rpartition("/")[2], within + member), "")
            places += [*beside.items(), (within + match["archive"], member)]
    for place, member in places:
        for name in (place, f"{place}.gz"):
            if (folder / name).exists():
                return File(folder / name, member, key)
    *others, last = (place for place, _ in places)
    wanted = f"{', '.join(others)} or {last}" if others else last
    hint = f"Give the folder that holds {folder.name}/ with `--data DIR`."
    raise MissingFileError(f"found no {wanted} in {folder}. {hint}")


def malformed(file: Path | File, line: int | None, what: str) -> DatasetError:
    return DatasetError(f"{file}: {what}" if line is None else f"{file}:{line}: {what}")


@contextmanager
def intact(file: Path | File) -> Iterator[None]:
    """Turn what a damaged archive or a wrong encoding raises into a DatasetError that names the file."""
    damaged = "damaged or incomplete ({}); delete it and download it again."
    try:
        yield
    except UnicodeDecodeError as error:
        raise malformed(file, None, f"not {error.encoding}: {error.reason}.") from error
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise malformed(file, None, damaged.format(error)) from error
    except OSError as error:
        if error.errno is None:  # what gzip and bz2 say
            raise malformed(file, None, damaged.format(error)) from error
        raise


@contextmanager
def _open(file: File) -> Iterator[IO[bytes]]:
    path, member = file.path, file.member
    with ExitStack() as opened:
        try:
            if not member:
                plain = gzip.open if path.suffix == ".gz" else open
                content: Any = opened.enter_context(plain(path, "rb"))
            elif zipfile.is_zipfile(path):
                content = opened.enter_context(opened.enter_context(zipfile.ZipFile(path)).open(member))
            else:
                content = opened.enter_context(tarfile.open(path)).extractfile(member)
        except KeyError as error:
            raise malformed(file, None, "is not in the archive.") from error
        if content is None:  # a folder or a device of a tar archive
            raise malformed(file, None, "is no file of the archive.")
        yield content


def read_lines(file: Path | File, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield line numbers from 1 and lines without their newline."""
    file = File(file) if isinstance(file, Path) else file
    with intact(file), _open(file) as content:
        for number, line in enumerate(content, 1):
            try:
                yield number, line.decode(encoding).rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise malformed(file, number, f"not {encoding}: {error.reason}.") from error


def read_texts(file: File, pattern: str, encoding: str = "utf-8") -> Iterator[tuple[re.Match[str], str]]:
    """Yield the texts of a folder, by name, or of a tar archive, in its order, whose names match."""
    found = False
    with intact(file):
        for name, read in _members(file.path):
            match = re.fullmatch(pattern, name)
            if match:
                found = True
                yield match, read().decode(encoding)
    if not found:
        raise malformed(file, None, f"holds no files {pattern}.")


def _members(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    if path.is_dir():
        yield from ((str(p.relative_to(path)), p.read_bytes) for p in sorted(path.rglob("*")) if p.is_file())
        return
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content:
                yield member.name, content.read


def read_json_lines(file: Path | File) -> Iterator[tuple[int, dict[str, Any]]]:
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


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_field(file: Path | File, line: int, row: dict[str, Any], field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        found = f"it is {type(value).__name__}" if field in row else "it is missing"
        raise malformed(file, line, f"`{field}` must be a string; {found}.")
    return value


def in_words(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} ({count:,})" for reason, count in dropped.items())
