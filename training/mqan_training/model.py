"""MQAN, the multitask question answering network (McCann et al. 2018), in the order of its appendix C and section 3.

- The question is the task: no heads, no labels. Context and question are encoded jointly (dual coattention).
- Each answer word is a mixture of three sources: the generator's vocabulary, a pointer into the context and a pointer
  into the question (equation 13). The mixture is what tells where a word came from.
- Ours, not the paper's: ``input_residual`` adds the projected inputs to the final encodings, without which pointer
  keys of similar words ("negative", "positive") are nearly equal and classification hardly trains.
- Ours, not the paper's: ``coattention_residual`` adds them to what coattention reads, so that equal words of context
  and question are aligned from the first step; question answering then trains several times faster.
- ``Decoder.forward`` (teacher forcing) and ``Decoder.step`` (greedy decoding) are one function.

Shape letters: B batch, C context length, Q question length, A answer length, D width, E vector width, L layers,
H heads, W head width, V generator pieces. Local names follow the paper.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mqan_training.config import ModelConfig
from mqan_training.layers import (
    BiLSTM,
    FeedForward,
    MultiHead,
    Residual,
    SequenceDropout,
    length_mask,
    masked_softmax,
    reset_lstm,
    sinusoidal_positions,
)


class Encoded(NamedTuple):
    """What the decoder reads of a batch of contexts and questions.

    Keys and values of the context attention are one tensor a decoder layer, so that they are computed once.
    """

    c_fin_BCD: Tensor
    q_fin_BQD: Tensor
    keys_BHCW: tuple[Tensor, ...]
    values_BHCW: tuple[Tensor, ...]
    c_mask_BC: Tensor
    q_mask_BQ: Tensor


class Mixture(NamedTuple):
    """The terms of equation 13 at each step; without the axis A where there is but one."""

    p_vocab_BAV: Tensor
    p_context_BAC: Tensor  # attention over context positions, alpha^C
    p_question_BAQ: Tensor  # attention over question positions, alpha^Q
    gamma_BA: Tensor
    lambda_BA: Tensor


class DecoderState(NamedTuple):
    """What one decoding step leaves for the next.

    The caches hold keys and values of the answer so far, one tensor a layer, with room for K steps.
    """

    h_BD: Tensor
    cell_BD: Tensor
    c_tilde_BD: Tensor
    keys_BHKW: tuple[Tensor, ...]
    values_BHKW: tuple[Tensor, ...]


class Coattention(nn.Module):
    """Alignment and dual coattention (equations 17 to 19)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_dummy = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        self.q_dummy = nn.Parameter(torch.randn(1, 1, width) * 0.1)

    def forward(
        self, c_ind_BCD: Tensor, q_ind_BQD: Tensor, c_mask_BC: Tensor, q_mask_BQ: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return Q_sum and C_coa for the context [B, C, D], C_sum and Q_coa for the question [B, Q, D]."""
        batch = c_ind_BCD.shape[0]
        c_BXD = torch.cat([self.c_dummy.expand(batch, -1, -1).to(c_ind_BCD.dtype), c_ind_BCD], dim=1)  # X = C + 1
        q_BYD = torch.cat([self.q_dummy.expand(batch, -1, -1).to(q_ind_BQD.dtype), q_ind_BQD], dim=1)  # Y = Q + 1
        always_B1 = torch.ones_like(c_mask_BC[:, :1])
        c_mask_BX1 = torch.cat([always_B1, c_mask_BC], dim=1)[:, :, None]
        q_mask_B1Y = torch.cat([always_B1, q_mask_BQ], dim=1)[:, None, :]
        affinity_BXY = c_BXD @ q_BYD.transpose(1, 2)
        s_cq_BXY = masked_softmax(affinity_BXY, c_mask_BX1, dim=1).to(c_BXD.dtype)  # (17) each column sums to 1 over C
        s_qc_BXY = masked_softmax(affinity_BXY, q_mask_B1Y, dim=2).to(c_BXD.dtype)  # (17) S_qc transposed
        c_sum_BYD = s_cq_BXY.transpose(1, 2) @ c_BXD  # (18)
        q_sum_BXD = s_qc_BXY @ q_BYD  # (18)
        c_coa_BXD = s_qc_BXY @ c_sum_BYD  # (19)
        q_coa_BYD = s_cq_BXY.transpose(1, 2) @ q_sum_BXD  # (19)
        return q_sum_BXD[:, 1:], c_coa_BXD[:, 1:], c_sum_BYD[:, 1:], q_coa_BYD[:, 1:]


class SelfAttentiveLayer(nn.Module):
    """Multi-head self-attention and feed-forward network of the encoder (equations 24 to 26)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHead(config.width, config.num_heads, config.head_width, config.attention_dropout)
        self.ffn = FeedForward(config.width, config.ffn_width, config.dropout)
        self.around_attention = Residual(config.width, config.norm, config.dropout)
        self.around_ffn = Residual(config.width, config.norm, config.dropout)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Map [B, T, D] to [B, T, D]."""
        read = self.around_attention.enter(x_BTD)
        attended = self.attention.attend(*self.attention.queries_keys_values(read), mask_BT[:, None, None, :])
        x_BTD = self.around_attention.leave(x_BTD, attended)
        return self.around_ffn.leave(x_BTD, self.ffn(self.around_ffn.enter(x_BTD)))


class SequenceTail(nn.Module):
    """Compression, self-attention and final encoding of one of the two sequences (equations 20, 24 to 27)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.part_norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in range(4 if config.norm_parts else 0))
        self.compression = BiLSTM(4 * config.width, config.width)  # BiLSTM_com
        self.layers = nn.ModuleList(SelfAttentiveLayer(config) for _ in range(config.num_layers))
        self.final = BiLSTM(config.width, config.width)  # BiLSTM_fin
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.dropout = SequenceDropout(config.dropout)
        self.add_positions = config.encoder_positions
        self.input_residual = config.input_residual

    def forward(self, parts: tuple[Tensor, Tensor, Tensor, Tensor], lengths_B: Tensor, mask_BT: Tensor) -> Tensor:
        """Map the four representations [B, T, D] of equation 20 or 21 to the final encoding [B, T, D]."""
        read = [norm(part) for norm, part in zip(self.part_norms, parts, strict=True)] if self.part_norms else parts
        x_BTD = self.compression(self.dropout(torch.cat(list(read), dim=-1)), lengths_B)  # (20) (21)
        if self.add_positions:
            x_BTD = x_BTD + sinusoidal_positions(x_BTD.shape[1], x_BTD.shape[2]).to(x_BTD)
        for layer in self.layers:
            x_BTD = layer(x_BTD, mask_BT)  # (24) to (26)
        fin_BTD: Tensor = self.final(self.dropout(self.norm(x_BTD)), lengths_B)  # (27)
        if self.input_residual:
            fin_BTD = fin_BTD + parts[0] * mask_BT[:, :, None].to(fin_BTD.dtype)
        return fin_BTD


class Encoder(nn.Module):
    """Encoder of context and question (appendix C)."""

    def __init__(self, config: ModelConfig, vector_width: int) -> None:
        super().__init__()
        self.projection = nn.Linear(vector_width, config.width)  # W_1 (15)
        self.independent = BiLSTM(config.width, config.width)  # BiLSTM_ind, shared (16)
        self.coattention_residual = config.coattention_residual
        self.coattention = Coattention(config.width)
        self.context_tail = SequenceTail(config)
        self.question_tail = SequenceTail(config)
        self.word_dropout = nn.Dropout(config.dropout)
        self.dropout = SequenceDropout(config.dropout)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def project(self, vectors: Tensor) -> Tensor:
        """Project word vectors [..., E] to [..., D] (equation 15)."""
        projected: Tensor = self.projection(self.word_dropout(vectors))
        return projected

    def forward(
        self, c_proj_BCD: Tensor, q_proj_BQD: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return C_fin [B, C, D], Q_fin [B, Q, D] and the masks [B, C] and [B, Q]."""
        c_mask_BC = length_mask(c_lengths_B, c_proj_BCD.shape[1])
        q_mask_BQ = length_mask(q_lengths_B, q_proj_BQD.shape[1])
        c_ind_BCD = self.independent(self.dropout(c_proj_BCD), c_lengths_B)  # (16)
        q_ind_BQD = self.independent(self.dropout(q_proj_BQD), q_lengths_B)
        c_read, q_read = c_ind_BCD, q_ind_BQD
        if self.coattention_residual:
            c_read, q_read = c_ind_BCD + c_proj_BCD, q_ind_BQD + q_proj_BQD
        q_sum, c_coa, c_sum, q_coa = self.coattention(c_read, q_read, c_mask_BC, q_mask_BQ)
        c_fin_BCD = self.context_tail((c_proj_BCD, c_ind_BCD, q_sum, c_coa), c_lengths_B, c_mask_BC)
        q_fin_BQD = self.question_tail((q_proj_BQD, q_ind_BQD, c_sum, q_coa), q_lengths_B, q_mask_BQ)
        return c_fin_BCD, q_fin_BQD, c_mask_BC, q_mask_BQ


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
        """Map [B, T, D] to [B, T, D].

        Args:
            a_BTD: representations of the answer.
            answer: what ``read_answer`` returned for them, the keys and values with those of earlier words, and the
                mask over these.
            context: keys, values and mask of the context.
        """
        a_BTD = self.around_self.leave(a_BTD, self.self_attention.attend(*answer))
        c_keys_BHCW, c_values_BHCW, c_mask_BC = context
        queries = self.context_attention.queries(self.around_context.enter(a_BTD))
        attended = self.context_attention.attend(queries, c_keys_BHCW, c_values_BHCW, c_mask_BC[:, None, None, :])
        a_BTD = self.around_context.leave(a_BTD, attended)  # (5)
        return self.around_ffn.leave(a_BTD, self.ffn(self.around_ffn.enter(a_BTD)))  # (6)

    def read_answer(self, a_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the self-attention's queries, keys and values of answer positions, each [B, H, T, W]."""
        return self.self_attention.queries_keys_values(self.around_self.enter(a_BTD))


class Decoder(nn.Module):
    """Answer representations, decoder attention, LSTM and multi-pointer-generator (section 3)."""

    positions: Tensor

    def __init__(self, config: ModelConfig, vector_width: int, num_generated: int) -> None:
        super().__init__()
        width = config.width
        self.config = config
        self.projection = nn.Linear(vector_width, width)  # W_2 of equation 2
        self.start = nn.Parameter(torch.randn(width) * 0.1)  # stands for A_proj of the initialisation token
        self.register_buffer("positions", sinusoidal_positions(config.max_positions, width), persistent=False)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(width) if config.norm == "pre" else nn.Identity()
        self.start_norm = nn.LayerNorm(width) if config.decoder_start == "context" else nn.Identity()
        self.lstm = nn.LSTMCell(2 * width, width)
        self.context_query = nn.Linear(width, width, bias=False)  # W_2 of equation 8
        self.question_query = nn.Linear(width, width, bias=False)  # W_3
        self.context_state = nn.Linear(2 * width, width, bias=False)  # W_4
        self.question_state = nn.Linear(2 * width, width, bias=False)  # W_5
        self.generator = nn.Linear(width, num_generated)  # W_v
        self.gamma = nn.Linear(3 * width, 1)  # W_pv
        self.lambda_ = nn.Linear(3 * width, 1)  # W_cq
        self.dropout = nn.Dropout(config.dropout)
        reset_lstm(self.lstm)
        for module in self.children():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def project(self, vectors: Tensor) -> Tensor:
        """Project the word vectors of answer words [..., E] to [..., D] (equation 2)."""
        projected: Tensor = self.projection(self.dropout(vectors))
        return projected

    def read_context(self, c_fin_BCD: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return keys and values of the context attention, each [B, H, C, W] for every layer."""
        pairs = [layer.context_attention.keys_values(c_fin_BCD) for layer in self.layers]  # type: ignore[union-attr,operator]
        return tuple(keys for keys, _ in pairs), tuple(values for _, values in pairs)

    def forward(self, a_proj_BAD: Tensor, encoded: Encoded) -> Mixture:
        """Return the mixture at every step, given the projected answer words shifted right (teacher forcing).

        ``a_proj_BAD[:, 0]`` must be ``start``.
        """
        num_steps = a_proj_BAD.shape[1]
        a_BAD = self.dropout(a_proj_BAD + self.positions[:num_steps].to(a_proj_BAD.dtype))  # (3)
        causal_AA = torch.ones(num_steps, num_steps, dtype=torch.bool, device=a_BAD.device).tril()
        for i, layer in enumerate(self.layers):
            context = (encoded.keys_BHCW[i], encoded.values_BHCW[i], encoded.c_mask_BC)
            a_BAD = layer(a_BAD, (*layer.read_answer(a_BAD), causal_AA), context)  # type: ignore[operator]  # (4) to (6)
        a_self_BAD = self.norm(a_BAD)
        h_BD, cell_BD, c_tilde_BD = self.first_recurrence(encoded)
        steps = []
        for t in range(num_steps):
            h_BD, cell_BD, c_tilde_BD, *rest = self._recur(a_self_BAD[:, t], h_BD, cell_BD, c_tilde_BD, encoded)
            steps.append((h_BD, c_tilde_BD, *rest))
        h_BAD, c_tilde_BAD, q_tilde_BAD, alpha_c_BAC, alpha_q_BAQ = (
            torch.stack(x, dim=1) for x in zip(*steps, strict=True)
        )
        return self._mix(a_self_BAD, h_BAD, c_tilde_BAD, q_tilde_BAD, alpha_c_BAC, alpha_q_BAQ)

    def initial_state(self, encoded: Encoded, capacity: int) -> DecoderState:
        """Return the state before the first step, with room for ``capacity`` steps."""
        h_BD, cell_BD, c_tilde_BD = self.first_recurrence(encoded)
        config = self.config
        empty_BHKW = h_BD.new_zeros(h_BD.shape[0], config.num_heads, capacity, config.head_width)
        caches = (empty_BHKW,) * config.num_layers
        return DecoderState(h_BD, cell_BD, c_tilde_BD, caches, caches)

    def step(
        self, a_proj_BD: Tensor, position_B: Tensor, state: DecoderState, encoded: Encoded
    ) -> tuple[Mixture, DecoderState]:
        """Take one step: the same function as ``forward``, one position at a time.

        Args:
            a_proj_BD: projected previous word, ``start`` at the first step.
            position_B: number of the step, the same for every row in lock step or not.
            state: what the previous step left.
            encoded: the encoder's output.
        """
        a_BTD = (a_proj_BD + self.positions[position_B])[:, None]  # T = 1
        slot_K = torch.arange(state.keys_BHKW[0].shape[2], device=a_BTD.device)
        here_BK = slot_K[None, :] == position_B[:, None]
        so_far_BK = slot_K[None, :] <= position_B[:, None]
        all_keys, all_values = [], []
        for i, layer in enumerate(self.layers):
            query_BHTW, key_BHTW, value_BHTW = layer.read_answer(a_BTD)  # type: ignore[operator]
            keys_BHKW = torch.where(here_BK[:, None, :, None], key_BHTW, state.keys_BHKW[i])
            values_BHKW = torch.where(here_BK[:, None, :, None], value_BHTW, state.values_BHKW[i])
            context = (encoded.keys_BHCW[i], encoded.values_BHCW[i], encoded.c_mask_BC)
            a_BTD = layer(a_BTD, (query_BHTW, keys_BHKW, values_BHKW, so_far_BK[:, None, None, :]), context)
            all_keys.append(keys_BHKW)
            all_values.append(values_BHKW)
        a_self_BD = self.norm(a_BTD[:, 0])
        h_BD, cell_BD, c_tilde_BD, *rest = self._recur(a_self_BD, state.h_BD, state.cell_BD, state.c_tilde_BD, encoded)
        mixture = self._mix(a_self_BD, h_BD, c_tilde_BD, *rest)
        return mixture, DecoderState(h_BD, cell_BD, c_tilde_BD, tuple(all_keys), tuple(all_values))

    def first_recurrence(self, encoded: Encoded) -> tuple[Tensor, Tensor, Tensor]:
        """Return h_0, the cell and the recurrent context state before the first step; the last is zeros."""
        c_fin = encoded.c_fin_BCD.float()
        zeros_BD = torch.zeros_like(c_fin[:, 0])
        if self.config.decoder_start == "zeros":
            return zeros_BD, zeros_BD, zeros_BD
        mask_BC1 = encoded.c_mask_BC[:, :, None].to(c_fin.dtype)
        start_BD = self.start_norm((c_fin * mask_BC1).sum(dim=1) / mask_BC1.sum(dim=1))
        return torch.tanh(start_BD), start_BD, zeros_BD

    def _recur(
        self, a_self_BD: Tensor, h_BD: Tensor, cell_BD: Tensor, c_tilde_BD: Tensor, encoded: Encoded
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """One step of the LSTM and its two attentions (equations 7 to 9)."""
        read = self.dropout(torch.cat([a_self_BD, c_tilde_BD], dim=-1))
        h_BD, cell_BD = self.lstm(read, (h_BD, cell_BD))  # (7)
        scores_BC = (encoded.c_fin_BCD @ self.context_query(h_BD)[:, :, None])[:, :, 0]
        scores_BQ = (encoded.q_fin_BQD @ self.question_query(h_BD)[:, :, None])[:, :, 0]
        alpha_c_BC = masked_softmax(scores_BC, encoded.c_mask_BC)  # (8)
        alpha_q_BQ = masked_softmax(scores_BQ, encoded.q_mask_BQ)
        c_read_BD = (alpha_c_BC[:, None, :].to(encoded.c_fin_BCD.dtype) @ encoded.c_fin_BCD)[:, 0]
        q_read_BD = (alpha_q_BQ[:, None, :].to(encoded.q_fin_BQD.dtype) @ encoded.q_fin_BQD)[:, 0]
        c_tilde_BD = torch.tanh(self.context_state(self.dropout(torch.cat([c_read_BD, h_BD], dim=-1))))  # (9)
        q_tilde_BD = torch.tanh(self.question_state(self.dropout(torch.cat([q_read_BD, h_BD], dim=-1))))
        return h_BD, cell_BD, c_tilde_BD, q_tilde_BD, alpha_c_BC, alpha_q_BQ

    def _mix(
        self,
        a_self_BAD: Tensor,
        h_BAD: Tensor,
        c_tilde_BAD: Tensor,
        q_tilde_BAD: Tensor,
        alpha_c_BAC: Tensor,
        alpha_q_BAQ: Tensor,
    ) -> Mixture:
        """The two switches and the generator (equations 11 and 12); the axis A may be missing."""
        p_vocab_BAV = torch.softmax(self.generator(self.dropout(c_tilde_BAD)).float(), dim=-1)  # (11)
        gamma_BA = torch.sigmoid(self.gamma(torch.cat([c_tilde_BAD, h_BAD, a_self_BAD], dim=-1)).float())[
            ..., 0
        ]  # (12)
        lambda_BA = torch.sigmoid(self.lambda_(torch.cat([q_tilde_BAD, h_BAD, a_self_BAD], dim=-1)).float())[..., 0]
        return Mixture(p_vocab_BAV, alpha_c_BAC, alpha_q_BAQ, gamma_BA, lambda_BA)


class MQAN(nn.Module):
    """The whole network over word vectors; it knows no words."""

    def __init__(self, config: ModelConfig, vector_width: int, num_generated: int) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config, vector_width)
        self.decoder = Decoder(config, vector_width, num_generated)

    def encode(self, c_proj_BCD: Tensor, q_proj_BQD: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor) -> Encoded:
        """Encode projected contexts [B, C, D] and questions [B, Q, D]."""
        c_fin, q_fin, c_mask, q_mask = self.encoder(c_proj_BCD, q_proj_BQD, c_lengths_B, q_lengths_B)
        keys, values = self.decoder.read_context(c_fin)
        return Encoded(c_fin, q_fin, keys, values, c_mask, q_mask)
