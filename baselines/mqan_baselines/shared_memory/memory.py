"""The external memory: how it is addressed, read and written (equations 5 to 10).

Training, prediction and the exported graph call the same two functions, ``read_memory`` and ``write_memory``.

Shape letters: N texts, K segments, M width of a segment, E width of what emits keys.

Two properties of the equations, both held by tests. Cosines lie between -1 and 1 and equation 7 has no temperature, so
that no segment gets more than e^2 / (e^2 + K - 1) of the attention, 13 % of 50 segments: memory is read and written
widely. And one writing moves an entry by at most alpha (|entry| + 1).
"""

from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

_LEAST_NORM: Final = 1e-8  # of a vector in a cosine, so that 0 has one
INIT: Final = 0.1  # parameters are drawn from [-0.1, 0.1] (section 5.3)


class MemoryState(NamedTuple):
    """A memory between two words.

    Attributes:
        content_NKM: M_t.
        key_NM: k_t, by which it is read at the next word.
    """

    content_NKM: Tensor
    key_NM: Tensor


def read_memory(content_NKM: Tensor, key_NM: Tensor) -> tuple[Tensor, Tensor]:
    """Address a memory by a key, and read it.

    Args:
        content_NKM: M_{t-1}.
        key_NM: k_{t-1}.

    Returns:
        What was read, r_t [N, M], and the attention, alpha_t [N, K], which is 0 or more and sums to 1.
    """
    norms_NK = torch.linalg.vector_norm(content_NKM, dim=-1) * torch.linalg.vector_norm(key_NM, dim=-1, keepdim=True)
    dots_NK = (content_NKM @ key_NM.unsqueeze(-1)).squeeze(-1)
    alpha_NK = torch.softmax(dots_NK / norms_NK.clamp_min(_LEAST_NORM), dim=-1)  # equations 7 and 8, cosine
    read_NM = (alpha_NK.unsqueeze(1) @ content_NKM).squeeze(1)  # equation 6
    return read_NM, alpha_NK


def write_memory(content_NKM: Tensor, alpha_NK: Tensor, erase_NM: Tensor, add_NM: Tensor) -> Tensor:
    """Erase from a memory and add to it where the attention lies (equation 9).

    Args:
        content_NKM: M_{t-1}.
        alpha_NK: alpha_t.
        erase_NM: e_t, from 0 to 1.
        add_NM: a_t, from -1 to 1.

    Returns:
        M_t, [N, K, M].
    """
    alpha_NK1 = alpha_NK.unsqueeze(-1)
    return content_NKM * (1 - alpha_NK1 * erase_NM.unsqueeze(1)) + alpha_NK1 * add_NM.unsqueeze(1)


class Memory(nn.Module):
    """A memory's parameters: its content before the first word, and what emits keys, erase and add vectors.

    Every text begins with the same content M_0, which is learnt: what a memory holds across texts and tasks are its
    parameters, and no text's answer depends on the texts before it.

    Args:
        segments: K.
        segment_width: M.
        emitter_width: E, the width of what it is written from.
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
