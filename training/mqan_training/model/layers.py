"""Building blocks of MQAN.

Shape letters: B batch, T sequence length, S length of another sequence, D width, H heads, W head width.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from mqan_training.recipe import ModelConfig


def length_mask(lengths_B: Tensor, max_length: int) -> Tensor:
    return torch.arange(max_length, device=lengths_B.device)[None, :] < lengths_B[:, None]


def masked_softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Softmax over the true positions of ``mask``, in float32 at least; where there is one, the others get 0."""
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=dim)


def sinusoidal_positions(num_positions: int, width: int) -> Tensor:
    """Return PE of equation 3 (Vaswani et al. 2017), float32 [num_positions, width]."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angle = position * torch.exp(even * (-math.log(10_000.0) / width))
    table = torch.zeros(num_positions, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)[:, : width // 2]
    return table.float()


class SequenceDropout(nn.Module):
    """Dropout of whole features: one mask for all positions of a sequence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x_BTD: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x_BTD
        return x_BTD * functional.dropout(torch.ones_like(x_BTD[:, :1]), self.rate)


class BiLSTM(nn.Module):
    """Bidirectional LSTM whose output at a row's valid positions does not depend on its padding (footnote 4).

    Rows are padded on the right. The backward direction reads each row reversed within its own length, so both
    directions are plain LSTMs; positions beyond a row's length come out as 0.
    """

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"BiLSTM: the width {width} must be even, half for each direction")
        self.forward_lstm = nn.LSTM(input_width, width // 2, batch_first=True)
        self.backward_lstm = nn.LSTM(input_width, width // 2, batch_first=True)
        for lstm in (self.forward_lstm, self.backward_lstm):
            reset_lstm(lstm)

    def forward(self, x_BTI: Tensor, lengths_B: Tensor) -> Tensor:
        max_length = x_BTI.shape[1]
        position_T = torch.arange(max_length, device=x_BTI.device)
        mirrored_BT = lengths_B[:, None] - 1 - position_T[None, :]
        mirrored_BT = torch.where(mirrored_BT >= 0, mirrored_BT, position_T[None, :])
        ahead_BTK, _ = self.forward_lstm(x_BTI)
        back_BTK, _ = self.backward_lstm(gather_steps(x_BTI, mirrored_BT))
        both_BTD = torch.cat([ahead_BTK, gather_steps(back_BTK, mirrored_BT)], dim=-1)
        return both_BTD * length_mask(lengths_B, max_length)[:, :, None].to(both_BTD.dtype)


def gather_steps(x_BTD: Tensor, index_BT: Tensor) -> Tensor:
    return x_BTD.gather(1, index_BT[:, :, None].expand(-1, -1, x_BTD.shape[2]))


def reset_lstm(lstm: nn.LSTM | nn.LSTMCell) -> None:
    """Initialise: inputs Xavier, recurrence orthogonal, biases 0 but 1 for the forget gate."""
    for name, parameter in lstm.named_parameters():
        if "weight_ih" in name:
            nn.init.xavier_uniform_(parameter)
        elif "weight_hh" in name:
            for gate in parameter.chunk(4):
                nn.init.orthogonal_(gate)
        else:
            nn.init.zeros_(parameter)
            if "bias_ih" in name:
                nn.init.ones_(parameter[parameter.shape[0] // 4 : parameter.shape[0] // 2])


class MultiHead(nn.Module):
    """Multi-head scaled dot-product attention (equations 22 and 23)."""

    def __init__(self, width: int, num_heads: int, head_width: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_width = head_width
        self.inputs = nn.Linear(width, 3 * num_heads * head_width, bias=False)  # of queries, keys, values: one product
        self.output = nn.Linear(num_heads * head_width, width, bias=False)
        self.dropout = nn.Dropout(dropout)
        for part in (*self.inputs.weight.chunk(3), self.output.weight):
            nn.init.xavier_uniform_(part)

    def split(self, x_BTX: Tensor) -> Tensor:
        return x_BTX.unflatten(-1, (self.num_heads, self.head_width)).transpose(1, 2)

    def queries(self, x_BTD: Tensor) -> Tensor:
        return self.split(functional.linear(x_BTD, self.inputs.weight[: self.num_heads * self.head_width]))

    def keys_values(self, y_BSD: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = functional.linear(y_BSD, self.inputs.weight[self.num_heads * self.head_width :]).chunk(2, dim=-1)
        return self.split(keys), self.split(values)

    def queries_keys_values(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = self.inputs(x_BTD).chunk(3, dim=-1)
        return self.split(queries), self.split(keys), self.split(values)

    def attend(self, queries_BHTW: Tensor, keys_BHSW: Tensor, values_BHSW: Tensor, mask: Tensor) -> Tensor:
        """Return [B, T, D]; ``mask`` broadcasts to [B, H, T, S]."""
        scores_BHTS = (queries_BHTW * (1.0 / math.sqrt(self.head_width))) @ keys_BHSW.transpose(-1, -2)
        weights_BHTS = self.dropout(masked_softmax(scores_BHTS, mask)).to(values_BHSW.dtype)
        heads_BHTW = weights_BHTS @ values_BHSW
        return self.output(heads_BHTW.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """max(0, X U) V of equation 25; the residual is added by the caller."""

    def __init__(self, width: int, ffn_width: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(width, ffn_width)  # U
        self.outer = nn.Linear(ffn_width, width)  # V
        self.dropout = SequenceDropout(dropout)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.outer(self.dropout(functional.relu(self.inner(x_BTD))))


class Residual(nn.Module):
    """Residual connection with layer normalisation and dropout around a block: norm before it or after the sum."""

    def __init__(self, width: int, norm: Literal["pre", "post"], dropout: float) -> None:
        super().__init__()
        self.is_pre = norm == "pre"
        self.norm = nn.LayerNorm(width)
        self.dropout = SequenceDropout(dropout)

    def enter(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.is_pre else x

    def leave(self, x: Tensor, block_output: Tensor) -> Tensor:
        total = x + self.dropout(block_output)
        return total if self.is_pre else self.norm(total)


class DecoderLayer(nn.Module):
    """Self-attention over the answer so far, attention over the context, feed-forward network (equations 4 to 6)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHead(config.width, config.num_heads, config.head_width, config.attention_dropout)
        self.context_attention = MultiHead(config.width, config.num_heads, config.head_width, config.attention_dropout)
        self.ffn = FeedForward(config.width, config.ffn_width, config.dropout)
        self.around_self = Residual(config.width, config.norm, config.dropout)
        self.around_context = Residual(config.width, config.norm, config.dropout)
        self.around_ffn = Residual(config.width, config.norm, config.dropout)

    def forward(
        self,
        a_BTD: Tensor,
        answer: tuple[Tensor, Tensor, Tensor, Tensor],
        context: tuple[Tensor, Tensor, Tensor],
    ) -> Tensor:
        """Map [B, T, D] to [B, T, D], by what ``read_answer`` returned and the keys, values and mask of the context.

        The answer's keys and values are with those of earlier words; a mask over these comes last.
        """
        a_BTD = self.around_self.leave(a_BTD, self.self_attention.attend(*answer))
        c_keys_BHCW, c_values_BHCW, c_mask_BC = context
        queries = self.context_attention.queries(self.around_context.enter(a_BTD))
        attended = self.context_attention.attend(queries, c_keys_BHCW, c_values_BHCW, c_mask_BC[:, None, None, :])
        a_BTD = self.around_context.leave(a_BTD, attended)  # (5)
        return self.around_ffn.leave(a_BTD, self.ffn(self.around_ffn.enter(a_BTD)))  # (6)

    def read_answer(self, a_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.self_attention.queries_keys_values(self.around_self.enter(a_BTD))
