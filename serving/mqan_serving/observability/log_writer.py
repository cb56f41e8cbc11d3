"""Writes log lines so that nobody ever waits for who reads them."""

import atexit
import json
import os
import select
import sys
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime

_MAX_WAITING_BYTES = 256 * 1024  # some 1,000 lines
_AT_EXIT_S = 1.0


class LogWriter:
    """Writes lines to standard error, whatever that is by then, on a thread of its own.

    A pipe that is not read, a full disk, a stopped terminal: the thread waits or fails, and callers do not. Lines wait
    for it up to a bound; those beyond it, and those that could not be written, are dropped and counted. Once lines are
    written again, one of them says how many were dropped.

    Args:
        max_waiting_bytes: most characters of the lines that wait.
    """

    def __init__(self, max_waiting_bytes: int = _MAX_WAITING_BYTES) -> None:
        self._max_waiting_bytes = max_waiting_bytes
        self._changed = threading.Condition()
        self._lines: deque[str] = deque()
        self._num_waiting_bytes = 0
        self._is_writing = False
        self._thread: threading.Thread | None = None
        self._num_dropped = 0
        self._num_told = 0
        atexit.register(self.flush, _AT_EXIT_S)

    @property
    def num_dropped(self) -> int:
        """Lines that nobody will see."""
        return self._num_dropped

    def write(self, line: str) -> None:
        """Take a line without its end, from any thread; never waits for it to be written."""
        with self._changed:
            if self._num_waiting_bytes + len(line) > self._max_waiting_bytes:
                self._num_dropped += 1
                return
            self._lines.append(line)
            self._num_waiting_bytes += len(line)
            if self._thread is None or not self._thread.is_alive():  # the latter in a process that was forked
                self._thread = threading.Thread(target=self._run, name="mqan-log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was taken is written, at most so long; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines and not self._is_writing, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
                lines = [*self._lines]
                self._lines.clear()
                self._num_waiting_bytes = 0
                self._is_writing = True
                num_dropped = self._num_dropped
            if num_dropped > self._num_told:
                lines.append(_line_of_dropped(num_dropped - self._num_told))
            is_written = _write("".join(f"{line}\n" for line in lines))
            with self._changed:
                if is_written:
                    self._num_told = num_dropped
                else:
                    self._num_dropped += len(lines) - (num_dropped > self._num_told)
                self._is_writing = False
                self._changed.notify_all()


def _line_of_dropped(num_lines: int) -> str:
    values = {"lines": num_lines, "event": "log lines dropped", "level": "warning"}
    return json.dumps(values | {"timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z")})


def _write(text: str) -> bool:
    """Write to standard error; return whether all of it is."""
    stream = sys.stderr
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):  # none, closed, or not of the operating system
        with suppress(AttributeError, OSError, ValueError):
            stream.write(text)
            stream.flush()
            return True
        return False
    # Not through the stream: it has a lock, which whoever else writes to it, or ends the process, would wait for.
    content = memoryview(text.encode("utf-8", "backslashreplace"))
    try:
        while content:
            try:
                content = content[os.write(descriptor, content) :]
            except BlockingIOError:  # somebody has made it so
                waiting = select.poll()
                waiting.register(descriptor, select.POLLOUT)
                waiting.poll()
    except OSError:
        return False
    return True
