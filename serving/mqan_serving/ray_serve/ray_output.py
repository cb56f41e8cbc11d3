"""The output of Ray's own processes, of which only what went wrong is printed."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_PRINTING = "ray_print_logs"  # what Ray calls its printing of the lines of its processes
_HEADER = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")
_HIDDEN_LEVELS: Final = {"DEBUG", "INFO"}
# What Ray warns of though it is meant: nobody beyond this machine reaches the replicas, Ray Serve ends with its server.
_MEANT: Final = ("won't accept connections from HAProxy on other nodes", "because it was killed by `ray.kill`")

Batch = Mapping[str, Any]  # some lines of one process, as Ray hands them on


class ChatterFilter:
    """Passes lines on: those of the service, and those of Ray from WARNING up."""

    def __init__(self) -> None:
        self._is_hiding: dict[Any, bool] = {}  # by process: whether its last record is hidden

    def lines_of(self, process: Any, lines: Sequence[str]) -> list[str]:
        """Return which of the next lines of a process are printed; indented ones belong to the record before them."""
        kept = []
        is_hiding = self._is_hiding.get(process, False)
        for line in lines:
            if any(words in line for words in _MEANT):
                is_hiding = True
            elif header := _HEADER.match(line):
                is_hiding = header[1] in _HIDDEN_LEVELS
            elif line.strip() and not line.startswith((" ", "\t", "•")):
                is_hiding = False
            if not is_hiding:
                kept.append(line)
        self._is_hiding[process] = is_hiding
        return kept

    def wrap(self, handle: Callable[..., None]) -> Callable[..., None]:
        """Return what hands on the lines of a batch that are to be printed."""

        def handle_rest(batch: Batch, **how: Any) -> None:
            kept = self.lines_of(batch.get("pid"), batch.get("lines", ()))
            if kept:
                handle({**batch, "lines": kept}, **how)

        return handle_rest


def hide_chatter() -> None:
    """Let Ray print no more of its processes than what the filter passes on; call it once Ray is connected."""
    from ray._private import worker
    from ray._private.ray_logging import global_worker_stdstream_dispatcher as dispatcher

    chatter = ChatterFilter()
    dispatcher.handlers = [
        (name, chatter.wrap(handle) if name == _PRINTING else handle) for name, handle in dispatcher.handlers
    ]
    worker.print_to_stdstream = chatter.wrap(worker.print_to_stdstream)  # errors of actors go past the handlers
