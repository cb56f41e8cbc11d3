"""Trace the contextual encoder: the words of windows -> what is added to the projected words."""

import copy

import torch
from torch import Tensor, nn

from mqan_training.model.contextual import ContextualEncoder


class ContextualGraph(nn.Module):
    """The graph ``contextual.onnx``; inputs and outputs are ``graphs.CONTEXTUAL_INPUTS`` and ``CONTEXTUAL_OUTPUTS``."""

    def __init__(self, encoder: ContextualEncoder) -> None:
        super().__init__()
        self.contextual = copy.deepcopy(encoder).eval()

    def forward(
        self, context_words: Tensor, question_words: Tensor, context_lengths: Tensor, question_lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Read some windows."""
        return self.contextual.read_window(context_words, question_words, context_lengths, question_lengths)

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Return inputs to trace with; every dynamic size is different, so that none is taken for another."""
        windows, context, question, width = 3, 13, 7, self.contextual.pieces.width
        return (
            torch.randn(windows, context, width),
            torch.randn(windows, question, width),
            torch.tensor([context, 5, 9]),
            torch.tensor([question, 3, 4]),
        )
