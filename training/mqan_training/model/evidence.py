"""The words of a text that decide for a label: a pointer of each label over the text's words.

The state of a choice has read the text and the question beside it, so one product tells for each word whether it is
among those that decide. Each word is a decision of its own: what decides may stand in several places, or nowhere.

Shape letters: B requests, C context length, Q question length, M width of the reader, E width of the product.
"""

import math

import torch
from torch import Tensor, nn

EVIDENCE_WIDTH = 64
_PRIOR = -2.0  # logit of an untrained pointer


class Evidence(nn.Module):
    """Maps of words and of labels, whose product is the logit of a word being among those that decide for a label."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.label: nn.Linear = nn.utils.skip_init(nn.Linear, width, EVIDENCE_WIDTH)
        self.word: nn.Linear = nn.utils.skip_init(nn.Linear, width, EVIDENCE_WIDTH)
        nn.init.zeros_(self.label.weight)
        nn.init.eye_(self.word.weight)
        for linear in (self.label, self.word):
            nn.init.zeros_(linear.bias)
        with torch.no_grad():  # the product of the biases is the logit of all words at first
            self.label.bias[0], self.word.bias[0] = math.sqrt(-_PRIOR), -math.sqrt(-_PRIOR)

    def forward(self, label_BM: Tensor, words_BCM: Tensor) -> Tensor:
        return (self.word(words_BCM).float() @ self.label(label_BM).float()[:, :, None])[..., 0]
