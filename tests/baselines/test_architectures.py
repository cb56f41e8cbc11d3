"""LSTM, ME-LSTM, ARC-I and ARC-II against plain loops over the paper's equations."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from mqan_baselines.recipes import Architecture, SharedMemoryRecipe
from mqan_baselines.shared_memory.architectures import (
    Fusion,
    Memory,
    MemoryLstm,
    SharedMemoryNetwork,
)

Array = npt.NDArray[np.float64]
ALL: tuple[Architecture, ...] = ("lstm", "me-lstm", "arc-i", "arc-ii")
D, H, K, M = 3, 4, 5, 2


def _network(architecture: Architecture, seed: int = 0) -> SharedMemoryNetwork:
    recipe = SharedMemoryRecipe(
        kind="shared-memory",
        name="tiny",
        tasks=("sst-2", "sst-1"),
        steps=1,
        embedding_width=D,
        hidden_width=H,
        segments=K,
        segment_width=M,
    )
    torch.manual_seed(seed)
    network = SharedMemoryNetwork(recipe, architecture, {"sst-2": 2, "sst-1": 5}, 9).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.8)  # far from linear
    return network


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Array) -> Array:
    return np.asarray(np.exp(x - x.max()) / np.exp(x - x.max()).sum())


def _array(tensor: torch.Tensor) -> Array:
    return tensor.detach().numpy()


class _PlainMemory:
    def __init__(self, memory: nn.Module) -> None:
        assert isinstance(memory, Memory)
        self.weight, self.bias = _array(memory.emit.weight), _array(memory.emit.bias)
        self.content = _array(memory.start_KM).copy()
        self.key, _, _ = self.emit(np.zeros(self.weight.shape[1]))

    def emit(self, emitter: Array) -> tuple[Array, Array, Array]:
        emitted = self.weight @ emitter + self.bias
        return np.tanh(emitted[:M]), _sigmoid(emitted[M : 2 * M]), np.tanh(emitted[2 * M :])

    def read(self) -> tuple[Array, Array]:
        cosines = [row @ self.key / (np.linalg.norm(row) * np.linalg.norm(self.key)) for row in self.content]
        alpha = _softmax(np.array(cosines))
        return alpha @ self.content, alpha

    def write(self, alpha: Array, emitter: Array) -> None:
        self.key, erase, add = self.emit(emitter)
        for k in range(K):
            self.content[k] = self.content[k] * (1 - alpha[k] * erase) + alpha[k] * add


def _plain_states(network: SharedMemoryNetwork, task: str, words: list[int]) -> tuple[Array, Array]:
    lstm = network.lstms[task]
    assert isinstance(lstm, MemoryLstm)
    memories = [_PlainMemory(memory) for memory in network.memories_of(task)]
    h, c = np.zeros(H), np.zeros(H)
    states, gates = [], []
    for word in words:
        x = _array(network.words.weight)[word]
        affine = _array(lstm.inputs.weight) @ x + _array(lstm.inputs.bias) + _array(lstm.recurrent.weight) @ h
        candidate, o, i, f = (affine[p * H : (p + 1) * H] for p in range(4))
        reads = [memory.read() for memory in memories]
        c = np.tanh(candidate) * _sigmoid(i) + c * _sigmoid(f)
        inner, gate = c.copy(), np.zeros(H)
        for fusion, (read, _) in zip(lstm.fusions, reads, strict=True):
            assert isinstance(fusion, Fusion)
            gate = _sigmoid(_array(fusion.read.weight) @ read + _array(fusion.cell.weight) @ c)
            inner += gate * (_array(fusion.content.weight) @ read)
        h = _sigmoid(o) * np.tanh(inner)
        emitters = [h, *(read for read, _ in reads)]
        for memory, (_, alpha), emitter in zip(memories, reads, emitters, strict=False):
            memory.write(alpha, emitter)
        states.append(h)
        gates.append(gate)
    return np.array(states), np.array(gates)


@pytest.mark.parametrize("architecture", ALL)
def test_states_and_gates_are_those_of_the_equations(architecture: Architecture) -> None:
    network = _network(architecture)
    words = [2, 7, 3, 3, 8, 1]
    for task in ("sst-2", "sst-1"):
        states_NTH, gates_NTH = network.read(task, torch.tensor([words]))
        expected_states, expected_gates = _plain_states(network, task, words)
        np.testing.assert_allclose(_array(states_NTH[0]), expected_states, atol=1e-12)
        np.testing.assert_allclose(_array(gates_NTH[0]), expected_gates, atol=1e-12)


def test_probabilities_are_the_softmax_of_the_last_state() -> None:
    network = _network("arc-ii")
    words_NT = torch.tensor([[2, 7, 3]])
    states_NTH, _ = network.read("sst-1", words_NT)
    output = network.outputs["sst-1"]
    assert isinstance(output, nn.Linear)
    expected = _softmax(_array(output.weight) @ _array(states_NTH[0, -1]) + _array(output.bias))
    logits_NC = network("sst-1", words_NT, torch.tensor([3]))
    np.testing.assert_allclose(_array(torch.softmax(logits_NC, -1)[0]), expected)
    probabilities_TC, gates_TH = network.follow("sst-1", words_NT[0])
    np.testing.assert_allclose(_array(probabilities_TC[-1]), expected)
    assert gates_TH.shape == (3, H)


@pytest.mark.parametrize("architecture", ALL)
def test_a_text_is_read_the_same_alone_and_padded_beside_others(architecture: Architecture) -> None:
    network = _network(architecture)
    texts = [[3, 4], [5, 6, 7, 8, 2, 1], [2]]
    padded_NT = torch.zeros(3, 6, dtype=torch.long)
    for i, text in enumerate(texts):
        padded_NT[i, : len(text)] = torch.tensor(text)
    together = network("sst-2", padded_NT, torch.tensor([2, 6, 1]))
    for i, text in enumerate(texts):
        alone = network("sst-2", torch.tensor([text]), torch.tensor([len(text)]))
        torch.testing.assert_close(together[i], alone[0])


@pytest.mark.parametrize(("architecture", "is_shared"), [("lstm", 0), ("me-lstm", 0), ("arc-i", 1), ("arc-ii", 1)])
def test_tasks_share_exactly_word_vectors_and_the_global_memory(architecture: Architecture, is_shared: int) -> None:
    network = _network(architecture)
    network("sst-2", torch.tensor([[2, 7, 3]]), torch.tensor([3])).sum().backward()
    trained = {name for name, parameter in network.named_parameters() if parameter.grad is not None}
    assert not any("sst-1" in name for name in trained)
    shared = {name for name in trained if "sst-2" not in name}
    memory = {"shared.0.start_KM", "shared.0.emit.weight", "shared.0.emit.bias"}
    assert shared == {"words.weight"} | (memory if is_shared else set())
