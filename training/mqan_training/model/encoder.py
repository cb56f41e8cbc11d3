"""The encoder of MQAN: context and question, read jointly (appendix C of McCann et al. 2018).

Shape letters: B batch, C context length, Q question length, J = C + Q, T either, D width, E vector width.
"""

import torch
from torch import Tensor, nn

from mqan_training.model import layers
from mqan_training.recipe import ModelConfig


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
        s_cq_BXY = layers.masked_softmax(affinity_BXY, c_mask_BX1, dim=1).to(c_BXD.dtype)  # (17) columns sum to 1
        s_qc_BXY = layers.masked_softmax(affinity_BXY, q_mask_B1Y, dim=2).to(c_BXD.dtype)  # (17) S_qc transposed
        c_sum_BYD = s_cq_BXY.transpose(1, 2) @ c_BXD  # (18)
        q_sum_BXD = s_qc_BXY @ q_BYD  # (18)
        c_coa_BXD = s_qc_BXY @ c_sum_BYD  # (19)
        q_coa_BYD = s_cq_BXY.transpose(1, 2) @ q_sum_BXD  # (19)
        return q_sum_BXD[:, 1:], c_coa_BXD[:, 1:], c_sum_BYD[:, 1:], q_coa_BYD[:, 1:]


class SelfAttentiveLayer(nn.Module):
    """Multi-head self-attention and feed-forward network of the encoder (equations 24 to 26)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = layers.MultiHead(config.width, config.num_heads, config.head_width, config.attention_dropout)
        self.ffn = layers.FeedForward(config.width, config.ffn_width, config.dropout)
        self.around_attention = layers.Residual(config.width, config.norm, config.dropout)
        self.around_ffn = layers.Residual(config.width, config.norm, config.dropout)

    def forward(self, x_BTD: Tensor, mask: Tensor) -> Tensor:
        read = self.around_attention.enter(x_BTD)
        attended = self.attention.attend(*self.attention.queries_keys_values(read), mask)
        x_BTD = self.around_attention.leave(x_BTD, attended)
        return self.around_ffn.leave(x_BTD, self.ffn(self.around_ffn.enter(x_BTD)))


class SequenceTail(nn.Module):
    """Compression, self-attention and final encoding of a sequence (equations 20, 24 to 27)."""

    def __init__(self, config: ModelConfig, num_parts: int) -> None:
        super().__init__()
        self.compression = layers.BiLSTM(num_parts * config.width, config.width)  # BiLSTM_com
        self.layers = nn.ModuleList(SelfAttentiveLayer(config) for _ in range(config.num_layers))
        self.final = layers.BiLSTM(config.width, config.width)  # BiLSTM_fin
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.dropout = layers.SequenceDropout(config.dropout)
        self.input_residual = config.input_residual

    def forward(self, parts: tuple[Tensor, ...], lengths_B: Tensor, mask_BT: Tensor) -> Tensor:
        """Map representations [B, T, D], the projected inputs first, to the final encoding [B, T, D]."""
        x_BTD = self.compression(self.dropout(torch.cat(parts, dim=-1)), lengths_B)  # (20) (21)
        for layer in self.layers:
            x_BTD = layer(x_BTD, mask_BT[:, None, None, :])  # (24) to (26)
        fin_BTD: Tensor = self.final(self.dropout(self.norm(x_BTD)), lengths_B)  # (27)
        if self.input_residual:
            fin_BTD = fin_BTD + parts[0] * mask_BT[:, :, None].to(fin_BTD.dtype)
        return fin_BTD


class Encoder(nn.Module):
    """Encoder of context and question (appendix C), or of both as one sequence where there is no coattention."""

    def __init__(self, config: ModelConfig, vector_width: int) -> None:
        super().__init__()
        self.projection = nn.Linear(vector_width, config.width)  # W_1 (15)
        self.independent = layers.BiLSTM(config.width, config.width)  # BiLSTM_ind, shared (16)
        self.config = config
        if config.coattention:
            self.coattention = Coattention(config.width)
            self.context_tail = SequenceTail(config, 4)
            if config.question_pointer:  # nothing else reads Q_fin
                self.question_tail = SequenceTail(config, 4)
        else:
            self.joined_tail = SequenceTail(config, 2)
        self.word_dropout = nn.Dropout(config.dropout)
        self.dropout = layers.SequenceDropout(config.dropout)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def project(self, vectors: Tensor) -> Tensor:
        return self.projection(self.word_dropout(vectors))

    def forward(
        self, c_proj_BCD: Tensor, q_proj_BQD: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return C_fin [B, C, D], Q_fin [B, Q, D] (Q_ind where nothing reads it) and the masks [B, C] and [B, Q]."""
        c_mask_BC = layers.length_mask(c_lengths_B, c_proj_BCD.shape[1])
        q_mask_BQ = layers.length_mask(q_lengths_B, q_proj_BQD.shape[1])
        if not self.config.coattention:
            valid_BJ = torch.cat([c_mask_BC, q_mask_BQ], dim=1)
            fin = self._encode_joined(c_proj_BCD, q_proj_BQD, c_lengths_B, q_lengths_B, valid_BJ)
            return *fin, c_mask_BC, q_mask_BQ
        c_ind_BCD = self.independent(self.dropout(c_proj_BCD), c_lengths_B)  # (16)
        q_ind_BQD = self.independent(self.dropout(q_proj_BQD), q_lengths_B)
        c_read, q_read = c_ind_BCD, q_ind_BQD
        if self.config.coattention_residual:
            c_read, q_read = c_ind_BCD + c_proj_BCD, q_ind_BQD + q_proj_BQD
        q_sum, c_coa, c_sum, q_coa = self.coattention(c_read, q_read, c_mask_BC, q_mask_BQ)
        c_fin_BCD = self.context_tail((c_proj_BCD, c_ind_BCD, q_sum, c_coa), c_lengths_B, c_mask_BC)
        q_fin_BQD = q_ind_BQD
        if self.config.question_pointer:
            q_fin_BQD = self.question_tail((q_proj_BQD, q_ind_BQD, c_sum, q_coa), q_lengths_B, q_mask_BQ)
        return c_fin_BCD, q_fin_BQD, c_mask_BC, q_mask_BQ

    def _encode_joined(
        self, c_proj_BCD: Tensor, q_proj_BQD: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor, valid_BJ: Tensor
    ) -> tuple[Tensor, Tensor]:
        num_context, num_question = c_proj_BCD.shape[1], q_proj_BQD.shape[1]
        j_BJ = torch.arange(num_context + num_question, device=c_lengths_B.device)[None, :]
        first_B1 = c_lengths_B[:, None]  # where the question begins
        lengths_B = c_lengths_B + q_lengths_B
        from_BJ = torch.where(j_BJ < first_B1, j_BJ, j_BJ - first_B1 + num_context)
        from_BJ = from_BJ.clamp(max=num_context + num_question - 1)
        to_BJ = torch.where(j_BJ < num_context, j_BJ, j_BJ - num_context + first_B1)
        mask_BJ = layers.length_mask(lengths_B, num_context + num_question)
        proj_BJD = layers.gather_steps(torch.cat([c_proj_BCD, q_proj_BQD], dim=1), from_BJ)
        ind_BJD = self.independent(self.dropout(proj_BJD), lengths_B)
        fin_BJD = layers.gather_steps(self.joined_tail((proj_BJD, ind_BJD), lengths_B, mask_BJ), to_BJ)
        fin_BJD = fin_BJD * valid_BJ[:, :, None].to(fin_BJD.dtype)
        return fin_BJD[:, :num_context], fin_BJD[:, num_context:]
