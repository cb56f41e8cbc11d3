"""Trace one step of greedy decoding, with the choice of the word and its attribution inside."""

import copy

import torch
from torch import Tensor, nn

from mqan_core.attribution import NUM_PLAIN_FIELDS
from mqan_core.vocab import END_ID
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

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Return inputs to trace with; every dynamic size is different, so that none is taken for another."""
        batch, slots, context, question, room = 3, 11, 13, 7, 5
        config = self.step.decoder.config
        width, heads, head_width, layers = config.width, config.num_heads, config.head_width, config.num_layers
        attended = context if config.coattention else context + question
        num_generated = self.step.decoder.generator.out_features
        return (
            torch.randn(batch, context, width),
            torch.randn(batch, question, width),
            *(torch.randn(batch, heads, attended, head_width) for _ in range(2 * layers)),
            torch.ones(batch, context, dtype=torch.bool),
            torch.ones(batch, question, dtype=torch.bool),
            torch.randn(batch, slots, width),
            torch.randint(slots, (batch, context)),
            torch.randint(slots, (batch, question)),
            torch.randint(num_generated + 1, (batch, slots)),
            torch.randn(num_generated, width),
            torch.randn(batch, width),
            torch.ones(batch, dtype=torch.int64),
            torch.zeros(batch, dtype=torch.bool),
            torch.randn(batch, width),
            torch.randn(batch, width),
            torch.randn(batch, width),
            *(torch.randn(batch, heads, room, head_width) for _ in range(2 * layers)),
            torch.zeros(batch, room, NUM_PLAIN_FIELDS),
        )
