"""MT-DNN's output layers and losses against hand-computed cases (equations 1 to 9)."""

import math

import numpy as np
import pytest
import torch

from mqan_baselines.mt_dnn.network import (
    SanHead,
    ranking_loss,
)
from mqan_baselines.mt_dnn.packing import Packed, Sequences, stack


def _pairs() -> Sequences:
    return stack([Packed((9, 1, 2, 9, 3, 9), 4), Packed((9, 1, 9, 3, 4, 5, 9), 3)])


def _san(steps: int = 5, prediction_dropout: float = 0.1) -> SanHead:
    torch.manual_seed(0)
    head = SanHead(4, 3, steps, prediction_dropout).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    return head


def test_the_loss_of_rankings_by_hand() -> None:
    relevances_N = torch.tensor([0.9, 0.1, 0.4, 0.5, 0.6])  # two questions, of two and of three candidates
    first = math.exp(0.9) / (math.exp(0.9) + math.exp(0.1))
    second = math.exp(0.4) / (math.exp(0.4) + math.exp(0.5) + math.exp(0.6))
    expected = -(math.log(first) + math.log(second)) / 2
    assert ranking_loss(relevances_N, [2, 3]).item() == pytest.approx(expected)


def _softmax(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(x - x.max()) / np.exp(x - x.max()).sum())


def _plain_gru(head: SanHead, x: np.ndarray, s: np.ndarray) -> np.ndarray:
    gru = head.state
    inner = gru.weight_ih.detach().numpy() @ x + gru.bias_ih.detach().numpy()
    outer = gru.weight_hh.detach().numpy() @ s + gru.bias_hh.detach().numpy()
    reset, update = (1 / (1 + np.exp(-(inner[p : p + 4] + outer[p : p + 4]))) for p in (0, 4))
    new = np.tanh(inner[8:] + reset * outer[8:])
    return np.asarray((1 - update) * new + update * s)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_san_is_equations_3_and_4(steps: int) -> None:
    head = _san(steps).eval()
    states_NSD = torch.randn(2, 7, 4, dtype=torch.double)
    found = head(states_NSD, _pairs()).exp().detach().numpy()
    w_1, w_2, w_3 = (part.weight.detach().numpy() for part in (head.summary, head.attention, head.weight))
    for n, (premise, hypothesis) in enumerate((([1, 2], [4]), ([1], [3, 4, 5]))):
        memory = states_NSD[n].numpy()
        m_p, m_h = memory[premise], memory[hypothesis]
        s = _softmax(m_h @ w_1[0]) @ m_h
        predictions = []
        for k in range(steps):
            x = _softmax(np.array([s @ w_2.T @ row for row in m_p])) @ m_p
            if k:
                s = _plain_gru(head, x, s)
            predictions.append(_softmax(w_3 @ np.concatenate([s, x, np.abs(s - x), s * x])))
        np.testing.assert_allclose(found[n], np.mean(predictions, axis=0), atol=1e-12)


def test_prediction_dropout_averages_some_of_the_steps_and_never_none() -> None:
    head = _san(3, prediction_dropout=0.5)
    states_NSD = torch.randn(1, 6, 4, dtype=torch.double)
    pair = stack([Packed((9, 1, 2, 9, 3, 9), 4)])
    log_NKC = torch.log_softmax(torch.randn(1, 3, 3, dtype=torch.double), dim=-1)
    steps = log_NKC[0].exp()
    kept = [[k for k in range(3) if code >> k & 1] for code in range(1, 8)]
    means = [steps[places].mean(dim=0) for places in kept]
    torch.manual_seed(5)
    seen = set()
    for _ in range(200):
        drawn = head._average(log_NKC)[0].exp()
        matches = [i for i, mean in enumerate(means) if torch.allclose(drawn, mean)]
        assert len(matches) == 1
        seen.update(matches)
    assert seen == set(range(7))
    head.eval()
    torch.testing.assert_close(head._average(log_NKC)[0].exp(), steps.mean(dim=0))
    torch.testing.assert_close(head(states_NSD, pair), head(states_NSD, pair))
