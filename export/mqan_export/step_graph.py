"""Trace one step of greedy decoding, with the choice of the word and its attribution inside."""

import copy

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from mqan_core.answer.trace import NUM_PLAIN_FIELDS, TraceField
from mqan_core.text.vectors import quantize_rows
from mqan_export.trace import OPSET, examples_of, traced
from mqan_runtime.graphs import FIXED, NEXT, NOT_OF_PIECES, NOT_OF_WORDS, step_constants, step_state
from mqan_training.model.decoder import Decoder, DecoderState, Encoded, Recurrence
from mqan_training.model.greedy import GreedyStep, LoopState, SlotBatch
from mqan_training.model.tie import Span


class Table(nn.Module):
    """Rows of numbers, stored in 8 bits with one scale a row."""

    rows: Tensor
    scales: Tensor

    def __init__(self, rows_VM: Tensor) -> None:
        super().__init__()
        rows, scales = quantize_rows(rows_VM.detach().numpy().astype(np.float32))
        self.register_buffer("rows", torch.from_numpy(rows))
        self.register_buffer("scales", torch.from_numpy(scales))

    def forward(self, ids: Tensor) -> Tensor:
        """Return rows by their ids of any shape, [..., M]."""
        return self.rows[ids].float() * self.scales[ids][..., None]

    def whole(self) -> Tensor:
        return self.rows.float() * self.scales[:, None]


class TableStep(GreedyStep):
    """A step that looks the generator's words up in a table.

    If it is compact, the generator's weights, rounded by ``round_generator``, are stored in one, too.
    """

    def __init__(self, decoder: Decoder, generator_inputs_VD: Tensor, *, is_compact: bool = True) -> None:
        super().__init__(copy.deepcopy(decoder).eval())
        if is_compact:
            self.decoder.generator = _TableLinear(self.decoder.generator)  # type: ignore[assignment]
        self.inputs = Table(generator_inputs_VD)

    def piece_inputs(self, request: SlotBatch, piece_B: Tensor) -> Tensor:
        rows, scales = self.inputs.rows, self.inputs.scales
        return rows.index_select(0, piece_B).float() * scales.index_select(0, piece_B)[:, None]  # one Gather each


class _TableLinear(Table):
    """The generator's product."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.weight)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        mapped: Tensor = nn.functional.linear(x, self.whole(), self.bias)
        return mapped


@torch.no_grad()
def round_generator(decoder: Decoder) -> None:
    """Round the generator's weights in place to what a table holds."""
    decoder.generator.weight.copy_(Table(decoder.generator.weight).whole())


class StepGraph(nn.Module):
    """The graph ``decoder_step-*.onnx``: constants and state of ``mqan_runtime.graphs`` in, the next state out.

    At the first step of a row over a pretrained reader, what stands in its state for the previous word and for the LSTM
    is not used: it begins from the reader's summary. Over words the reader writes them.
    """

    def __init__(self, step: GreedyStep) -> None:
        super().__init__()
        self.step = step
        self.is_tied = step.refuses
        num_layers, without = step.decoder.config.num_layers, NOT_OF_PIECES if self.is_tied else NOT_OF_WORDS
        self.constants, self.state = step_constants(num_layers, without), step_state(num_layers, without)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Take one step; tensors in the order of ``constants`` and ``state``."""
        given = dict(zip([*self.constants, *self.state], tensors, strict=True))
        decoder = self.step.decoder

        def by_layer(name: str) -> tuple[Tensor, ...]:
            return tuple(given[f"{name}_{i}"] for i in range(decoder.config.num_layers))

        masks = given["context_mask"], given["question_mask"]
        context = by_layer("context_keys"), by_layer("context_values")
        encoded = Encoded(given["context"], given["question"], *context, *masks, self._span(given))
        slots = SlotBatch(
            given["context_slots"],
            given["question_slots"],
            given["slot_ids"],
            given["slot_inputs"],
            given.get("generator_inputs", given["slot_inputs"]),  # a step with a table looks words up itself
        )
        caches = by_layer("answer_keys"), by_layer("answer_values")
        word_BD, h_BD, cell_BD = given["input"], given["hidden"], given["cell"]
        is_first_B1 = (given["position"] == 0)[:, None]
        if self.is_tied:
            first = decoder.first_recurrence(encoded)
            word_BD = torch.where(is_first_B1, decoder.start.expand_as(word_BD), word_BD)
            h_BD, cell_BD = torch.where(is_first_B1, first.h_BD, h_BD), torch.where(is_first_B1, first.cell_BD, cell_BD)
            pointers = given["context_pointer"], given["question_pointer"]
        else:  # nothing reads where the last step pointed
            pointers = torch.zeros_like(masks[0], dtype=h_BD.dtype), torch.zeros_like(masks[1], dtype=h_BD.dtype)
        state = DecoderState(Recurrence(h_BD, cell_BD, given["context_state"], *pointers), *caches)
        after = self.step(
            encoded, slots, LoopState(word_BD, given["position"], given["finished"], state, given["trace"])
        )
        input_BD, position_B, finished_B, (last, *of_answer), trace_BKF, _ = after
        changed = {"input": input_BD, "position": position_B, "finished": finished_B, "trace": trace_BKF}
        changed |= zip(("hidden", "cell", "context_state", "context_pointer", "question_pointer"), last, strict=True)
        for name, tensors in zip(("answer_keys", "answer_values"), of_answer, strict=True):
            changed |= {f"{name}_{i}": tensor for i, tensor in enumerate(tensors)}
        if self.is_tied:
            copied_B1 = 1 - after.trace_BKF[:, 0, TraceField.GAMMA, None]  # at the first step
            masses_BQ = after.decoder.last.question_pointer_BQ * copied_B1
            changed["masses"] = torch.where(is_first_B1, masses_BQ, given["masses"])
            changed["evidence"] = torch.where(is_first_B1, after.attended_BC, given["evidence"])
        return tuple(changed[name] for name in self.state)

    def _span(self, given: dict[str, Tensor]) -> Span | None:
        if not self.is_tied:
            return None
        names = ("context_start", "question_start", "context_end", "question_end")
        limits = (given[name] for name in ("pointed", "allowed", "summary"))
        return Span(*(given[name] for name in names), *given["null"].unbind(dim=1), *limits)


def trace_step(step: GreedyStep, opset: int = OPSET) -> onnx.ModelProto:
    graph, config = StepGraph(step), step.decoder.config
    axes = {**graph.constants, **graph.state}
    fixed = {"D": config.width, "H": config.num_heads, "W": config.head_width, **FIXED}
    if not graph.is_tied:
        fixed["V"] = step.decoder.generator.out_features
    fixed["F"] = len(TraceField) if graph.is_tied else NUM_PLAIN_FIELDS
    return traced(graph, examples_of(axes, fixed), axes, [NEXT + name for name in graph.state], opset)
