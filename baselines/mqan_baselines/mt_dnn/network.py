"""MT-DNN: a lexicon and transformer encoder that all tasks share, and an output layer for each (figure 1).

The output layers and their losses are equations 1 to 9. Shape letters: N sequences, S pieces of a sequence, D width of
the encoder's states, C classes, K steps of the stochastic answer network, Q questions, A candidates of a question.
"""

import math
from collections.abc import Sequence
from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mqan_baselines.mt_dnn.packing import Sequences
from mqan_baselines.recipes import MtDnnRecipe
from mqan_baselines.tasks import BaselineTask, baseline_task
from mqan_training.batch import is_reduced
from mqan_training.model.bert import Bert, encoder_folder

_FAR: Final = -1e4  # a score that softmax makes 0


class ClassHead(nn.Module):
    """Classes from the state of [CLS] (equation 1); of a pair it is the linear head that SAN is compared with."""

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Linear(width, num_classes, bias=False)  # W_SST

    def forward(self, states_NSD: Tensor, _: Sequences) -> Tensor:
        logits_NC: Tensor = self.weight(states_NSD[:, 0])
        return logits_NC


class ScoreHead(nn.Module):
    """A score from 0 to 1 from the state of [CLS]: similarity (equation 2) or relevance (equation 5)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Linear(width, 1, bias=False)  # w_STS, w_QNLI

    def forward(self, states_NSD: Tensor, _: Sequences) -> Tensor:
        return torch.sigmoid(self.weight(states_NSD[:, 0]).squeeze(-1))


class SanHead(nn.Module):
    """The stochastic answer network: K steps of reasoning over premise and hypothesis (equations 3 and 4).

    The paper defines x^k for k >= 1 from s^{k-1}, and averages the predictions of steps 0 to K - 1. Step 0 has no state
    before it: x^0 is read by s^0 itself, and so equals x^1. ``prediction_dropout`` leaves out predictions of steps in
    training; that of one, at random, never.
    """

    def __init__(self, width: int, num_classes: int, steps: int, prediction_dropout: float) -> None:
        super().__init__()
        self.steps, self.prediction_dropout = steps, prediction_dropout
        self.summary = nn.Linear(width, 1, bias=False)  # w_1
        self.attention = nn.Linear(width, width, bias=False)  # W_2
        self.state = nn.GRUCell(width, width)
        self.weight = nn.Linear(4 * width, num_classes, bias=False)  # W_3

    def forward(self, states_NSD: Tensor, sequences: Sequences) -> Tensor:
        s_ND = _attend(self.summary(states_NSD).squeeze(-1), states_NSD, sequences.second_NS)  # s^0
        x_ND = self._read(s_ND, states_NSD, sequences.first_NS)  # x^0
        steps = [self._predict(s_ND, x_ND)]
        for _ in range(1, self.steps):
            x_ND = self._read(s_ND, states_NSD, sequences.first_NS)
            s_ND = self.state(x_ND, s_ND)
            steps.append(self._predict(s_ND, x_ND))
        return self._average(torch.stack(steps, dim=1))

    def _read(self, s_ND: Tensor, states_NSD: Tensor, first_NS: Tensor) -> Tensor:
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
    weights_NS = torch.softmax(torch.where(mask_NS, scores_NS, _FAR), dim=-1)
    return (weights_NS.unsqueeze(1) @ states_NSD).squeeze(1)


def ranking_loss(relevances_N: Tensor, candidates: Sequence[int]) -> Tensor:
    """Return the mean negative log likelihood of the right candidates (equations 8 and 9, gamma = 1).

    Equation 8 lacks the logarithm that its text names ("negative log likelihood"); it is taken here. As relevances lie
    between 0 and 1, P_r(A+|Q) is at most e / (e + |A| - 1). Candidates come question by question, the right one first.
    """
    of_question = torch.split(relevances_N, list(candidates))
    relevances_QA = pad_sequence(list(of_question), batch_first=True, padding_value=-math.inf)
    return -torch.log_softmax(relevances_QA, dim=-1)[:, 0].mean()


class MtDnn(nn.Module):
    """The encoder, which is the shared layers l1 and l2, and an output layer for each of the tasks."""

    def __init__(self, recipe: MtDnnRecipe, encoder: Bert, tasks: tuple[str, ...] | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(recipe.dropout)
        width = encoder.config.hidden_size
        self.heads = nn.ModuleDict(
            {name: _head(baseline_task(name), recipe, width) for name in (recipe.tasks if tasks is None else tasks)}
        )
        for name, parameter in self.heads.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)  # as BERT's own
            elif name.endswith(("bias_ih", "bias_hh")):
                nn.init.zeros_(parameter)

    def forward(self, task: str, sequences: Sequences) -> Tensor:
        """Return what a task's output layer says of N sequences.

        Logits [N, C] of classes (logarithms of probabilities from SAN), or scores [N] of a similarity or a ranking.
        """
        output: Tensor = self.heads[task](self.dropout(self._encode(sequences)), sequences)
        return output

    @property
    def device(self) -> torch.device:
        return self.encoder.pieces.weight.device

    def _encode(self, sequences: Sequences) -> Tensor:
        device = sequences.pieces_NS.device
        positions_S = torch.arange(sequences.pieces_NS.shape[1], device=device)
        read = (sequences.pieces_NS, positions_S, sequences.segments_NS, sequences.mask_NS)
        if not is_reduced(self.training, device):
            return cast(Tensor, self.encoder(*read))
        with torch.autocast(device.type, torch.bfloat16):
            return cast(Tensor, self.encoder(*read)).float()


def pretrained_network(recipe: MtDnnRecipe, tasks: tuple[str, ...] | None = None) -> MtDnn:
    """Return a network with a pretrained encoder and untrained output layers, drawn by the recipe's seed."""
    torch.manual_seed(recipe.seed)
    return MtDnn(recipe, Bert.from_folder(encoder_folder(recipe.encoder), recipe.dropout), tasks)


def _head(task: BaselineTask, recipe: MtDnnRecipe, width: int) -> nn.Module:
    if task.form in ("similarity", "ranking"):
        return ScoreHead(width)
    if task.form == "pair" and recipe.pair_head == "san":
        return SanHead(width, len(task.labels), recipe.san_steps, recipe.prediction_dropout)
    return ClassHead(width, len(task.labels))
