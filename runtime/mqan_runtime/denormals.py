"""Count numbers below float32's normal form as 0 while a graph runs.

A trained model's attention is full of them, and a CPU takes many times as long for each. onnxruntime's own setting for
it changes the thread that opens a session, for good and for whatever else that thread computes.
"""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_MXCSR = 7  # its place among the 32-bit words of glibc's fenv_t on x86-64
_FLUSH = 0x8040  # FTZ and DAZ: what is computed, and what is read
_Environment = ctypes.c_uint32 * 8

_is_known = platform.machine().lower() in ("x86_64", "amd64") and platform.libc_ver()[0] == "glibc"
_libm = ctypes.CDLL("libm.so.6") if _is_known else None


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Do so in this thread, on x86-64 Linux; elsewhere do nothing. Takes about 3 microseconds."""
    if _libm is None:
        yield
        return
    before = _Environment()
    _libm.fegetenv(before)
    within = _Environment.from_buffer_copy(before)
    within[_MXCSR] |= _FLUSH
    _libm.fesetenv(within)
    try:
        yield
    finally:
        _libm.fesetenv(before)
