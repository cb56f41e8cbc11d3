"""Ends the processes of a server that was killed: ``python leftovers.py FOLDER PREFIX RUN_FOLDER``.

Ray's agents, and workers that have just begun, look for a Ray that has gone for another minute. This waits for the end
of its input, in a session of its own, where signals to the server's group do not reach it; it imports nothing large.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PATIENCE_S, _POLL_S = 5.0, 0.2


def end_leftovers(ray_folder: Path, run_folder: Path) -> "subprocess.Popen[bytes]":
    """Start what ends, soon after this process, processes with files in ``ray_folder``, and removes ``run_folder``."""
    return subprocess.Popen(  # noqa: S603  this file
        [sys.executable, "-I", "-S", __file__, str(ray_folder), sys.prefix, str(run_folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def _leftovers(folder: str, prefix: str, spared: set[int]) -> Iterator[int]:
    """Yield processes with files in a folder, of this Python or of programs that are installed with it."""
    python, real = os.path.realpath(sys.executable), os.path.realpath(folder)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            program = os.readlink(process / "exe")
            if int(process.name) in spared or not (program == python or program.startswith(prefix)):
                continue
            files = [str(file.readlink()) for file in (process / "fd").iterdir()]
            if folder.encode() in (process / "cmdline").read_bytes() or any(file.startswith(real) for file in files):
                yield int(process.name)
        except OSError:  # it has just ended, or is another user's
            continue


def _main(folder: str, prefix: str, run_folder: str) -> None:
    spared = {os.getpid(), os.getppid()}
    sys.stdin.buffer.read()
    begun = time.monotonic()
    while (left := list(_leftovers(folder, prefix, spared))) and time.monotonic() < begun + 2 * _PATIENCE_S:
        if time.monotonic() > begun + _PATIENCE_S:
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        time.sleep(_POLL_S)
    shutil.rmtree(run_folder, ignore_errors=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
