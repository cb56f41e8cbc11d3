"""Whether a server lives, whether it should be sent requests, and what takes longer than it may."""

import faulthandler
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import structlog


class State(StrEnum):
    """Stage in the life of a server."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"


class Health:
    """The state of one server process.

    It only moves forward: starting, ready, draining; a failure can come at any time and is final.
    """

    def __init__(self) -> None:
        self.state = State.STARTING

    @property
    def is_ready(self) -> bool:
        return self.state is State.READY

    @property
    def is_live(self) -> bool:
        return self.state is not State.FAILED

    def set_ready(self) -> None:
        if self.state is State.STARTING:
            self.state = State.READY

    def set_draining(self) -> None:
        if self.state is not State.FAILED:
            self.state = State.DRAINING

    def set_failed(self) -> None:
        self.state = State.FAILED


@dataclass(frozen=True, slots=True)
class _Work:
    name: str
    begun: float


class Watch:
    """Watches over rounds of the engine, the reading of texts, and the event loop.

    ``most_s``: seconds that any of them may take; of the event loop, seconds of CPU of each thread.
    """

    def __init__(self, most_s: float, num_threads: int = 1) -> None:
        self._most_s = most_s
        self._most_cpu_s = most_s * num_threads
        self._works: dict[int, _Work] = {}
        self._told: _Work | None = None

    @contextmanager
    def over(self, name: str) -> Iterator[None]:
        work = _Work(name, time.monotonic())
        self._works[id(work)] = work
        try:
            yield
        finally:
            del self._works[id(work)]

    @property
    def complaint(self) -> str | None:
        """What takes too long, in a sentence; None where nothing does."""
        work = self._longest()
        seconds = 0.0 if work is None else time.monotonic() - work.begun
        return f"{work.name} has taken {seconds:.0f} s." if work is not None and seconds > self._most_s else None

    def look(self) -> None:
        """Log what takes too long, once.

        If the event loop does not call this again in time, the thread that is busy then writes where it is to standard
        error, whether or not it holds the interpreter's lock. (All threads could be written, too, but not safely.)
        """
        if sys.__stderr__ is not None:
            faulthandler.register(signal.SIGVTALRM, sys.__stderr__, all_threads=False)
            signal.setitimer(signal.ITIMER_VIRTUAL, self._most_cpu_s)
        work = self._longest()
        if self.complaint is not None and work is not self._told:
            self._told = work
            structlog.get_logger().error("takes too long", reason=self.complaint)

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def _longest(self) -> _Work | None:
        return min(list(self._works.values()), key=lambda work: work.begun, default=None)
