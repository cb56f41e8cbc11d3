"""Waiting, and CPU time of a call, for tests of what may not grow faster than a text.

The least of several counts: a machine is shared, and other work costs a call its caches and its clock.
"""

import time
from collections.abc import Callable

_TRIES = 3


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is so; fail where it is not in time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def seconds(call: Callable[[], object]) -> float:
    """Return the CPU time of this thread that a call takes; a timer makes the clock of the process coarse."""
    begun = time.thread_time()
    call()
    return time.thread_time() - begun


def is_within(most_s: float, call: Callable[[], object]) -> bool:
    """Return whether a call takes no longer than a bound, at best."""
    return any(seconds(call) < most_s for _ in range(_TRIES))


def is_below(most: float, call: Callable[[], object], other: Callable[[], object]) -> bool:
    """Return whether a call takes less than so many times what another does right before it, at best."""
    return any(seconds(other) * most > seconds(call) for _ in range(_TRIES))
