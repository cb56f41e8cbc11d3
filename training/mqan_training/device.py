"""The device that networks are trained on, how batches get there, and what makes a CPU fast."""

import ctypes
import os
import platform

import torch
from torch import Tensor

_PRIMITIVES = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of mallopt(3)


def prepare_device() -> torch.device:
    torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for each shape that it meets, in 10 ms
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the CPU on a device; a copy to a GPU does not wait for what the GPU is still at."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def has_bfloat16() -> bool:
    """Return whether this CPU has instructions for bfloat16; without them products take 60 times as long (AVX2)."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def is_reduced(wanted: bool, device: torch.device) -> bool:
    """Return whether products are to be in bfloat16: where that is wanted, and a CPU is not slower for it."""
    return wanted and (device.type != "cpu" or has_bfloat16())


def tune_process() -> None:
    """Keep compiled kernels and freed memory for the next step, in large pages; changes no result.

    To be called before torch takes memory for its first tensor of 2 MB, which is when it looks at the setting. oneDNN
    keeps 1,024 compiled kernels unless told otherwise, and a run meets more shapes than that; glibc gives large blocks
    back to the system, which must clear them again at each step (a fifth of a step's time). With pages of 2 MB instead
    of 4 KB the gradient of the embeddings is cleared in 2 ms instead of 34 (on a Xeon with AMX).
    """
    os.environ.setdefault(_PRIMITIVES, "30000")
    os.environ.setdefault(_HUGE_PAGES, "1")
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
