"""Trace the vectors of word pieces, 8-bit with one scale a row: a third of a bundle, which all its readers share."""

import numpy as np
import torch
from torch import Tensor, nn

from mqan_core.text.vectors import quantize_rows


class EmbeddingsGraph(nn.Module):
    """The graph ``embeddings.onnx``; inputs and outputs are those of ``mqan_runtime.answering_graphs``.

    Args:
        vectors_VM: the vectors.
    """

    rows: Tensor
    scales: Tensor

    def __init__(self, vectors_VM: Tensor) -> None:
        super().__init__()
        rows, scales = quantize_rows(vectors_VM.detach().numpy().astype(np.float32))
        self.register_buffer("rows", torch.from_numpy(rows))
        self.register_buffer("scales", torch.from_numpy(scales))

    def forward(self, pieces: Tensor) -> Tensor:
        """Return the vectors of pieces of any shape, [..., M]."""
        return self.rows[pieces].float() * self.scales[pieces][..., None]

    def table(self) -> Tensor:
        """Return all vectors as the graph gives them, [V, M]."""
        return self.forward(torch.arange(len(self.scales)))

    @staticmethod
    def example_inputs() -> tuple[Tensor, ...]:
        """Return inputs to trace with; every dynamic size is different, so that none is taken for another."""
        return (torch.zeros(2, 11, dtype=torch.int64),)
