"""LSTM, ME-LSTM, ARC-I and ARC-II (equations 1 to 4, 11 to 20): task-specific LSTMs and the memories that they read.

    lstm      no memory
    me-lstm   a memory of the task's own
    arc-i     one memory that all tasks share (equations 14 and 15)
    arc-ii    a memory of the task's own, and behind it one that all share (equations 16 to 19)

All four are one chain: the LSTM writes into the first memory from its state h_t, and a memory writes into the next one
from what was read of it, r_t. Where the paper leaves a choice:

- Equations 6 and 7 read M_{t-1} by the key k_{t-1}; equations 16 and 18 number the steps differently from these and
  from each other. Both memories are read here as equations 6 and 7 say.
- theta_p is the task's: the LSTM (W_p) and the fusion with what is read (W_f, W_r, W_c), so that each task decides for
  itself what it takes from a memory. theta_q is the memory's (W_m, M_0).
- In ARC-II the LSTM takes from both memories, each through its own gate: the terms g_t * (W_f r_t) of equation 11 add.

Shape letters: N texts, T words, D width of word vectors, H width of the LSTM, K segments, M width of a segment, C
classes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mqan_baselines.recipes import Architecture, SharedMemoryRecipe
from mqan_baselines.shared_memory.memory import INIT, Memory, MemoryState, read_memory


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
    """One task's LSTM with deep fusion of what it reads from any number of memories (theta_p).

    Args:
        embedding_width: D.
        hidden_width: H.
        segment_width: M.
        num_memories: how many it reads.
    """

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
        """Read one word (equation 13).

        Args:
            input_N4H: ``inputs`` of the word's vectors.
            state: before the word.
            memories: that it reads, as ``state`` has them.

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
    """Word vectors and memory that tasks share, and each task's LSTM, memory and softmax layer.

    Args:
        recipe: its sizes.
        architecture: which of the four.
        num_classes: C of each task.
        num_words: rows of the word vectors; the first two are of padding and of unknown words.
    """

    def __init__(
        self, recipe: SharedMemoryRecipe, architecture: Architecture, num_classes: Mapping[str, int], num_words: int
    ) -> None:
        super().__init__()
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
        """Return the memories that a task's LSTM reads, its own first."""
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

        Args:
            task: which LSTM and softmax layer.
            words_NT: numbers of words, padded at the end. Padding changes nothing: a state is taken before it.
            lengths_N: words of each text.
        """
        states_NTH, _ = self.read(task, words_NT)
        last_N1H = (lengths_N - 1)[:, None, None].expand(-1, 1, states_NTH.shape[-1])
        logits_NC: Tensor = self.outputs[task](states_NTH.gather(1, last_N1H).squeeze(1))
        return logits_NC

    def follow(self, task: str, words_T: Tensor) -> tuple[Tensor, Tensor]:
        """Return what figure 3 shows of one text: class probabilities [T, C] and gates [T, H] after each word."""
        states_1TH, gates_1TH = self.read(task, words_T.unsqueeze(0))
        return torch.softmax(self.outputs[task](states_1TH[0]), dim=-1), gates_1TH[0]
