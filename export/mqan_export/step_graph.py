"""Trace one step of greedy decoding, with the choice of the word and its attribution inside."""

import copy

import torch
from torch import Tensor, nn

from mqan_core.text.vocab import END_ID
from mqan_training.model.decoder import DecoderState, Encoded
from mqan_training.model.greedy import GreedyStep, LoopState, SlotBatch
from mqan_training.model.network import Network


class DecoderStepGraph(nn.Module):
    """The graph ``decoder_step.onnx``: ``graphs.step_constants`` and ``step_state`` in, the next state out."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        decoder = copy.deepcopy(network.mqan.decoder).eval()
        self.step = GreedyStep(decoder, END_ID)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Take one step; tensors in the order of ``graphs``."""
        num_layers = self.step.decoder.config.num_layers
        given = iter(tensors)

        def take(number: int) -> list[Tensor]:
            return [next(given) for _ in range(number)]

        context, question = take(2)
        keys, values, masks = tuple(take(num_layers)), tuple(take(num_layers)), take(2)
        encoded = Encoded(context, question, keys, values, masks[0], masks[1])
        slot_inputs, context_slots, question_slots, slot_ids, generator_inputs = take(5)
        slots = SlotBatch(context_slots, question_slots, slot_ids, slot_inputs, generator_inputs)
        word, position, finished, h, cell, c_tilde = take(6)
        caches = tuple(take(num_layers)), tuple(take(num_layers))
        # where the last step pointed, which only a decoder that is tied to its reader reads
        nowhere_BC, nowhere_BQ = (torch.zeros_like(mask, dtype=h.dtype) for mask in masks)
        decoder_state = DecoderState(h, cell, c_tilde, nowhere_BC, nowhere_BQ, *caches)
        after = self.step(encoded, slots, LoopState(word, position, finished, decoder_state, *take(1)))
        h, cell, c_tilde, _, _, keys, values = after.decoder
        return (
            after.input_BD,
            after.position_B,
            after.finished_B,
            *(h, cell, c_tilde),
            *keys,
            *values,
            after.trace_BKF,
        )
