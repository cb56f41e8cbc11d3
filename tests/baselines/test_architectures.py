"""LSTM, ME-LSTM, ARC-I and ARC-II against plain loops over the paper's equations."""

import math
from typing import cast

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
    MemoryState,
    ReaderState,
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
    """Equations 5 to 9, one text, one segment at a time."""

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
    """Return h_t after each word and the gate of the last memory, by loops over the equations."""
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


def test_an_lstm_of_one_unit_by_hand() -> None:
    lstm = MemoryLstm(1, 1, 1, 0)
    with torch.no_grad():
        lstm.inputs.weight.copy_(torch.tensor([[0.5], [1.0], [-1.0], [2.0]]))
        lstm.inputs.bias.copy_(torch.tensor([0.1, 0.2, 0.3, 0.4]))
        lstm.recurrent.weight.copy_(torch.tensor([[1.0], [0.0], [0.0], [-1.0]]))
    before = ReaderState(torch.tensor([[0.5]]), torch.tensor([[2.0]]), ())
    after, gate_NH = lstm(lstm.inputs(torch.tensor([[1.0]])), before, [])

    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    c = math.tanh(0.6 + 0.5) * sigmoid(-0.7) + 2 * sigmoid(2.4 - 0.5)
    assert after.c_NH.item() == pytest.approx(c)
    assert after.h_NH.item() == pytest.approx(sigmoid(1.2) * math.tanh(c))
    assert gate_NH.item() == 0


def test_fusion_of_one_unit_by_hand() -> None:
    fusion = Fusion(1, 1)
    with torch.no_grad():
        fusion.content.weight.fill_(3.0)
        fusion.read.weight.fill_(0.5)
        fusion.cell.weight.fill_(-1.0)
    taken_NH, gate_NH = fusion(torch.tensor([[0.2]]), torch.tensor([[0.4]]))
    gate = 1 / (1 + math.exp(-(0.1 - 0.4)))
    assert gate_NH.item() == pytest.approx(gate)
    assert taken_NH.item() == pytest.approx(gate * 0.6)


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


def test_arc_i_of_one_task_is_an_me_lstm() -> None:
    alone, shared = _network("me-lstm"), _network("arc-i", seed=1)
    weights = {name.replace("own.sst-2", "shared.0"): tensor for name, tensor in alone.state_dict().items()}
    shared.load_state_dict(weights, strict=False)
    words_NT, lengths_N = torch.tensor([[2, 7, 3, 5]]), torch.tensor([4])
    torch.testing.assert_close(alone("sst-2", words_NT, lengths_N), shared("sst-2", words_NT, lengths_N))


@pytest.mark.parametrize("architecture", ALL)
def test_gradients_of_every_parameter_are_those_of_finite_differences(architecture: Architecture) -> None:
    network = _network(architecture)
    words_NT, lengths_N = torch.tensor([[2, 7, 3, 5], [4, 8, 0, 0]]), torch.tensor([4, 2])
    gold_N = torch.tensor([3, 1])

    def loss() -> torch.Tensor:
        return nn.functional.cross_entropy(network("sst-1", words_NT, lengths_N), gold_N)

    loss().backward()
    rng, step = np.random.default_rng(0), 1e-6
    for name, parameter in network.named_parameters():
        if parameter.grad is None:
            assert "sst-2" in name
            continue
        gradient = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
        for place in rng.integers(parameter.numel(), size=3):
            flat = parameter.detach().view(-1)
            kept = flat[place].item()
            with torch.no_grad():
                flat[place] = kept + step
                above = loss().item()
                flat[place] = kept - step
                below = loss().item()
                flat[place] = kept
            assert gradient.view(-1)[place].item() == pytest.approx((above - below) / (2 * step), abs=1e-7), name


def test_one_word_of_arc_ii_is_one_traced_graph_for_any_number_of_texts() -> None:
    network = _network("arc-ii")
    lstm, memories = cast(MemoryLstm, network.lstms["sst-2"]), network.memories_of("sst-2")

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.read = lstm, nn.ModuleList(memories)

        def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, *flat: torch.Tensor) -> list[torch.Tensor]:
            pairs = [MemoryState(*flat[i : i + 2]) for i in range(0, len(flat), 2)]
            after, gate = lstm(x, ReaderState(h, c, tuple(pairs)), memories)
            return [after.h_NH, after.c_NH, *(part for state in after.memories for part in state), gate]

    @torch.no_grad()
    def arguments(num_texts: int) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(num_texts)
        state = lstm.begin(num_texts, memories)
        flat = [part.clone() for memory in state.memories for part in memory]
        return torch.randn(num_texts, 4 * H).double(), state.h_NH, state.c_NH.clone(), *flat

    batch = torch.export.Dim("batch", min=1, max=64)
    given = arguments(3)
    shapes = ({0: batch}, {0: batch}, {0: batch}, tuple({0: batch} for _ in given[3:]))
    traced: nn.Module = torch.export.export(Step(), given, dynamic_shapes=shapes).module()
    for num_texts in (2, 7):
        for ours, theirs in zip(Step()(*arguments(num_texts)), traced(*arguments(num_texts)), strict=True):
            torch.testing.assert_close(ours, theirs)
