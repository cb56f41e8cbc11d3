"""The decoder of MQAN: answer attention, LSTM and multi-pointer-generator (section 3 of McCann et al. 2018).

``Decoder.forward`` (teacher forcing) and ``Decoder.step`` (greedy decoding) are one function. Over a pretrained reader
it is tied to that (``tie.py``), which adds terms: the *ties* here, None in the paper's decoder.

Shape letters: B batch, C context length, Q question length, J length of what the decoder attends to (C; C + Q where
both are one sequence), A answer length, K steps there is room for, D width, E vector width, H heads, W head width,
V generator pieces. Local names follow the paper.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mqan_training.model.heads import Alike
from mqan_training.model.layers import DecoderLayer, masked_softmax, reset_lstm, sinusoidal_positions
from mqan_training.model.tie import IsWord, Span, Tie, generate, switch, ties_of
from mqan_training.recipe import ModelConfig


class Recurrence(NamedTuple):
    """What a step of equations 7 to 9 leaves for the next."""

    h_BD: Tensor
    cell_BD: Tensor
    c_tilde_BD: Tensor
    pointer_BC: Tensor  # alpha^C, times lambda where the decoder is tied; at first zeros
    question_pointer_BQ: Tensor


class Encoded(NamedTuple):
    """What the decoder reads of a batch of contexts and questions.

    Keys and values of the context attention are one tensor a decoder layer, so that they are computed once. ``span`` is
    there where the reader is a pretrained one; so are ``alike`` and ``states``, but not in the graph of a step.
    """

    c_fin_BCD: Tensor
    q_fin_BQD: Tensor
    keys_BHJW: tuple[Tensor, ...]
    values_BHJW: tuple[Tensor, ...]
    c_mask_BC: Tensor
    q_mask_BQ: Tensor
    span: Span | None = None
    alike: Alike | None = None
    states: tuple[Tensor, Tensor] | None = None  # of the reader, of context [B, C, M] and question [B, Q, M]

    def in_float32(self) -> "Encoded":
        keys, values = (tuple(tensor.float() for tensor in some) for some in (self.keys_BHJW, self.values_BHJW))
        span = None if self.span is None else self.span._replace(first_BD=self.span.first_BD.float())
        read = self.c_fin_BCD.float(), self.q_fin_BQD.float(), keys, values, self.c_mask_BC, self.q_mask_BQ
        return Encoded(*read, span, self.alike, self.states)


class Mixture(NamedTuple):
    """The terms of equation 13 at each step; without the axis A where there is but one."""

    p_vocab_BAV: Tensor
    p_context_BAC: Tensor  # attention over context positions, alpha^C
    p_question_BAQ: Tensor  # attention over question positions, alpha^Q
    gamma_BA: Tensor
    lambda_BA: Tensor


class DecoderState(NamedTuple):
    last: Recurrence
    keys_BHKW: tuple[Tensor, ...]  # of the answer, by layer
    values_BHKW: tuple[Tensor, ...]


class Decoder(nn.Module):
    """Answer representations, decoder attention, LSTM and multi-pointer-generator (section 3)."""

    positions: Tensor

    def __init__(self, config: ModelConfig, vector_width: int, num_generated: int, *, is_tied: bool = False) -> None:
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
        if config.question_pointer:
            self.question_query = nn.Linear(width, width, bias=False)  # W_3
        self.context_state = nn.Linear(2 * width, width, bias=False)  # W_4
        if config.question_pointer:
            self.question_state = nn.Linear(2 * width, width, bias=False)  # W_5
        self.generator = nn.Linear(width, num_generated)  # W_v
        self.gamma = nn.Linear(3 * width, 1)  # W_pv
        if config.question_pointer:
            self.lambda_ = nn.Linear(3 * width, 1)  # W_cq
        self.tie = Tie(width) if is_tied else None  # then the generator's second piece is a refusal
        self.dropout = nn.Dropout(config.dropout)
        reset_lstm(self.lstm)
        for module in self.children():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def project(self, vectors: Tensor) -> Tensor:
        return self.projection(self.dropout(vectors))

    def attended(self, encodings: tuple[Tensor, Tensor]) -> Tensor:
        """Return what the decoder attends to, along J: the context, or both where they were encoded as one sequence."""
        return encodings[0] if self.config.coattention else torch.cat(encodings, dim=1)

    def read_context(self, fin_BJD: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return keys and values of the context attention, each [B, H, J, W] for every layer."""
        pairs = [layer.context_attention.keys_values(fin_BJD) for layer in self.layers]  # type: ignore[union-attr,operator]
        return tuple(keys for keys, _ in pairs), tuple(values for _, values in pairs)

    def forward(self, a_proj_BAD: Tensor, encoded: Encoded, is_word: IsWord | None = None) -> Mixture:
        """Return the mixture at every step, given the projected answer words shifted right (teacher forcing).

        ``a_proj_BAD[:, 0]`` must be ``start``. A tied decoder needs ``is_word``, [B, A, C] and [B, A, Q].
        """
        num_steps = a_proj_BAD.shape[1]
        a_BAD = self.dropout(a_proj_BAD + self.positions[:num_steps].to(a_proj_BAD.dtype))  # (3)
        causal_AA = torch.ones(num_steps, num_steps, dtype=torch.bool, device=a_BAD.device).tril()
        reads = self._reads(encoded)
        for i, layer in enumerate(self.layers):
            context = (encoded.keys_BHJW[i], encoded.values_BHJW[i], reads[1])
            a_BAD = layer(a_BAD, (*layer.read_answer(a_BAD), causal_AA), context)  # type: ignore[operator]  # (4) to (6)
        a_self_BAD = self.norm(a_BAD)
        constants = self._constants(encoded)
        first = self.first_recurrence(encoded)
        before, step = self._recur(a_self_BAD[:, 0], first, encoded, reads, ties_of(constants))
        steps = [step]
        for t in range(1, num_steps):
            words = None if is_word is None else (is_word[0][:, t], is_word[1][:, t])
            before, step = self.taught_step(a_self_BAD[:, t], before, encoded, reads, words, constants)
            steps.append(step)
        stacked = (torch.stack(x, dim=1) for x in zip(*steps, strict=True))
        return self._mix(a_self_BAD, encoded, *stacked)

    def taught_step(
        self,
        a_self_BD: Tensor,
        before: Recurrence,
        encoded: Encoded,
        reads: tuple[Tensor, Tensor],
        is_word: IsWord | None,
        constants: Any,
    ) -> tuple[Recurrence, tuple[Tensor, ...]]:
        """Take a step after the first under teacher forcing; return what it leaves, and what ``_mix`` needs of it."""
        return self._recur(a_self_BD, before, encoded, reads, ties_of(constants, before[3:], is_word))

    def initial_state(self, encoded: Encoded, capacity: int) -> DecoderState:
        before, config = self.first_recurrence(encoded), self.config
        empty_BHKW = before[0].new_zeros(before[0].shape[0], config.num_heads, capacity, config.head_width)
        caches = (empty_BHKW,) * config.num_layers
        return DecoderState(before, caches, caches)

    def step(
        self,
        a_proj_BD: Tensor,
        position_B: Tensor,
        state: DecoderState,
        encoded: Encoded,
        is_word: IsWord | None = None,
    ) -> tuple[Mixture, DecoderState]:
        """Take one step: the same function as ``forward``, one position at a time.

        Rows may be at different steps. The first one's word is ``start``; a tied decoder needs ``is_word``.
        """
        a_BTD = (a_proj_BD + self.positions.index_select(0, position_B))[:, None]  # T = 1
        reads = self._reads(encoded)
        all_keys, all_values = [], []
        for i, layer in enumerate(self.layers):
            slot_1K = torch.arange(state.keys_BHKW[0].shape[2], device=a_BTD.device)[None, :]
            here_BK, so_far_BK = slot_1K == position_B[:, None], slot_1K <= position_B[:, None]
            query_BHTW, key_BHTW, value_BHTW = layer.read_answer(a_BTD)  # type: ignore[operator]
            keys_BHKW = torch.where(here_BK[:, None, :, None], key_BHTW, state.keys_BHKW[i])
            values_BHKW = torch.where(here_BK[:, None, :, None], value_BHTW, state.values_BHKW[i])
            context = (encoded.keys_BHJW[i], encoded.values_BHJW[i], reads[1])
            a_BTD = layer(a_BTD, (query_BHTW, keys_BHKW, values_BHKW, so_far_BK[:, None, None, :]), context)
            all_keys.append(keys_BHKW)
            all_values.append(values_BHKW)
        a_self_BD = self.norm(a_BTD.squeeze(1))
        ties = ties_of(self._constants(encoded), state.last[3:], is_word, position_B)
        after, read = self._recur(a_self_BD, state.last, encoded, reads, ties)
        return self._mix(a_self_BD, encoded, *read), DecoderState(after, tuple(all_keys), tuple(all_values))

    def first_recurrence(self, encoded: Encoded) -> Recurrence:
        """Return h_0, the cell, and zeros: the context state and the pointers before the first step."""
        c_fin = encoded.c_fin_BCD.float()
        zeros_BD = torch.zeros_like(c_fin[:, 0])
        nowhere_BC = torch.zeros_like(encoded.c_mask_BC, dtype=c_fin.dtype)
        rest = zeros_BD, nowhere_BC, torch.zeros_like(encoded.q_mask_BQ, dtype=c_fin.dtype)
        if encoded.span is not None:
            summary_BD = encoded.span.first_BD.float()
        elif self.config.decoder_start == "zeros":
            return Recurrence(zeros_BD, zeros_BD, *rest)
        else:
            mask_B1C = encoded.c_mask_BC[:, None].to(c_fin.dtype)
            # a product: onnxruntime sums along C in an order that depends on the number of rows
            summary_BD = torch.bmm(mask_B1C, c_fin)[:, 0] / mask_B1C.sum(dim=2)
        start_BD = self.start_norm(summary_BD)
        return Recurrence(torch.tanh(start_BD), start_BD, *rest)

    def _constants(self, encoded: Encoded) -> Any:
        return self.tie and self.tie.constants(encoded.span, encoded.c_mask_BC, encoded.q_mask_BQ)

    def _reads(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        fin_BJD = self.attended((encoded.c_fin_BCD, encoded.q_fin_BQD))
        return fin_BJD, self.attended((encoded.c_mask_BC, encoded.q_mask_BQ))

    def _recur(
        self, a_self_BD: Tensor, before: Recurrence, encoded: Encoded, reads: tuple[Tensor, Tensor], ties: Any
    ) -> tuple[Recurrence, tuple[Tensor, ...]]:
        """One step of the LSTM, its two attentions and the switch between them (equations 7 to 9, and 12's lambda)."""
        config = self.config
        read = self.dropout(torch.cat([a_self_BD, before.c_tilde_BD], dim=-1))
        h_BD, cell_BD = self.lstm(read, (before.h_BD, before.cell_BD))  # (7)
        fin_BJD, mask_BJ = reads
        scores_BJ = (fin_BJD @ self.context_query(h_BD)[:, :, None]).squeeze(2)
        scores_BQ = torch.zeros_like(encoded.q_mask_BQ, dtype=scores_BJ.dtype)
        if config.question_pointer:
            scores_BQ = (encoded.q_fin_BQD @ self.question_query(h_BD)[:, :, None]).squeeze(2)
        if self.tie is not None:
            scores_BJ, scores_BQ = self.tie.scores(scores_BJ, scores_BQ, h_BD, ties)
        alpha_BJ = alpha_c_BC = masked_softmax(scores_BJ, mask_BJ)  # (8)
        if not config.coattention:  # the question's part is read, but only words of the context are copied
            alpha_c_BC = masked_softmax(scores_BJ[:, : encoded.c_mask_BC.shape[1]], encoded.c_mask_BC)
        c_read_BD = (alpha_BJ[:, None, :].to(fin_BJD.dtype) @ fin_BJD).squeeze(1)
        c_tilde_BD = torch.tanh(self.context_state(self.dropout(torch.cat([c_read_BD, h_BD], dim=-1))))  # (9)
        if not config.question_pointer:
            nowhere_BQ = torch.zeros_like(encoded.q_mask_BQ, dtype=alpha_c_BC.dtype)
            after = Recurrence(h_BD, cell_BD, c_tilde_BD, alpha_c_BC, nowhere_BQ)
            return after, (h_BD, c_tilde_BD, alpha_c_BC, nowhere_BQ, torch.ones_like(h_BD[:, 0]))
        pointed_BQ = encoded.q_mask_BQ if encoded.span is None else encoded.span.pointed_BQ
        alpha_q_BQ = masked_softmax(scores_BQ, pointed_BQ)
        q_read_BD = (alpha_q_BQ[:, None, :].to(encoded.q_fin_BQD.dtype) @ encoded.q_fin_BQD).squeeze(1)
        q_tilde_BD = torch.tanh(self.question_state(self.dropout(torch.cat([q_read_BD, h_BD], dim=-1))))
        logit_B = self.lambda_(torch.cat([q_tilde_BD, h_BD, a_self_BD], dim=-1)).float().squeeze(-1)
        lambda_B = torch.sigmoid(logit_B) if self.tie is None else switch(logit_B, ties)  # (12)
        read_of = h_BD, c_tilde_BD, alpha_c_BC, alpha_q_BQ, lambda_B
        if self.tie is None:
            return Recurrence(h_BD, cell_BD, c_tilde_BD, alpha_c_BC, alpha_q_BQ), read_of
        pointers = lambda_B[:, None] * alpha_c_BC, (1 - lambda_B[:, None]) * alpha_q_BQ
        return Recurrence(h_BD, cell_BD, c_tilde_BD, *pointers), (*read_of, *self.tie.terms(h_BD, ties))

    def _mix(
        self,
        a_self_BAD: Tensor,
        encoded: Encoded,
        h_BAD: Tensor,
        c_tilde_BAD: Tensor,
        alpha_c_BAC: Tensor,
        alpha_q_BAQ: Tensor,
        lambda_BA: Tensor,
        *terms: Tensor,
    ) -> Mixture:
        """The generator and its switch (equations 11 and 12); the axis A may be missing."""
        logits_BAV = self.generator(self.dropout(c_tilde_BAD)).float()
        read_c = torch.cat([c_tilde_BAD, h_BAD, a_self_BAD], dim=-1)
        gamma_BA = self.gamma(read_c).float().squeeze(-1)
        if encoded.span is None:
            p_vocab_BAV, gamma_BA = torch.softmax(logits_BAV, dim=-1), gamma_BA.sigmoid()
        else:
            p_vocab_BAV, gamma_BA = generate(logits_BAV, gamma_BA, encoded.span.allowed_B3, *terms)
        return Mixture(p_vocab_BAV, alpha_c_BAC, alpha_q_BAQ, gamma_BA, lambda_BA)
