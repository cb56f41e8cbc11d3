"""The external memory (equations 5 to 10), and LSTM, ME-LSTM, ARC-I and ARC-II, which read it (1 to 4, 11 to 20).

    lstm      no memory
    me-lstm   a memory of the task's own
    arc-i     one memory that all tasks share (equations 14 and 15)
    arc-ii    a memory of the task's own, and after it one that all share (equations 16 to 19)

All four are one chain: the LSTM writes into the first memory from its state h_t, and a memory writes into the next one
from what was read of it, r_t. Where the paper leaves a choice:

- Equations 6 and 7 read M_{t-1} by the key k_{t-1}; equations 16 and 18 number the steps differently from these and
  from each other. Both memories are read here as equations 6 and 7 say.
- theta_p is the task's: the LSTM (W_p) and the fusion with what is read (W_f, W_r, W_c), so that each task decides for
  itself what it takes from a memory. theta_q is the memory's (W_m, M_0).
- In ARC-II the LSTM takes from both memories, each through its own gate: the terms g_t * (W_f r_t) of equation 11 add.

Two properties of the equations, both held by tests. Cosines lie between -1 and 1 and equation 7 has no temperature, so
that no segment gets more than e^2 / (e^2 + K - 1) of the attention, 13 % of 50 segments: memory is read and written
widely. And one writing moves an entry by at most alpha (|entry| + 1).

Shape letters: N texts, T words, D width of word vectors, H width of the LSTM, K segments, M width of a segment, E
width of what emits keys, C classes.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

import torch
from torch import Tensor, nn

from mqan_baselines.recipes import Architecture, SharedMemoryRecipe

_LEAST_NORM: Final = 1e-8  # of a vector in a cosine, so that 0 has one
INIT: Final = 0.1  # parameters are drawn from [-0.1, 0.1] (section 5.3)


class MemoryState(NamedTuple):
    """A memory between two words: M_t, and k_t, by which it is read at the next word."""

    content_NKM: Tensor
    key_NM: Tensor


def read_memory(content_NKM: Tensor, key_NM: Tensor) -> tuple[Tensor, Tensor]:
    """Address M_{t-1} by k_{t-1}, and read it.

    Returns:
        What was read, r_t [N, M], and the attention, alpha_t [N, K], which is 0 or more and sums to 1.
    """
    norms_NK = torch.linalg.vector_norm(content_NKM, dim=-1) * torch.linalg.vector_norm(key_NM, dim=-1, keepdim=True)
    dots_NK = (content_NKM @ key_NM.unsqueeze(-1)).squeeze(-1)
    alpha_NK = torch.softmax(dots_NK / norms_NK.clamp_min(_LEAST_NORM), dim=-1)  # equations 7 and 8, cosine
    read_NM = (alpha_NK.unsqueeze(1) @ content_NKM).squeeze(1)  # equation 6
    return read_NM, alpha_NK


def write_memory(content_NKM: Tensor, alpha_NK: Tensor, erase_NM: Tensor, add_NM: Tensor) -> Tensor:
    """Return M_t: M_{t-1} after e_t is erased and a_t added where the attention lies (equation 9)."""
    alpha_NK1 = alpha_NK.unsqueeze(-1)
    return content_NKM * (1 - alpha_NK1 * erase_NM.unsqueeze(1)) + alpha_NK1 * add_NM.unsqueeze(1)


class Memory(nn.Module):
    """A memory's parameters: its content before the first word, and what emits keys, erase and add vectors.

    Every text begins with the same content M_0, which is learnt: what a memory holds across texts and tasks are its
    parameters, and no text's answer depends on the texts before it.
    """

    def __init__(self, segments: int, segment_width: int, emitter_width: int) -> None:
        super().__init__()
        self.start_KM = nn.Parameter(torch.empty(segments, segment_width).uniform_(-INIT, INIT))
        self.emit = nn.Linear(emitter_width, 3 * segment_width)  # W_m and b_m

    def _emissions(self, emitter_NE: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return k_t, e_t and a_t, [N, M] each (equation 5)."""
        key_NM, erase_NM, add_NM = self.emit(emitter_NE).chunk(3, dim=-1)
        return torch.tanh(key_NM), torch.sigmoid(erase_NM), torch.tanh(add_NM)

    def begin(self, emitter_NE: Tensor) -> MemoryState:
        """Return the state before the first word; the first key comes from what the emitter is there (zeros)."""
        key_NM, _, _ = self._emissions(emitter_NE)
        return MemoryState(self.start_KM.expand(emitter_NE.shape[0], -1, -1), key_NM)

    def write(self, state: MemoryState, alpha_NK: Tensor, emitter_NE: Tensor) -> MemoryState:
        """Return the state after a word: f_write of equation 10, and the key for the next word."""
        key_NM, erase_NM, add_NM = self._emissions(emitter_NE)
        return MemoryState(write_memory(state.content_NKM, alpha_NK, erase_NM, add_NM), key_NM)


class Fusion(nn.Module):
    """What an LSTM takes from a memory: the second term of equation 11, with the gate of equation 12."""

    def __init__(self, segment_width: int, hidden_width: int) -> None:
        super().__init__()
        self.content = nn.Linear(segment_width, hidden_width, bias=False)  # W_f
        self.read = nn.Linear(segment_width, hidden_width, bias=False)  # W_r
        self.cell = nn.Linear(hidden_width, hidden_width, bias=False)  # W_c

    def forward(self, read_NM: Tensor, c_NH: Tensor) -> tuple[Tensor, Tensor]:
        """Return g_t * (W_f r_t) and g_t, [N, H] each."""
        gate_NH = torch.sigmoid(self.read(read_NM) + self.cell(c_NH))  # equation 12
        return gate_NH * self.content(read_NM), gate_NH


class ReaderState(NamedTuple):
    """A task's LSTM between two words: h_t and c_t, and its memories, the task's own first."""

    h_NH: Tensor
    c_NH: Tensor
    memories: tuple[MemoryState, ...]


class MemoryLstm(nn.Module):
    """One task's LSTM with deep fusion of what it reads from any number of memories (theta_p)."""

    def __init__(self, embedding_width: int, hidden_width: int, segment_width: int, num_memories: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(embedding_width, 4 * hidden_width)  # the columns of W_p for x_t, and b_p
        self.recurrent = nn.Linear(hidden_width, 4 * hidden_width, bias=False)  # those for h_{t-1}
        self.fusions = nn.ModuleList(Fusion(segment_width, hidden_width) for _ in range(num_memories))

    def begin(self, num_texts: int, memories: Sequence[Memory]) -> ReaderState:
        """Return the state before the first word: zeros, and each memory's start."""
        zeros_NH = self.recurrent.weight.new_zeros(num_texts, self.recurrent.in_features)
        states: list[MemoryState] = []
        emitter = zeros_NH
        for memory in memories:
            states.append(memory.begin(emitter))
            emitter = zeros_NH.new_zeros(num_texts, memory.start_KM.shape[1])
        return ReaderState(zeros_NH, zeros_NH, tuple(states))

    def forward(self, input_N4H: Tensor, state: ReaderState, memories: Sequence[Memory]) -> tuple[ReaderState, Tensor]:
        """Read one word, given ``inputs`` of its vectors (equation 13).

        Returns:
            The state after the word, and the gate of the last memory [N, H]; zeros where there is none.
        """
        reads = [read_memory(*memory) for memory in state.memories]  # equations 6 to 8; 16 and 18
        parts = (input_N4H + self.recurrent(state.h_NH)).chunk(4, dim=-1)  # equation 1
        candidate_NH = torch.tanh(parts[0])
        o_NH, i_NH, f_NH = (torch.sigmoid(part) for part in parts[1:])
        c_NH = candidate_NH * i_NH + state.c_NH * f_NH  # equation 2
        inner_NH, gate_NH = c_NH, torch.zeros_like(c_NH)
        for fusion, (read_NM, _) in zip(self.fusions, reads, strict=True):
            taken_NH, gate_NH = fusion(read_NM, c_NH)
            inner_NH = inner_NH + taken_NH
        h_NH = o_NH * torch.tanh(inner_NH)  # equation 11; equation 3 without memory
        emitters = (h_NH, *(read_NM for read_NM, _ in reads))
        written = tuple(  # equations 9, 10; 15, 17, 19
            memory.write(before, alpha_NK, emitter)
            for memory, before, (_, alpha_NK), emitter in zip(memories, state.memories, reads, emitters, strict=False)
        )
        return ReaderState(h_NH, c_NH, written), gate_NH


class SharedMemoryNetwork(nn.Module):
    """Word vectors and memory that tasks share, and each task's LSTM, memory and softmax layer."""

    def __init__(
        self, recipe: SharedMemoryRecipe, architecture: Architecture, num_classes: Mapping[str, int], num_words: int
    ) -> None:
        super().__init__()
        self.recipe, self.architecture = recipe, architecture
        hidden, segment = recipe.hidden_width, recipe.segment_width
        has_own, is_shared = architecture in ("me-lstm", "arc-ii"), architecture in ("arc-i", "arc-ii")
        self.words = nn.Embedding(num_words, recipe.embedding_width, sparse=True)
        self.lstms = nn.ModuleDict(
            {task: MemoryLstm(recipe.embedding_width, hidden, segment, has_own + is_shared) for task in num_classes}
        )
        self.own = nn.ModuleDict(
            {task: Memory(recipe.segments, segment, hidden) for task in num_classes} if has_own else {}
        )
        self.shared = nn.ModuleList([Memory(recipe.segments, segment, segment if has_own else hidden)] * is_shared)
        self.outputs = nn.ModuleDict({task: nn.Linear(hidden, count) for task, count in num_classes.items()})
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -INIT, INIT)  # section 5.3

    def memories_of(self, task: str) -> list[Memory]:
        own = [self.own[task]] if task in self.own else []
        return [cast(Memory, memory) for memory in (*own, *self.shared)]

    def read(self, task: str, words_NT: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states h_t after each word and the gates of the last memory, [N, T, H] each."""
        lstm = cast(MemoryLstm, self.lstms[task])
        memories = self.memories_of(task)
        inputs_NT4H = lstm.inputs(self.words(words_NT))
        state = lstm.begin(words_NT.shape[0], memories)
        states, gates = [], []
        for input_N4H in inputs_NT4H.unbind(1):
            state, gate_NH = lstm(input_N4H, state, memories)
            states.append(state.h_NH)
            gates.append(gate_NH)
        return torch.stack(states, 1), torch.stack(gates, 1)

    def forward(self, task: str, words_NT: Tensor, lengths_N: Tensor) -> Tensor:
        """Return the logits of a task's classes after each text's last word, [N, C]; their softmax is equation 20.

        Texts are padded at the end, which changes nothing: a state is taken before it.
        """
        states_NTH, _ = self.read(task, words_NT)
        last_N1H = (lengths_N - 1)[:, None, None].expand(-1, 1, states_NTH.shape[-1])
        logits_NC: Tensor = self.outputs[task](states_NTH.gather(1, last_N1H).squeeze(1))
        return logits_NC

    def follow(self, task: str, words_T: Tensor) -> tuple[Tensor, Tensor]:
        """Return what figure 3 shows of one text: class probabilities [T, C] and gates [T, H] after each word."""
        states_1TH, gates_1TH = self.read(task, words_T.unsqueeze(0))
        return torch.softmax(self.outputs[task](states_1TH[0]), dim=-1), gates_1TH[0]
