"""What the batches of both readers share, and the device that they go to: few shapes, and what makes a CPU fast."""

import ctypes
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

IntArray = npt.NDArray[np.int64]

ANSWER_COST = 5  # a step of an answer costs as much as five words of a text (appendix B)


@dataclass(frozen=True, slots=True)
class Batch(ABC):
    """Tensors that go to another process or device together."""

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def of_tensors(cls, tensors: Sequence[Tensor]) -> Self:
        return cls(*tensors)

    def to(self, device: torch.device) -> Self:
        return self.of_tensors([moved(tensor, device) for tensor in self.tensors()])

    @property
    @abstractmethod
    def size(self) -> int:
        """Pieces or tokens that are not padding."""


def common_shape(size: int, least: int = 16, bits: int = 2) -> int:
    """Return the next size out of two to each doubling (16, 24, 32, 48, ...), or more with more ``bits``.

    oneDNN compiles every product in bfloat16 anew for each shape that it meets, which takes longer than the product.
    """
    step = 1 << max((size - 1).bit_length() - bits, 0)
    return max(-(-size // step) * step, least)


def pad(
    rows: Sequence[Sequence[int] | npt.NDArray[np.integer[Any]]], value: int, width: int = 0, height: int = 0
) -> IntArray:
    """Return rows below one another, filled up with a value to a width, and to a number of rows if there are fewer."""
    padded = np.full((max(len(rows), height), width or max(map(len, rows))), value, np.int64)
    for target, row in zip(padded, rows, strict=False):
        target[: len(row)] = row
    return padded


def sorted_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[start : start + size] for start in range(0, len(order), size)]


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
