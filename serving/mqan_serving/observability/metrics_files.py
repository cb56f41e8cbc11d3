"""Files in which the processes of a machine share their metrics, and which may fail at any time.

They have the format of prometheus_client's own, which maps them into memory: a full disk, or a file that somebody cuts
off, then ends the process by SIGBUS. Here each number is written by a call that can be refused. What is refused is kept
in memory, said once, and written as soon as it can be; what cannot be read is left out, and said once, too. Without it
the leftovers of a dead process made ``/metrics`` fail, too: ``tests/serving/test_metrics_files.py``.
"""

import json
import logging
import os
import re
import stat
import struct
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from prometheus_client.metrics_core import Metric
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.values import MutexValue

_NAME = re.compile(r"(?:counter|histogram|gauge_live(?:sum|max))_([0-9]{1,9})\.db")
_MAX_BYTES = 16 * 1024 * 1024  # of a file; a process's have under 64 KiB
_TRY_AGAIN_S = 1.0
_HEADER = struct.Struct("i4x")  # bytes of the file that are used
_NUMBER = struct.Struct("dd")  # value, time
# What reading a file that is none of these raises.
_UNREADABLE = (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError, struct.error)
_log = logging.getLogger("mqan.metrics")


class MetricsFiles:
    """The files of one process, and a view of those of the others.

    Args:
        folder: where they are; made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, _File] = {}
        self._lock = Lock()
        self._problem: str | None = None
        self._unreadable: set[str] = set()

    def write(self, prefix: str, key: str, value: float) -> None:
        """Write a number of this process; one that cannot be written is kept."""
        with self._lock:
            file = self._files.get(prefix)
            if file is None:
                file = self._files[prefix] = _File(self._folder / f"{prefix}_{os.getpid()}.db")
            try:
                file.write(key, value)
            except OSError as error:
                self._note(f"cannot write {file.path}: {error.strerror}")

    def merge(self) -> list[Metric] | None:
        """Return the sums of all processes of the machine, or None where this process's own are not among them."""
        self._forget_ended_processes()
        with self._lock:
            lost = [str(file.path) for file in self._files.values() if not file.is_whole()]
            if lost:
                self._note(f"{lost[0]} is not whole")
                return None
            self._note(None)
        paths = [str(path) for path in self._paths() if self._is_readable(path)]
        try:
            return list(MultiProcessCollector.merge(paths))  # type: ignore[no-untyped-call]
        except _UNREADABLE as error:  # one has changed since it was looked at
            _log.warning("metrics of other processes are left out this time: %s", error)
            return None

    def _note(self, problem: str | None) -> None:
        if problem is not None and self._problem is None:
            _log.error("metrics of other processes are left out: %s; make room in the folder, or make it anew", problem)
        elif problem is None and self._problem is not None:
            _log.warning("metrics of all processes are told again")
        self._problem = problem

    def _paths(self) -> list[Path]:
        with suppress(OSError):
            return sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))
        return []

    def _is_readable(self, path: Path) -> bool:
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
                raise ValueError("not a plain file of a fitting size")
            if status.st_size:  # else it has just been made
                _check(path)
        except FileNotFoundError:
            return False  # a process has ended meanwhile
        except _UNREADABLE as error:
            if path.name not in self._unreadable:
                self._unreadable.add(path.name)
                _log.warning("metrics: %s is left out: %s", path, error)
            return False
        return status.st_size > 0

    def _forget_ended_processes(self) -> None:
        names = [found for path in self._paths() if (found := _NAME.fullmatch(path.name)) and "_live" in path.name]
        for process in {int(found[1]) for found in names}:
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                with suppress(OSError):  # another replica was faster, or nothing can be removed
                    mark_process_dead(process, self._folder)  # type: ignore[no-untyped-call]
            except (OverflowError, PermissionError):
                continue


class _File:
    """Numbers by their keys, written in place; the file is made when the first is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._places: dict[str, int] = {}
        self._values: dict[str, float] = {}
        self._used = _HEADER.size
        self._is_stale = False
        self._try_again_at = 0.0

    def write(self, key: str, value: float) -> None:
        """Write a number; after a failure all of them, but not at once."""
        self._values[key] = value
        if self._is_stale and monotonic() < self._try_again_at:
            return
        keys = list(self._values) if self._is_stale else [key]
        self._is_stale, self._try_again_at = True, monotonic() + _TRY_AGAIN_S
        for changed in keys:
            self._write(changed, self._values[changed])
        self._is_stale = False

    def is_whole(self) -> bool:
        """Return whether the file is where it was made and has all that was written, once that has been tried again."""
        try:
            if not self._is_there():
                self._make_anew()
            for key in self._values if self._is_stale else ():
                self._write(key, self._values[key])
        except OSError:
            self._is_stale = True
            return False
        self._is_stale = False
        return True

    def _is_there(self) -> bool:
        if self._descriptor is None:
            return False
        with suppress(FileNotFoundError):
            there, own = self.path.lstat(), os.fstat(self._descriptor)
            return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino) and own.st_size >= self._used
        return False

    def _make_anew(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._places, self._used, self._is_stale = None, {}, _HEADER.size, True

    def _write(self, key: str, value: float) -> None:
        if self._descriptor is None:
            self._open()
        place = self._places.get(key)
        if place is not None:
            _write_all(self._descriptor, _NUMBER.pack(value, 0.0), place)
            return
        encoded = key.encode()
        padded = encoded + b" " * (8 - (len(encoded) + 4) % 8)
        record = struct.pack(f"i{len(padded)}sdd", len(encoded), padded, value, 0.0)
        _write_all(self._descriptor, record, self._used)
        _write_all(self._descriptor, _HEADER.pack(self._used + len(record)), 0)  # from here on it is read
        self._used += len(record)
        self._places[key] = self._used - _NUMBER.size

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            self.path.unlink()  # of a process of the same number that has ended
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, 0o600)


def _write_all(descriptor: int | None, content: bytes, place: int) -> None:
    assert descriptor is not None  # noqa: S101  opened before
    written = os.pwrite(descriptor, content, place)
    if written < len(content):
        raise OSError(28, "No space left on device")


def _check(path: Path) -> None:
    """Read a file as it will be read.

    Raises:
        Exception: one of ``_UNREADABLE``: it is not such a file.
    """
    for key, _, _, _ in MmapedDict.read_all_values_from_file(path):  # type: ignore[no-untyped-call]
        family, name, labels, text = json.loads(key)
        if not all(isinstance(part, str) for part in (family, name, text, *labels, *labels.values())):
            raise ValueError("a key is none of a metric's")


def shared_values(files: MetricsFiles) -> type[MutexValue]:
    """Return the class of numbers that are also in files: what prometheus_client's ``values.ValueClass`` is to be."""

    class SharedValue(MutexValue):
        """A number of this process, in memory and in a file."""

        def __init__(
            self, typ: str, family: str, name: str, labels: Any, values: Any, text: str, multiprocess_mode: str = ""
        ) -> None:
            super().__init__(typ, family, name, labels, values, text)  # type: ignore[no-untyped-call]
            self._prefix = f"{typ}_{multiprocess_mode}" if multiprocess_mode else typ
            self._key = mmap_key(family, name, labels, values, text)
            files.write(self._prefix, self._key, 0.0)

        def inc(self, amount: float) -> None:
            with self._lock:
                self._value += amount
                files.write(self._prefix, self._key, self._value)

        def set(self, value: float, timestamp: float | None = None) -> None:
            with self._lock:
                self._value = value
                files.write(self._prefix, self._key, self._value)

    return SharedValue
