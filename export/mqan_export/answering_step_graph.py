"""Trace one step of greedy decoding over a pretrained reader: the choice of the word and its attribution inside."""

import copy

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from mqan_core.answer.trace import TraceField
from mqan_core.text.vectors import quantize_rows
from mqan_core.text.vocab import END_ID
from mqan_export.reader_graph import OPSET
from mqan_export.trace import examples_of, traced
from mqan_runtime.answering_graphs import (
    DYNAMIC,
    NUM_FIELDS,
    NUM_NULL,
    NUM_SOURCES,
    step_constants,
    step_state,
)
from mqan_runtime.graphs import NEXT
from mqan_training.model.decoder import Decoder, DecoderState, Encoded
from mqan_training.model.greedy import GreedyStep, LoopState, SlotBatch
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.model.tie import Span


class _TableStep(GreedyStep):
    """A step that looks the generator's words up in an 8-bit table with one scale a row."""

    rows: Tensor
    scales: Tensor

    def __init__(self, decoder: Decoder, generator_inputs_VD: Tensor) -> None:
        super().__init__(decoder, END_ID)
        rows, scales = quantize_rows(generator_inputs_VD.detach().numpy().astype(np.float32))
        self.register_buffer("rows", torch.from_numpy(rows))
        self.register_buffer("scales", torch.from_numpy(scales))

    def table(self) -> Tensor:
        """Return the inputs for all words, [V, D]."""
        return self.rows.float() * self.scales[:, None]

    def piece_inputs(self, request: SlotBatch, piece_B: Tensor) -> Tensor:
        return self.rows.index_select(0, piece_B).float() * self.scales.index_select(0, piece_B)[:, None]


class _TableLinear(nn.Module):
    """The generator's product, with weights stored in 8 bits with one scale an output."""

    rows: Tensor
    scales: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        rows, scales = quantize_rows(linear.weight.detach().numpy())
        self.register_buffer("rows", torch.from_numpy(rows))
        self.register_buffer("scales", torch.from_numpy(scales))
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        mapped: Tensor = nn.functional.linear(x, self.rows.float() * self.scales[:, None], self.bias)
        return mapped


@torch.no_grad()
def round_generator(decoder: Decoder) -> None:
    """Round the generator's weights to what 8 bits with one scale an output hold, in place."""
    rows, scales = quantize_rows(decoder.generator.weight.detach().numpy())
    decoder.generator.weight.copy_(torch.from_numpy(rows * scales[:, None]))


class AnsweringStepGraph(nn.Module):
    """The graph ``decoder_step-*.onnx``: ``step_constants`` and ``step_state`` in, the next state out.

    At a row's first step, what stands in its state for the previous word and for the LSTM is not used.

    Args:
        network: whose decoder it is.
        generator_inputs_VD: the decoder's inputs for the generator's words; they are stored in 8 bits.
        is_compact: whether the generator's weights, rounded by ``round_generator``, are stored in 8 bits, too.
    """

    def __init__(self, network: PretrainedNetwork, generator_inputs_VD: Tensor, *, is_compact: bool = True) -> None:
        super().__init__()
        decoder = copy.deepcopy(network.decoder).eval()
        if is_compact:
            decoder.generator = _TableLinear(decoder.generator)  # type: ignore[assignment]
        self.step = _TableStep(decoder, generator_inputs_VD)
        self.names = [*step_constants(decoder.config.num_layers), *step_state(decoder.config.num_layers)]

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Take one step; tensors in the order of ``answering_graphs``."""
        given = dict(zip(self.names, tensors, strict=True))
        decoder = self.step.decoder
        layers = range(decoder.config.num_layers)

        def by_layer(name: str) -> tuple[Tensor, ...]:
            return tuple(given[f"{name}_{i}"] for i in layers)

        encoded = self._encoded(given, by_layer("context_keys"), by_layer("context_values"))
        slots = SlotBatch(
            given["context_slots"],
            given["question_slots"],
            given["slot_ids"],
            given["slot_inputs"],
            self.step.rows,  # not used: the step looks words up itself
        )
        is_first_B1 = (given["position"] == 0)[:, None]
        first = decoder.first_recurrence(encoded)
        state = DecoderState(
            torch.where(is_first_B1, first.h_BD, given["hidden"]),
            torch.where(is_first_B1, first.cell_BD, given["cell"]),
            given["context_state"],
            given["context_pointer"],
            given["question_pointer"],
            by_layer("answer_keys"),
            by_layer("answer_values"),
        )
        word_BD = torch.where(is_first_B1, decoder.start.expand_as(given["input"]), given["input"])
        before = LoopState(word_BD, given["position"], given["finished"], state, given["trace"])
        after = self.step(encoded, slots, before)
        copied_B1 = 1 - after.trace_BKF[:, 0, TraceField.GAMMA, None]  # at the first step
        masses_BQ = torch.where(is_first_B1, after.decoder.question_pointer_BQ * copied_B1, given["masses"])
        evidence_BC = torch.where(is_first_B1, after.attended_BC, given["evidence"])
        return (
            after.input_BD,
            after.position_B,
            after.finished_B,
            after.decoder.h_BD,
            after.decoder.cell_BD,
            after.decoder.c_tilde_BD,
            after.decoder.pointer_BC,
            after.decoder.question_pointer_BQ,
            masses_BQ,
            evidence_BC,
            *after.decoder.keys_BHKW,
            *after.decoder.values_BHKW,
            after.trace_BKF,
        )

    def _encoded(self, given: dict[str, Tensor], keys: tuple[Tensor, ...], values: tuple[Tensor, ...]) -> Encoded:
        null_B2 = given["null"]
        span = Span(
            given["context_start"],
            given["question_start"],
            given["context_end"],
            given["question_end"],
            null_B2[:, 0],
            null_B2[:, 1],
            given["pointed"],
            given["allowed"],
            given["summary"],
        )
        masks = given["context_mask"], given["question_mask"]
        return Encoded(given["context"], given["question"], keys, values, *masks, span)


def trace_step(graph: AnsweringStepGraph) -> onnx.ModelProto:
    """Return the graph in ONNX."""
    config = graph.step.decoder.config
    state = step_state(config.num_layers)
    axes = {**step_constants(config.num_layers), **state}
    fixed = {"D": config.width, "H": config.num_heads, "W": config.head_width}
    examples = examples_of(axes, fixed | {"F": NUM_FIELDS, "NULL": NUM_NULL, "SOURCE": NUM_SOURCES})
    return traced(graph, examples, axes, [NEXT + name for name in state], DYNAMIC, OPSET)
