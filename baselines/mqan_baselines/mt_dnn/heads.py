"""The output layers of MT-DNN and their losses (equations 1 to 9).

Shape letters: N sequences, S pieces of a sequence, D width of the encoder's states, C classes, K steps of the
stochastic answer network, Q questions, A candidates of a question.
"""

import math
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mqan_baselines.mt_dnn.packing import Sequences

_FAR: Final = -1e4  # a score that softmax makes 0


class ClassHead(nn.Module):
    """Classes from the state of [CLS] (equation 1); of a pair it is the linear head that SAN is compared with."""

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Linear(width, num_classes, bias=False)  # W_SST

    def forward(self, states_NSD: Tensor, _: Sequences) -> Tensor:
        """Return logits, [N, C]; their softmax is equation 1."""
        logits_NC: Tensor = self.weight(states_NSD[:, 0])
        return logits_NC


class ScoreHead(nn.Module):
    """A score from 0 to 1 from the state of [CLS]: similarity (equation 2) or relevance (equation 5)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Linear(width, 1, bias=False)  # w_STS, w_QNLI

    def forward(self, states_NSD: Tensor, _: Sequences) -> Tensor:
        """Return scores, [N]."""
        return torch.sigmoid(self.weight(states_NSD[:, 0]).squeeze(-1))


class SanHead(nn.Module):
    """The stochastic answer network: K steps of reasoning over premise and hypothesis (equations 3 and 4).

    The paper defines x^k for k >= 1 from s^{k-1}, and averages the predictions of steps 0 to K - 1. Step 0 has no state
    before it: x^0 is read by s^0 itself, and so equals x^1.

    Args:
        width: D.
        num_classes: C.
        steps: K.
        prediction_dropout: how probably the prediction of a step is left out in training; one, at random, never is.
    """

    def __init__(self, width: int, num_classes: int, steps: int, prediction_dropout: float) -> None:
        super().__init__()
        self.steps, self.prediction_dropout = steps, prediction_dropout
        self.summary = nn.Linear(width, 1, bias=False)  # w_1
        self.attention = nn.Linear(width, width, bias=False)  # W_2
        self.state = nn.GRUCell(width, width)
        self.weight = nn.Linear(4 * width, num_classes, bias=False)  # W_3

    def forward(self, states_NSD: Tensor, sequences: Sequences) -> Tensor:
        """Return the logarithms of the averaged probabilities, [N, C]."""
        s_ND = _attend(self.summary(states_NSD).squeeze(-1), states_NSD, sequences.second_NS)  # s^0
        x_ND = self._read(s_ND, states_NSD, sequences.first_NS)  # x^0
        steps = [self._predict(s_ND, x_ND)]
        for _ in range(1, self.steps):
            x_ND = self._read(s_ND, states_NSD, sequences.first_NS)
            s_ND = self.state(x_ND, s_ND)
            steps.append(self._predict(s_ND, x_ND))
        return self._average(torch.stack(steps, dim=1))

    def _read(self, s_ND: Tensor, states_NSD: Tensor, first_NS: Tensor) -> Tensor:
        """Return x: the premise's states, weighted by beta."""
        scores_NS = (states_NSD @ self.attention(s_ND).unsqueeze(-1)).squeeze(-1)
        return _attend(scores_NS, states_NSD, first_NS)

    def _predict(self, s_ND: Tensor, x_ND: Tensor) -> Tensor:
        """Return the logarithms of equation 3, [N, C]."""
        features_N4D = torch.cat([s_ND, x_ND, (s_ND - x_ND).abs(), s_ND * x_ND], dim=-1)
        return torch.log_softmax(self.weight(features_N4D), dim=-1)

    def _average(self, log_NKC: Tensor) -> Tensor:
        """Return the logarithm of the mean of the steps' probabilities (equation 4), in training of those kept."""
        if not self.training or self.prediction_dropout == 0:
            return torch.logsumexp(log_NKC, dim=1) - math.log(self.steps)
        draws_NK = torch.rand_like(log_NKC[..., 0])
        is_kept_NK = draws_NK >= self.prediction_dropout
        always_N1 = torch.randint(self.steps, (log_NKC.shape[0], 1), device=log_NKC.device)
        is_kept_NK = is_kept_NK.scatter(1, always_N1, True)
        bias_NK1 = torch.where(is_kept_NK, 0.0, -math.inf).unsqueeze(-1)
        return torch.logsumexp(log_NKC + bias_NK1, dim=1) - is_kept_NK.sum(dim=1, keepdim=True).log()


def _attend(scores_NS: Tensor, states_NSD: Tensor, mask_NS: Tensor) -> Tensor:
    """Return the states where the mask is true, weighted by the softmax of their scores, [N, D]."""
    weights_NS = torch.softmax(torch.where(mask_NS, scores_NS, _FAR), dim=-1)
    return (weights_NS.unsqueeze(1) @ states_NSD).squeeze(1)


def ranking_loss(relevances_N: Tensor, candidates: Sequence[int]) -> Tensor:
    """Return the mean negative log likelihood of the right candidates (equations 8 and 9, gamma = 1).

    Equation 8 lacks the logarithm that its text names ("negative log likelihood"); it is taken here. As relevances lie
    between 0 and 1, P_r(A+|Q) is at most e / (e + |A| - 1).

    Args:
        relevances_N: of all candidates, question by question, the right one first.
        candidates: how many each question has; they sum to N.
    """
    of_question = torch.split(relevances_N, list(candidates))
    relevances_QA = pad_sequence(list(of_question), batch_first=True, padding_value=-math.inf)
    return -torch.log_softmax(relevances_QA, dim=-1)[:, 0].mean()
