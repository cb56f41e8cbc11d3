"""The external memory against hand-computed cases, its bounds, and its gradients (equations 5 to 10)."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mqan_baselines.shared_memory.architectures import Memory, MemoryState, read_memory, write_memory


def test_attention_is_the_softmax_of_cosines_and_weighs_what_is_read() -> None:
    content_NKM = torch.tensor([[[2.0, 0.0], [0.0, 3.0]]])
    key_NM = torch.tensor([[5.0, 0.0]])  # cosines 1 and 0, whatever the lengths
    read_NM, alpha_NK = read_memory(content_NKM, key_NM)
    first = math.e / (math.e + 1)
    torch.testing.assert_close(alpha_NK, torch.tensor([[first, 1 - first]]))
    torch.testing.assert_close(read_NM, torch.tensor([[2 * first, 3 * (1 - first)]]))


def test_a_key_of_zeros_attends_to_all_alike() -> None:
    _, alpha_NK = read_memory(torch.randn(1, 4, 3), torch.zeros(1, 3))
    torch.testing.assert_close(alpha_NK, torch.full((1, 4), 0.25))


def test_writing_erases_and_adds_where_the_attention_lies() -> None:
    content_NKM = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    alpha_NK = torch.tensor([[0.25, 0.75]])
    erase_NM, add_NM = torch.tensor([[1.0, 0.5]]), torch.tensor([[-1.0, 1.0]])
    written = write_memory(content_NKM, alpha_NK, erase_NM, add_NM)
    # 1 (1 - .25) - .25, 2 (1 - .125) + .25; 3 (1 - .75) - .75, 4 (1 - .375) + .75
    torch.testing.assert_close(written, torch.tensor([[[0.5, 2.0], [0.0, 3.25]]]))


def test_keys_erase_and_add_vectors_are_emitted_as_equation_5_says() -> None:
    memory = Memory(segments=1, segment_width=1, emitter_width=2)
    with torch.no_grad():
        memory.emit.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
        memory.emit.bias.copy_(torch.tensor([0.5, -1.0, 0.0]))
        memory.start_KM.fill_(10.0)
    state = memory.begin(torch.zeros(1, 2))
    assert state.key_NM.item() == pytest.approx(math.tanh(0.5))
    assert state.content_NKM.item() == 10
    after = memory.write(state, torch.ones(1, 1), torch.tensor([[0.3, 0.4]]))
    erase, add = 1 / (1 + math.exp(-(2 * 0.4 - 1))), math.tanh(0.7)
    assert after.key_NM.item() == pytest.approx(math.tanh(0.8))
    assert after.content_NKM.item() == pytest.approx(10 * (1 - erase) + add)


def _random_memory(seed: int, segments: int, scale: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    content_NKM = torch.randn(3, segments, 4, generator=generator) * scale
    key_NM = torch.randn(3, 4, generator=generator)
    erase_NM = torch.rand(3, 4, generator=generator)
    return content_NKM, key_NM, erase_NM, torch.rand(3, 4, generator=generator) * 2 - 1


@given(seed=st.integers(0, 10_000), segments=st.integers(1, 50), scale=st.floats(0, 100))
def test_attention_reading_and_writing_are_bounded(seed: int, segments: int, scale: float) -> None:
    content_NKM, key_NM, erase_NM, add_NM = _random_memory(seed, segments, scale)
    read_NM, alpha_NK = read_memory(content_NKM, key_NM)
    torch.testing.assert_close(alpha_NK.sum(dim=-1), torch.ones(3))
    assert alpha_NK.min() >= 0
    assert alpha_NK.max() <= math.e**2 / (math.e**2 + segments - 1) + 1e-5
    assert (read_NM.abs() <= content_NKM.abs().amax(dim=1) * (1 + 1e-5) + 1e-6).all()
    moved_NKM = (write_memory(content_NKM, alpha_NK, erase_NM, add_NM) - content_NKM).abs()
    assert (moved_NKM <= alpha_NK.unsqueeze(-1) * (content_NKM.abs() + 1) * (1 + 1e-4) + 1e-5 * (1 + scale)).all()


def test_a_memory_grows_by_no_more_than_what_was_added_to_it() -> None:
    torch.manual_seed(0)
    memory = Memory(segments=5, segment_width=4, emitter_width=3)
    state = memory.begin(torch.zeros(2, 3))
    attended_NK = torch.zeros(2, 5)
    for _ in range(400):
        _, alpha_NK = read_memory(*state)
        state = memory.write(state, alpha_NK, torch.randn(2, 3) * 10)
        attended_NK += alpha_NK
    bound_NKM = memory.start_KM.abs() + attended_NK.unsqueeze(-1)
    assert (state.content_NKM.abs() <= bound_NKM).all()
    assert state.content_NKM.isfinite().all()


def test_gradients_of_reading_and_writing_are_those_of_finite_differences() -> None:
    doubles = [tensor.double().requires_grad_() for tensor in _random_memory(1, 3, 0.5)]

    def read_and_write(content: Tensor, key: Tensor, erase: Tensor, add: Tensor) -> tuple[Tensor, Tensor]:
        read, alpha = read_memory(content, key)
        return read, write_memory(content, alpha, erase, add)

    assert torch.autograd.gradcheck(read_and_write, doubles)


def test_gradients_reach_what_the_memory_began_with_through_many_words() -> None:
    torch.manual_seed(0)
    memory = Memory(segments=4, segment_width=3, emitter_width=2).double()

    def read_after_words(start_KM: Tensor, emitters_TNE: Tensor) -> Tensor:
        state = MemoryState(start_KM.expand(1, -1, -1), memory.begin(emitters_TNE[0]).key_NM)
        for emitter_NE in emitters_TNE:
            _, alpha_NK = read_memory(*state)
            state = memory.write(state, alpha_NK, emitter_NE)
        return read_memory(*state)[0]

    start = torch.randn(4, 3, dtype=torch.double, requires_grad=True)
    emitters = torch.randn(6, 1, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(read_after_words, (start, emitters))
