"""The building blocks against their definitions and against torch's own."""

import math

import pytest
import torch
from torch import nn

from mqan_training.model.layers import (
    BiLSTM,
    MultiHead,
    Residual,
    SequenceDropout,
    length_mask,
    masked_softmax,
    sinusoidal_positions,
)


def test_a_bilstm_equals_torchs_own_on_packed_rows() -> None:
    torch.manual_seed(0)
    ours = BiLSTM(5, 8)
    theirs = nn.LSTM(5, 4, batch_first=True, bidirectional=True)
    for direction, suffix in ((ours.forward_lstm, ""), (ours.backward_lstm, "_reverse")):
        for name, parameter in direction.named_parameters():
            getattr(theirs, name + suffix).data.copy_(parameter)
    x, lengths = torch.randn(4, 9, 5), torch.tensor([9, 1, 4, 7])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    torch.testing.assert_close(ours(x, lengths), expected, atol=1e-6, rtol=0)


def test_masked_softmax_gives_nothing_to_padding() -> None:
    scores = torch.tensor([[1.0, 2.0, 90.0], [0.0, 0.0, 0.0]])
    weights = masked_softmax(scores, length_mask(torch.tensor([2, 3]), 3))
    assert weights[0, 2] == 0
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(2))
    assert weights[0, 1] / weights[0, 0] == pytest.approx(math.e)


def test_positions_are_those_of_the_paper() -> None:
    table = sinusoidal_positions(6, 4)
    assert table[3, 0] == pytest.approx(math.sin(3))
    assert table[3, 1] == pytest.approx(math.cos(3))
    assert table[5, 2] == pytest.approx(math.sin(5 / 100), abs=1e-6)


def test_multi_head_attention_equals_its_equation() -> None:
    torch.manual_seed(1)
    attention = MultiHead(6, 2, 3, dropout=0.0)
    x, y = torch.randn(1, 4, 6), torch.randn(1, 5, 6)
    heads = []
    for j in range(2):
        rows = slice(3 * j, 3 * j + 3)
        q, k, v = (z[0] @ w[rows].T for z, w in zip((x, y, y), attention.inputs.weight.chunk(3), strict=True))
        heads.append(torch.softmax(q @ k.T / math.sqrt(3), dim=1) @ v)
    expected = torch.cat(heads, dim=1) @ attention.output.weight.T
    mask = torch.ones(1, 1, 1, 5, dtype=torch.bool)
    attended = attention.attend(attention.queries(x), *attention.keys_values(y), mask)
    torch.testing.assert_close(attended[0], expected, atol=1e-6, rtol=1e-5)
    own = attention.attend(*attention.queries_keys_values(y), mask)
    torch.testing.assert_close(own, attention.attend(attention.queries(y), *attention.keys_values(y), mask))


def test_residual_normalises_before_or_after() -> None:
    x = torch.randn(2, 3, 8) * 5
    before, after = Residual(8, "pre", 0.0), Residual(8, "post", 0.0)
    torch.testing.assert_close(before.leave(x, torch.zeros_like(x)), x)
    assert before.enter(x).std() < 1.2 < x.std()
    assert after.enter(x) is x
    assert after.leave(x, torch.zeros_like(x)).std() < 1.2


def test_sequence_dropout_drops_whole_features() -> None:
    dropout = SequenceDropout(0.5)
    x = torch.ones(3, 7, 40)
    y = dropout(x)
    assert (y == y[:, :1]).all()
    assert set(y.unique().tolist()) == {0.0, 2.0}
    dropout.eval()
    assert dropout(x) is x
