"""Trace one step of greedy decoding, with the choice of the word and its attribution inside."""

import copy

import torch
from torch import Tensor, nn

from mqan_core.attribution import TraceField
from mqan_core.vocab import END_ID
from mqan_training.greedy import GreedyStep, LoopState, SlotBatch
from mqan_training.model import DecoderState, Encoded
from mqan_training.network import Network


class DecoderStepGraph(nn.Module):
    """The graph ``decoder_step.onnx``: ``graphs.STEP_CONSTANTS`` and ``STEP_STATE`` in, the next state out."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        decoder = copy.deepcopy(network.mqan.decoder).eval()
        self.step = GreedyStep(decoder, END_ID)

    def forward(
        self,
        context: Tensor,
        question: Tensor,
        context_keys: Tensor,
        context_values: Tensor,
        context_mask: Tensor,
        question_mask: Tensor,
        slot_inputs: Tensor,
        context_slots: Tensor,
        question_slots: Tensor,
        slot_ids: Tensor,
        generator_inputs: Tensor,
        input: Tensor,
        position: Tensor,
        finished: Tensor,
        hidden: Tensor,
        cell: Tensor,
        context_state: Tensor,
        answer_keys: Tensor,
        answer_values: Tensor,
        trace: Tensor,
    ) -> tuple[Tensor, ...]:
        """Take one step."""
        encoded = Encoded(context, question, context_keys, context_values, context_mask, question_mask)
        slots = SlotBatch(context_slots, question_slots, slot_ids, slot_inputs, generator_inputs)
        decoder_state = DecoderState(hidden, cell, context_state, answer_keys, answer_values)
        after = self.step(encoded, slots, LoopState(input, position, finished, decoder_state, trace))
        return (after.input_BD, after.position_B, after.finished_B, *after.decoder, after.trace_BKF)

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Return inputs to trace with; every dynamic size is different, so that none is taken for another."""
        batch, slots, context, question, room = 3, 11, 13, 7, 5
        config = self.step.decoder.config
        width, heads, head_width, layers = config.width, config.num_heads, config.head_width, config.num_layers
        num_generated = self.step.decoder.generator.out_features
        cache = (batch, layers, heads, room, head_width)
        return (
            torch.randn(batch, context, width),
            torch.randn(batch, question, width),
            torch.randn(layers, batch, heads, context, head_width),
            torch.randn(layers, batch, heads, context, head_width),
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
            torch.randn(cache),
            torch.randn(cache),
            torch.zeros(batch, room, len(TraceField)),
        )
