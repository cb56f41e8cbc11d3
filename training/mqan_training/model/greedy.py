"""Greedy decoding: the choice of each word out of the mixture, and the loop over steps.

``GreedyStep`` is the module that is exported; validation during training runs it in torch.

Shape letters as in ``decoder.py``, and: U slots (distinct pieces of context and question), K steps there is room for,
F fields of the trace.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mqan_core.answer.trace import NUM_PLAIN_FIELDS, TraceField
from mqan_core.text.vocab import END_ID, REFUSAL_ID
from mqan_training.model.decoder import Decoder, DecoderState, Encoded


class SlotBatch(NamedTuple):
    """Slots of a batch of requests, padded, and the decoder inputs that words stand for.

    ``slot_ids_BU`` is V where a slot has no generator id; ``slot_inputs_BUD`` and ``generator_inputs_VD`` are the
    projected vectors (equation 2) of the slots and of the generator's pieces.
    """

    c_slots_BC: Tensor
    q_slots_BQ: Tensor
    slot_ids_BU: Tensor
    slot_inputs_BUD: Tensor
    generator_inputs_VD: Tensor


class LoopState(NamedTuple):
    input_BD: Tensor
    position_B: Tensor
    finished_B: Tensor
    decoder: DecoderState
    trace_BKF: Tensor
    attended_BC: Tensor | None = None  # none before the first step


class GreedyStep(nn.Module):
    """One step of greedy decoding with exact attribution.

    The vocabulary is touched once: candidates are the slots, with all their mass, and the best generator piece. A
    generator piece that is also a slot scores at least as high as that slot, so the result is the exact argmax of
    equation 13 over the union of the three sources.
    """

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder
        self.refuses = decoder.tie is not None

    def start(self, encoded: Encoded, capacity: int) -> LoopState:
        batch = encoded.c_fin_BCD.shape[0]
        device = encoded.c_fin_BCD.device
        return LoopState(
            self.decoder.start.expand(batch, -1),
            torch.zeros(batch, dtype=torch.int64, device=device),
            torch.zeros(batch, dtype=torch.bool, device=device),
            self.decoder.initial_state(encoded, capacity),
            torch.zeros(batch, capacity, len(TraceField) if self.refuses else NUM_PLAIN_FIELDS, device=device),
        )

    def forward(self, encoded: Encoded, request: SlotBatch, state: LoopState) -> LoopState:
        """Choose the next word of every row and advance; rows that have ended go on harmlessly."""
        is_word = None
        if self.refuses:  # which words the previous one is
            at_B11 = (state.position_B - 1).clamp(min=0)[:, None, None]
            last_BF = state.trace_BKF.gather(1, at_B11.expand(-1, 1, state.trace_BKF.shape[2]))[:, 0]
            slot_B = torch.where(state.position_B > 0, last_BF[:, TraceField.SLOT].to(torch.int64), -1)
            is_word = request.c_slots_BC == slot_B[:, None], request.q_slots_BQ == slot_B[:, None]
        mixture, decoder_state = self.decoder.step(state.input_BD, state.position_B, state.decoder, encoded, is_word)
        p_vocab_BV, alpha_c_BC, alpha_q_BQ, gamma_B, lambda_B = mixture
        num_generated = p_vocab_BV.shape[1]
        gamma_B1, lambda_B1 = gamma_B[:, None], lambda_B[:, None]

        nothing_BU = torch.zeros_like(request.slot_ids_BU, dtype=p_vocab_BV.dtype)
        from_c_BU = nothing_BU.scatter_add(1, request.c_slots_BC, alpha_c_BC) * ((1 - gamma_B1) * lambda_B1)  # (10)
        from_q_BU = nothing_BU.scatter_add(1, request.q_slots_BQ, alpha_q_BQ) * ((1 - gamma_B1) * (1 - lambda_B1))
        generated_BU = request.slot_ids_BU < num_generated
        ids_BU = request.slot_ids_BU.clamp(max=num_generated - 1)
        from_v_BU = torch.where(generated_BU, p_vocab_BV.gather(1, ids_BU), nothing_BU) * gamma_B1
        slot_p_B1, slot_B1 = (from_c_BU + from_q_BU + from_v_BU).max(dim=1, keepdim=True)  # (13)
        piece_p_B1, piece_B1 = p_vocab_BV.max(dim=1, keepdim=True)
        piece_p_B1 = piece_p_B1 * gamma_B1
        is_slot_B1 = slot_p_B1 >= piece_p_B1

        zero_B1 = torch.zeros_like(slot_p_B1)
        piece = piece_B1.to(slot_p_B1.dtype)
        as_slot = (
            slot_B1.to(slot_p_B1.dtype),
            piece,
            slot_p_B1,
            *(part.gather(1, slot_B1) for part in (from_c_BU, from_q_BU, from_v_BU)),
        )
        as_piece = (zero_B1 - 1, piece, piece_p_B1, zero_B1, zero_B1, piece_p_B1)
        chosen = (
            torch.where(is_slot_B1, torch.cat(as_slot, dim=1), torch.cat(as_piece, dim=1)),
            gamma_B1,
            lambda_B1,
            _place(request.c_slots_BC, slot_B1, alpha_c_BC),
            _place(request.q_slots_BQ, slot_B1, alpha_q_BQ),
            *((p_vocab_BV[:, REFUSAL_ID : REFUSAL_ID + 1] * gamma_B1,) if self.refuses else ()),
        )
        here_BK = torch.arange(state.trace_BKF.shape[1], device=slot_B1.device)[None, :] == state.position_B[:, None]
        trace_BKF = torch.where(here_BK[:, :, None], torch.cat(chosen, dim=1)[:, None, :], state.trace_BKF)

        width = state.input_BD.shape[1]
        slot_input_B1D = request.slot_inputs_BUD.gather(1, slot_B1[:, :, None].expand(-1, -1, width))
        piece_input_BD = self.piece_inputs(request, piece_B1.squeeze(1))
        input_BD = torch.where(is_slot_B1, slot_input_B1D.squeeze(1), piece_input_BD)
        ended_B = (~is_slot_B1 & (piece_B1 == END_ID)).squeeze(1)
        if self.refuses:
            ended_B = ended_B | (~is_slot_B1 & (piece_B1 == REFUSAL_ID)).squeeze(1)
        position_B, finished_B = state.position_B + 1, state.finished_B | ended_B
        return LoopState(input_BD, position_B, finished_B, decoder_state, trace_BKF, alpha_c_BC)

    def piece_inputs(self, request: SlotBatch, piece_B: Tensor) -> Tensor:
        return request.generator_inputs_VD.index_select(0, piece_B)


def _place(slots_BT: Tensor, slot_B1: Tensor, alpha_BT: Tensor) -> Tensor:
    return torch.where(slots_BT == slot_B1, alpha_BT, -1.0).argmax(dim=1, keepdim=True).to(alpha_BT.dtype)


@torch.no_grad()
def greedy_trace(
    step: Callable[[Encoded, SlotBatch, LoopState], LoopState],
    encoded: Encoded,
    request: SlotBatch,
    state: LoopState,
    max_steps: int,
) -> np.ndarray[tuple[int, int, int], np.dtype[np.float32]]:
    """Run steps until every row has ended or taken ``max_steps``; return the trace, float32 [B, steps, F]."""
    while (taken := int(state.position_B[0])) < max_steps and not bool(state.finished_B.all()):
        state = step(encoded, request, state)
    return state.trace_BKF[:, :taken].cpu().numpy()
