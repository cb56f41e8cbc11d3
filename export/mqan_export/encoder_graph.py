"""Trace the encoder: one input vector a slot and the slot of each position -> all that the decoding step reads."""

import copy

from torch import Tensor, nn

from mqan_export.lstm import replace_bilstms
from mqan_training.model.network import Network, gather_slots


class EncoderGraph(nn.Module):
    """The graph ``encoder.onnx``; inputs and outputs are those of ``graphs.ENCODER_INPUTS`` and ``encoder_outputs``."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.mqan = copy.deepcopy(network.mqan).eval()
        replace_bilstms(self.mqan)

    def forward(
        self,
        vectors: Tensor,
        context_slots: Tensor,
        question_slots: Tensor,
        context_lengths: Tensor,
        question_lengths: Tensor,
    ) -> tuple[Tensor, ...]:
        """Encode a batch."""
        projected = self.mqan.encoder.project(vectors)
        c_proj, q_proj = gather_slots(projected, context_slots), gather_slots(projected, question_slots)
        encoded = self.mqan.encode(c_proj, q_proj, context_lengths, question_lengths)
        decoder = self.mqan.decoder
        first_input = decoder.start.expand(vectors.shape[0], -1)
        first_hidden, first_cell, *_ = decoder.first_recurrence(encoded)
        return (
            encoded.c_fin_BCD,
            encoded.q_fin_BQD,
            *encoded.keys_BHJW,
            *encoded.values_BHJW,
            encoded.c_mask_BC,
            encoded.q_mask_BQ,
            decoder.project(vectors),
            first_input,
            first_hidden,
            first_cell,
        )
