"""Log lines written on a thread of their own, so that no request waits for whoever reads them."""

import atexit
import json
import os
import select
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from queue import Full, Queue

_MOST_LINES = 1000  # that wait, of some 250 bytes each
_AT_EXIT_S = 1.0


class LogWriter:
    """A bounded queue of lines for standard error.

    Lines that find it full (a pipe that nobody reads, a stopped terminal) or that cannot be written (a full disk) are
    dropped and counted. Once writing works again, a line says how many were dropped.
    """

    def __init__(self, most_lines: int = _MOST_LINES) -> None:
        self._lines: Queue[str] = Queue(most_lines)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._num_reported = 0
        self.num_dropped = 0
        atexit.register(self.flush, _AT_EXIT_S)

    def write(self, line: str) -> None:
        """Take a line without its end, from any thread; never waits for it to be written."""
        try:
            self._lines.put_nowait(line)
        except Full:
            self._drop()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mqan-log", daemon=True)
                self._thread.start()

    log = debug = info = warning = error = critical = write  # as structlog asks for it

    def flush(self, timeout_s: float) -> bool:
        with self._lines.all_tasks_done:
            return self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, timeout_s)

    def _run(self) -> None:
        while True:
            line, num_dropped = self._lines.get(), self.num_dropped
            if not _write(line):
                self._drop()
            elif num_dropped > self._num_reported and _write(_line_of_dropped(num_dropped - self._num_reported)):
                self._num_reported = num_dropped
            self._lines.task_done()

    def _drop(self) -> None:
        with self._lock:
            self.num_dropped += 1


def _line_of_dropped(num_lines: int) -> str:
    values = {"lines": num_lines, "event": "log lines dropped", "level": "warning"}
    return json.dumps(values | {"timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z")})


def _write(line: str) -> bool:
    stream, text = sys.stderr, f"{line}\n"
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):  # none, closed, or not of the operating system
        with suppress(AttributeError, OSError, ValueError):
            stream.write(text)
            stream.flush()
            return True
        return False
    # Not through the stream: it has a lock, which whoever else writes to it, or ends the process, would wait for.
    content = text.encode("utf-8", "backslashreplace")
    with suppress(OSError):
        while content:
            try:
                content = content[os.write(descriptor, content) :]
            except BlockingIOError:  # the descriptor was made non-blocking elsewhere
                select.select([], [descriptor], [])
    return not content


WRITER = LogWriter()
"""The log of this process."""
