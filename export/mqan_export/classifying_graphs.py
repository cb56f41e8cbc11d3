"""Trace the systems that classify by fixed tasks: the same functions that training calls, one text or pair at a time.

Shape letters: T words, S word pieces, D width of vectors and states, C classes.
"""

from collections.abc import Iterator
from typing import cast

import onnx
import torch
from torch import Tensor, nn

from mqan_core.classifying import MemorySizes
from mqan_core.manifest import ENCODER
from mqan_export.trace import traced
from mqan_runtime.classifying_graphs import (
    DYNAMIC,
    HEAD_INPUTS,
    PIECES_INPUTS,
    PIECES_OUTPUTS,
    PROBABILITIES,
    STEP_INPUTS,
    WORDS_INPUTS,
    WORDS_OUTPUTS,
    state_shapes,
)
from mqan_runtime.graphs import NEXT, Tensors
from mqan_training.model.bert import Bert
from mqan_training.mt_dnn.network import MtDnn
from mqan_training.mt_dnn.packing import Sequences
from mqan_training.shared_memory.architectures import MemoryLstm, ReaderState, SharedMemoryNetwork
from mqan_training.shared_memory.memory import Memory, MemoryState
from mqan_training.siblings.tasks import Form, sibling_task
from mqan_training.siblings.wordings import LEVELS

OPSET = 18


class WordsGraph(nn.Module):
    """Numbers of words -> their vectors."""

    def __init__(self, network: SharedMemoryNetwork) -> None:
        super().__init__()
        self.weight_WD = nn.Parameter(network.words.weight.detach().clone())

    def forward(self, words_T: Tensor) -> Tensor:
        """Return vectors, [T, D]."""
        return nn.functional.embedding(words_T, self.weight_WD)


class WordStep(nn.Module):
    """One word of a task: its LSTM, its memories and its softmax layer, by the functions of training."""

    def __init__(self, network: SharedMemoryNetwork, task: str) -> None:
        super().__init__()
        self.lstm = cast(MemoryLstm, network.lstms[task])
        self.memories = nn.ModuleList(network.memories_of(task))
        self.output = network.outputs[task]

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the probabilities of the classes after a word, [1, C], and the state.

        Args:
            *inputs: the word's vector [1, D], whether it is the first [1], and the state before it.
        """
        vector_1D, is_first_1, *state = inputs
        memories = [cast(Memory, memory) for memory in self.memories]
        begun = flatten(self.lstm.begin(1, memories))
        before = [
            torch.where(is_first_1.reshape(1, *[1] * (given.dim() - 1)), start, given)
            for start, given in zip(begun, state, strict=True)
        ]
        after, _ = self.lstm(self.lstm.inputs(vector_1D), unflatten(before), memories)
        return torch.softmax(self.output(after.h_NH), dim=-1), *flatten(after)


class EncoderGraph(nn.Module):
    """Word pieces of a sequence -> their states."""

    def __init__(self, encoder: Bert) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, pieces_1S: Tensor, segments_1S: Tensor) -> Tensor:
        """Return states, [1, S, D]."""
        positions_S = torch.arange(pieces_1S.shape[1])
        states_1SD: Tensor = self.encoder(pieces_1S, positions_S, segments_1S, torch.ones_like(pieces_1S).bool())
        return states_1SD


class HeadGraph(nn.Module):
    """States of a sequence -> the probabilities of a task's classes, by the output layer of training."""

    def __init__(self, network: MtDnn, task: str) -> None:
        super().__init__()
        self.head = network.heads[task]
        self.form: Form = sibling_task(task).form

    def forward(self, states_1SD: Tensor, first_1S: Tensor, second_1S: Tensor) -> Tensor:
        """Return probabilities, [1, C]."""
        nothing = torch.zeros_like(first_1S)
        output = self.head(states_1SD, Sequences(nothing, nothing, nothing, first_1S, second_1S))
        return class_probabilities(self.form, output)


def class_probabilities(form: Form, output: Tensor) -> Tensor:
    """Return the probabilities of a task's classes that an output layer states, [N, C].

    A similarity from 0 to 1 lies between two of the six levels: they share the whole so that their mean is the
    similarity. A relevance is that of "relevant".

    Args:
        form: of the task.
        output: of its output layer: logits [N, C], or scores [N].
    """
    if form == "similarity":
        levels_C = torch.arange(len(LEVELS))
        return torch.relu(1 - (output.unsqueeze(-1) * (len(LEVELS) - 1) - levels_C).abs())
    if form == "ranking":
        return torch.stack([1 - output, output], dim=-1)
    return torch.softmax(output, dim=-1)


def shared_memory_graphs(network: SharedMemoryNetwork, sizes: MemorySizes) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield the graphs of shared-memory LSTMs: the name of the task, or of the encoder's file, and the graph."""
    words = torch.arange(7) % network.words.num_embeddings
    yield ENCODER, _trace(WordsGraph(network), (words,), WORDS_INPUTS, list(WORDS_OUTPUTS))
    shapes = state_shapes(sizes)
    state: Tensors = {name: tuple(map(str, shape)) for name, shape in shapes.items()}
    outputs = [PROBABILITIES, *(NEXT + name for name in shapes)]
    given = [torch.randn(shape) for shape in shapes.values()]
    for task in network.outputs:
        vector_1D = network.words.weight[:1].detach()
        inputs = (vector_1D, torch.tensor([False]), *given)
        yield task, _trace(WordStep(network, task), inputs, {**STEP_INPUTS, **state}, outputs)


def mt_dnn_graphs(network: MtDnn) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield the graphs of MT-DNN: the name of the task, or of the encoder's file, and the graph."""
    pieces_1S = torch.arange(7)[None] % network.encoder.config.vocab_size
    is_second_1S = torch.arange(7)[None] > 3
    sequence = (pieces_1S, is_second_1S.long())
    yield ENCODER, _trace(EncoderGraph(network.encoder), sequence, PIECES_INPUTS, list(PIECES_OUTPUTS))
    states_1SD = torch.randn(1, 7, network.encoder.config.hidden_size)
    for task in network.heads:
        inputs = (states_1SD, ~is_second_1S, is_second_1S)
        yield task, _trace(HeadGraph(network, task), inputs, HEAD_INPUTS, [PROBABILITIES])


def flatten(state: ReaderState) -> list[Tensor]:
    """Return a reader's state as tensors, in the order of ``state_shapes``."""
    return [state.h_NH, state.c_NH, *(tensor for memory in state.memories for tensor in memory)]


def unflatten(tensors: list[Tensor]) -> ReaderState:
    """Return the state that ``flatten`` took apart."""
    hidden, cell, *rest = tensors
    return ReaderState(hidden, cell, tuple(MemoryState(*pair) for pair in zip(rest[::2], rest[1::2], strict=True)))


def _trace(module: nn.Module, inputs: tuple[Tensor, ...], axes: Tensors, outputs: list[str]) -> onnx.ModelProto:
    with torch.no_grad():
        return traced(module, inputs, axes, outputs, DYNAMIC, OPSET)
