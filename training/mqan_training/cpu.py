"""Settings of this process that make training on a CPU faster. They change no result."""

import ctypes
import os
import platform

_PRIMITIVES = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_MMAP_BYTES = 32 << 20  # the most that glibc takes


def tune_process() -> None:
    """Keep compiled kernels and freed memory for the next step; to be called before the first one.

    oneDNN keeps 1,024 compiled kernels unless told otherwise, and a run meets more shapes than that; glibc gives large
    blocks back to the system, which must clear them again at each step (a fifth of a step's time).
    """
    os.environ.setdefault(_PRIMITIVES, "30000")
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
