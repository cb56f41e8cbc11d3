"""What the batches of both readers share: they are tensors, of few shapes, and each loss is a mean."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mqan_training.device import moved

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
