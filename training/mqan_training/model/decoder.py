"""The decoder of MQAN: answer attention, LSTM and multi-pointer-generator (section 3 of McCann et al. 2018).

``Decoder.forward`` (teacher forcing) and ``Decoder.step`` (greedy decoding) are one function.

Shape letters: B batch, C context length, Q question length, J length of what the decoder attends to (C; C + Q where
both are one sequence), A answer length, K steps there is room for, D width, E vector width, H heads, W head width,
V generator pieces. Local names follow the paper.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mqan_training.config import ModelConfig
from mqan_training.model.layers import (
    FeedForward,
    MultiHead,
    Residual,
    masked_softmax,
    reset_lstm,
    sinusoidal_positions,
)

# What a step of equations 7 to 9 leaves for the next: h, the cell and c_tilde [B, D], alpha^C and the coverage [B, C].
Recurrence = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class Encoded(NamedTuple):
    """What the decoder reads of a batch of contexts and questions.

    Keys and values of the context attention are one tensor a decoder layer, so that they are computed once.
    """

    c_fin_BCD: Tensor
    q_fin_BQD: Tensor
    keys_BHJW: tuple[Tensor, ...]
    values_BHJW: tuple[Tensor, ...]
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

    The caches hold keys and values of the answer so far, one tensor a layer, with room for K steps. ``pointer_BC`` is
    where the step pointed in the context, ``coverage_BC`` the sum of this over all steps; zeros before the first.
    """

    h_BD: Tensor
    cell_BD: Tensor
    c_tilde_BD: Tensor
    pointer_BC: Tensor
    coverage_BC: Tensor
    keys_BHKW: tuple[Tensor, ...]
    values_BHKW: tuple[Tensor, ...]


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
        if config.pointer_shift:
            self.shift = nn.Linear(width, 1)
        if config.coverage:
            self.cover_query = nn.Linear(width, width, bias=False)
        if config.question_pointer:
            self.question_query = nn.Linear(width, width, bias=False)  # W_3
        self.context_state = nn.Linear(2 * width, width, bias=False)  # W_4
        if config.question_pointer:
            self.question_state = nn.Linear(2 * width, width, bias=False)  # W_5
        self.generator = nn.Linear(width, num_generated)  # W_v
        self.gamma = nn.Linear(3 * width, 1)  # W_pv
        if config.question_pointer:
            self.lambda_ = nn.Linear(3 * width, 1)  # W_cq
        self.dropout = nn.Dropout(config.dropout)
        reset_lstm(self.lstm)
        for module in self.children():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        if config.pointer_shift:
            nn.init.zeros_(self.shift.weight)  # a network that gains it answers as before
        if config.coverage:
            nn.init.zeros_(self.cover_query.weight)  # likewise

    def project(self, vectors: Tensor) -> Tensor:
        """Project the word vectors of answer words [..., E] to [..., D] (equation 2)."""
        projected: Tensor = self.projection(self.dropout(vectors))
        return projected

    def attended(self, encodings: tuple[Tensor, Tensor]) -> Tensor:
        """Return what the decoder attends to, along J, of two tensors for context [B, C, ...] and question [B, Q, ...].

        The context; both, where they were encoded as one sequence.
        """
        return encodings[0] if self.config.coattention else torch.cat(encodings, dim=1)

    def read_context(self, fin_BJD: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return keys and values of the context attention, each [B, H, J, W] for every layer."""
        pairs = [layer.context_attention.keys_values(fin_BJD) for layer in self.layers]  # type: ignore[union-attr,operator]
        return tuple(keys for keys, _ in pairs), tuple(values for _, values in pairs)

    def forward(self, a_proj_BAD: Tensor, encoded: Encoded) -> Mixture:
        """Return the mixture at every step, given the projected answer words shifted right (teacher forcing).

        ``a_proj_BAD[:, 0]`` must be ``start``.
        """
        num_steps = a_proj_BAD.shape[1]
        a_BAD = self.dropout(a_proj_BAD + self.positions[:num_steps].to(a_proj_BAD.dtype))  # (3)
        causal_AA = torch.ones(num_steps, num_steps, dtype=torch.bool, device=a_BAD.device).tril()
        reads = self._reads(encoded)
        for i, layer in enumerate(self.layers):
            context = (encoded.keys_BHJW[i], encoded.values_BHJW[i], reads[1])
            a_BAD = layer(a_BAD, (*layer.read_answer(a_BAD), causal_AA), context)  # type: ignore[operator]  # (4) to (6)
        a_self_BAD = self.norm(a_BAD)
        before = self.first_recurrence(encoded)
        steps = []
        for t in range(num_steps):
            before, q_tilde_BD, alpha_q_BQ = self._recur(a_self_BAD[:, t], before, encoded, reads)
            h_BD, _, c_tilde_BD, alpha_c_BC, _ = before
            steps.append((h_BD, c_tilde_BD, q_tilde_BD, alpha_c_BC, alpha_q_BQ))
        h_BAD, c_tilde_BAD, q_tilde_BAD, alpha_c_BAC, alpha_q_BAQ = (
            torch.stack(x, dim=1) for x in zip(*steps, strict=True)
        )
        return self._mix(a_self_BAD, h_BAD, c_tilde_BAD, q_tilde_BAD, alpha_c_BAC, alpha_q_BAQ)

    def initial_state(self, encoded: Encoded, capacity: int) -> DecoderState:
        """Return the state before the first step, with room for ``capacity`` steps."""
        before = self.first_recurrence(encoded)
        config = self.config
        empty_BHKW = before[0].new_zeros(before[0].shape[0], config.num_heads, capacity, config.head_width)
        caches = (empty_BHKW,) * config.num_layers
        return DecoderState(*before, caches, caches)

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
        a_BTD = (a_proj_BD + self.positions.index_select(0, position_B))[:, None]  # T = 1
        reads = self._reads(encoded)
        all_keys, all_values = [], []
        for i, layer in enumerate(self.layers):
            slot_K = torch.arange(state.keys_BHKW[0].shape[2], device=a_BTD.device)
            here_BK = slot_K[None, :] == position_B[:, None]
            so_far_BK = slot_K[None, :] <= position_B[:, None]
            query_BHTW, key_BHTW, value_BHTW = layer.read_answer(a_BTD)  # type: ignore[operator]
            keys_BHKW = torch.where(here_BK[:, None, :, None], key_BHTW, state.keys_BHKW[i])
            values_BHKW = torch.where(here_BK[:, None, :, None], value_BHTW, state.values_BHKW[i])
            context = (encoded.keys_BHJW[i], encoded.values_BHJW[i], reads[1])
            a_BTD = layer(a_BTD, (query_BHTW, keys_BHKW, values_BHKW, so_far_BK[:, None, None, :]), context)
            all_keys.append(keys_BHKW)
            all_values.append(values_BHKW)
        a_self_BD = self.norm(a_BTD.squeeze(1))
        before = state.h_BD, state.cell_BD, state.c_tilde_BD, state.pointer_BC, state.coverage_BC
        after, q_tilde_BD, alpha_q_BQ = self._recur(a_self_BD, before, encoded, reads)
        h_BD, _, c_tilde_BD, alpha_c_BC, _ = after
        mixture = self._mix(a_self_BD, h_BD, c_tilde_BD, q_tilde_BD, alpha_c_BC, alpha_q_BQ)
        return mixture, DecoderState(*after, tuple(all_keys), tuple(all_values))

    def first_recurrence(self, encoded: Encoded) -> Recurrence:
        """Return h_0, the cell, and zeros: the context state, the pointer and the coverage before the first step."""
        c_fin = encoded.c_fin_BCD.float()
        zeros_BD = torch.zeros_like(c_fin[:, 0])
        nowhere_BC = torch.zeros_like(encoded.c_mask_BC, dtype=c_fin.dtype)
        if self.config.decoder_start == "zeros":
            return zeros_BD, zeros_BD, zeros_BD, nowhere_BC, nowhere_BC
        mask_B1C = encoded.c_mask_BC[:, None].to(c_fin.dtype)
        # a product: onnxruntime sums along C in an order that depends on the number of rows
        sum_BD = torch.bmm(mask_B1C, c_fin)[:, 0]
        start_BD = self.start_norm(sum_BD / mask_B1C.sum(dim=2))
        return torch.tanh(start_BD), start_BD, zeros_BD, nowhere_BC, nowhere_BC

    def _reads(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """Return the encodings that the decoder attends to [B, J, D], and their mask [B, J]."""
        fin_BJD = self.attended((encoded.c_fin_BCD, encoded.q_fin_BQD))
        return fin_BJD, self.attended((encoded.c_mask_BC, encoded.q_mask_BQ))

    def _recur(
        self,
        a_self_BD: Tensor,
        before: Recurrence,
        encoded: Encoded,
        reads: tuple[Tensor, Tensor],
    ) -> tuple[Recurrence, Tensor, Tensor]:
        """One step of the LSTM and its two attentions (equations 7 to 9); returns q_tilde and alpha^Q beside it."""
        h_BD, cell_BD, c_tilde_BD, pointer_BC, coverage_BC = before
        read = self.dropout(torch.cat([a_self_BD, c_tilde_BD], dim=-1))
        h_BD, cell_BD = self.lstm(read, (h_BD, cell_BD))  # (7)
        fin_BJD, mask_BJ = reads
        scores_BJ = (fin_BJD @ self.context_query(h_BD)[:, :, None]).squeeze(2)
        if self.config.pointer_shift:
            next_BC = nn.functional.pad(pointer_BC[:, :-1], (1, 0))  # behind where the last step pointed
            scores_BJ = scores_BJ + self.shift(h_BD) * next_BC.to(scores_BJ.dtype)
        if self.config.coverage:  # equations 10 and 11 of See et al., with a product for their sum inside a tanh
            covered_BC = (fin_BJD @ self.cover_query(h_BD)[:, :, None]).squeeze(2)
            scores_BJ = scores_BJ + covered_BC * coverage_BC.to(scores_BJ.dtype)
        alpha_BJ = alpha_c_BC = masked_softmax(scores_BJ, mask_BJ)  # (8)
        if not self.config.coattention:  # the question's part is read, but only words of the context are copied
            alpha_c_BC = masked_softmax(scores_BJ[:, : encoded.c_mask_BC.shape[1]], encoded.c_mask_BC)
        c_read_BD = (alpha_BJ[:, None, :].to(fin_BJD.dtype) @ fin_BJD).squeeze(1)
        c_tilde_BD = torch.tanh(self.context_state(self.dropout(torch.cat([c_read_BD, h_BD], dim=-1))))  # (9)
        after = h_BD, cell_BD, c_tilde_BD, alpha_c_BC, coverage_BC + alpha_c_BC
        if not self.config.question_pointer:
            return after, c_tilde_BD, torch.zeros_like(encoded.q_mask_BQ, dtype=alpha_c_BC.dtype)
        scores_BQ = (encoded.q_fin_BQD @ self.question_query(h_BD)[:, :, None]).squeeze(2)
        alpha_q_BQ = masked_softmax(scores_BQ, encoded.q_mask_BQ)
        q_read_BD = (alpha_q_BQ[:, None, :].to(encoded.q_fin_BQD.dtype) @ encoded.q_fin_BQD).squeeze(1)
        q_tilde_BD = torch.tanh(self.question_state(self.dropout(torch.cat([q_read_BD, h_BD], dim=-1))))
        return after, q_tilde_BD, alpha_q_BQ

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
        read_c = torch.cat([c_tilde_BAD, h_BAD, a_self_BAD], dim=-1)
        gamma_BA = torch.sigmoid(self.gamma(read_c).float()).squeeze(-1)  # (12)
        lambda_BA = torch.ones_like(gamma_BA)  # all to the context where the question has no pointer
        if self.config.question_pointer:
            read_q = torch.cat([q_tilde_BAD, h_BAD, a_self_BAD], dim=-1)
            lambda_BA = torch.sigmoid(self.lambda_(read_q).float()).squeeze(-1)
        return Mixture(p_vocab_BAV, alpha_c_BAC, alpha_q_BAQ, gamma_BA, lambda_BA)
