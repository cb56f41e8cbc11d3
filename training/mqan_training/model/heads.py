"""What a reader says of choices beside the decoder: how alike they and the text are, and which words decide for one.

A sentence encoder knows that a text about goals and referees is "sport" without having been told: its vectors of both
are alike. The reader is trained to keep that knowledge. The mean state of the text and that of each choice, each with
what one matrix adds to it, are vectors that a loss holds close to the encoder's (``losses.similarity_loss``), and their
cosine, times a weight, is a term of the choice's score as the answer. Of a text of several windows the one that is read
with the choices counts.

The state of a choice has read the text and the question beside it, so one product tells for each word whether it is
among those that decide. Each word is a decision of its own: what decides may stand in several places, or nowhere.

Shape letters: N windows, S pieces of a window, B requests, C context length, Q question length (the separators of the
choices included), M width of the reader, E width of the product.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mqan_core.text.layout import SHARED

EVIDENCE_WIDTH = 64
_PRIOR = -2.0  # logit of a word deciding, before any training
_SCALE = 16.0  # of the cosine in a score, at the start of the training


class Alike(NamedTuple):
    """Vectors of length 1 of the text of each window, and of choices; other words have some that mean nothing."""

    text_NM: Tensor
    choice_BQM: Tensor


class Similarity(nn.Module):
    """The map to the vectors, and the weight of their cosine in a choice's score."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map: nn.Linear = nn.utils.skip_init(nn.Linear, width, width, bias=False)
        nn.init.zeros_(self.map.weight)  # what is added is small, and so are its errors in 8 bits
        self.weight = nn.Parameter(torch.ones(()))

    def vectors(self, states: Tensor) -> Tensor:
        mapped = (states + self.map(states)).float()
        lengths = (mapped * mapped).sum(dim=-1, keepdim=True).clamp(min=1e-12).sqrt()
        return mapped / lengths

    def score(self, text_M: Tensor, choice_M: Tensor) -> Tensor:
        return (text_M * choice_M).sum(dim=-1) * self.weight * _SCALE


def mean_of_text(states_NSM: Tensor, segments_NS: Tensor) -> Tensor:
    """Return the mean state of the pieces of each window's context, the separator behind it included, [N, M]."""
    is_text_N1S = (segments_NS > 0).to(states_NSM.dtype)[:, None, :]
    sums_NM = (is_text_N1S @ states_NSM)[:, 0]
    return sums_NM / is_text_N1S.sum(dim=-1).clamp(min=1)


def are_choices(groups_NS: Tensor, places: Tensor) -> Tensor:
    """Return whether words that begin at these of the N * S pieces are choices, bool."""
    return groups_NS.reshape(-1)[places] > SHARED


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
