"""Denormal numbers count as 0 inside the block only."""

import threading

import numpy as np
import pytest

from mqan_runtime import session
from mqan_runtime.session import denormals_as_zero

LEAST = np.array([1e-38], np.float32)


def halves() -> bool:
    """Whether a quarter of the least normal numbers is anything."""
    return bool((LEAST * np.float32(0.25))[0])


@pytest.mark.skipif(session._libm is None, reason="does nothing here: for glibc on x86-64")
def test_they_are_0_inside_in_this_thread_alone() -> None:
    inside, looked = threading.Event(), threading.Event()
    elsewhere: list[bool] = []

    def look() -> None:
        inside.wait(10)
        elsewhere.append(halves())
        looked.set()

    thread = threading.Thread(target=look)
    thread.start()  # before, since a new thread begins as the one that starts it
    assert halves()
    with denormals_as_zero():
        inside.set()
        assert looked.wait(10)
        assert not halves()
        with denormals_as_zero():
            assert not halves()
        assert not halves()
    thread.join()
    assert halves()
    assert elsewhere == [True]


def test_an_error_ends_it() -> None:
    with pytest.raises(ValueError, match="within"), denormals_as_zero():
        raise ValueError("within")
    assert halves()
