"""MQAN against the paper's equations; teacher forcing and stepping are one function."""

from dataclasses import replace

import pytest
import torch

from mqan_training.losses import target_probability
from mqan_training.model.decoder import Encoded
from mqan_training.model.encoder import Coattention
from mqan_training.model.network import MQAN
from mqan_training.recipe import ModelConfig

CONFIG = ModelConfig(width=24, ffn_width=20, head_width=8, num_layers=2, ngram_buckets=50, ngram_width=6)
VARIANTS = {
    "default": CONFIG,
    "post-norm": replace(CONFIG, norm="post"),
    "plain paper": replace(CONFIG, norm="post", input_residual=False, decoder_start="zeros", head_width=24),
    "s2s": replace(CONFIG, num_layers=0, coattention=False, question_pointer=False),
    "+satt": replace(CONFIG, coattention=False, question_pointer=False),
    "+catt": replace(CONFIG, question_pointer=False),
}
NUM_GENERATED = 30


def build(config: ModelConfig) -> MQAN:
    torch.manual_seed(3)
    return MQAN(config, 10, NUM_GENERATED).eval()


def encode(model: MQAN, context: torch.Tensor, question: torch.Tensor, lengths: tuple[list[int], list[int]]) -> Encoded:
    project = model.encoder.project
    return model.encode(project(context), project(question), torch.tensor(lengths[0]), torch.tensor(lengths[1]))


@pytest.fixture(params=list(VARIANTS))
def model(request: pytest.FixtureRequest) -> MQAN:
    return build(VARIANTS[request.param])


@torch.no_grad()
def test_steps_equal_teacher_forcing(model: MQAN) -> None:
    encoded = encode(model, torch.randn(3, 12, 10), torch.randn(3, 6, 10), ([12, 4, 9], [6, 1, 5]))
    answers = model.decoder.project(torch.randn(3, 7, 10))
    answers[:, 0] = model.decoder.start
    forced = model.decoder(answers, encoded)
    state = model.decoder.initial_state(encoded, 9)
    for t in range(7):
        stepped, state = model.decoder.step(answers[:, t], torch.full((3,), t), state, encoded)
        for together, alone in zip(forced, stepped, strict=True):
            torch.testing.assert_close(together[:, t], alone, atol=1e-5, rtol=0)


@torch.no_grad()
def test_padding_and_neighbours_change_nothing(model: MQAN) -> None:
    context, question = torch.randn(3, 12, 10), torch.randn(3, 6, 10)
    together = encode(model, context, question, ([12, 4, 9], [6, 2, 5]))
    alone = encode(model, context[1:2, :4], question[1:2, :2], ([4], [2]))
    torch.testing.assert_close(together.c_fin_BCD[1:2, :4], alone.c_fin_BCD, atol=1e-5, rtol=0)
    torch.testing.assert_close(together.q_fin_BQD[1:2, :2], alone.q_fin_BQD, atol=1e-5, rtol=0)
    start = model.decoder.start.expand(3, 1, -1)
    for padded, exact in zip(model.decoder(start, together), model.decoder(start[:1], alone), strict=True):
        torch.testing.assert_close(
            padded[1:2, :, : exact.shape[2]] if exact.dim() > 2 else padded[1:2], exact, atol=1e-5, rtol=0
        )


@torch.no_grad()
def test_coattention_follows_equations_17_to_19() -> None:
    torch.manual_seed(5)
    coattention = Coattention(8)
    c, q = torch.randn(1, 5, 8), torch.randn(1, 3, 8)
    masks = torch.ones(1, 5, dtype=torch.bool), torch.ones(1, 3, dtype=torch.bool)
    q_sum, c_coa, c_sum, q_coa = coattention(c, q, *masks)
    c_ind = torch.cat([coattention.c_dummy[0], c[0]])
    q_ind = torch.cat([coattention.q_dummy[0], q[0]])
    s_cq = torch.softmax(c_ind @ q_ind.T, dim=0)  # column-wise
    s_qc = torch.softmax(q_ind @ c_ind.T, dim=0)
    expected_c_sum, expected_q_sum = s_cq.T @ c_ind, s_qc.T @ q_ind
    torch.testing.assert_close(c_sum[0], expected_c_sum[1:])
    torch.testing.assert_close(q_sum[0], expected_q_sum[1:])
    torch.testing.assert_close(c_coa[0], (s_qc.T @ expected_c_sum)[1:])
    torch.testing.assert_close(q_coa[0], (s_cq.T @ expected_q_sum)[1:])


def test_the_mixture_is_a_distribution_over_the_three_sources() -> None:
    """Summed over every piece of vocabulary, context and question, p(w) is 1 (equation 13)."""
    model = build(CONFIG)
    encoded = encode(model, torch.randn(1, 6, 10), torch.randn(1, 4, 10), ([6], [4]))
    mixture = model.decoder(model.decoder.start.expand(1, 1, -1), encoded)
    context, question = torch.tensor([[0, 1, 1, 40, 41, 2]]), torch.tensor([[41, 0, 42, 42]])
    total = torch.zeros(1, 1)
    for piece in range(50):
        generated = torch.tensor([[piece if piece < NUM_GENERATED else NUM_GENERATED]])
        total = total + target_probability(mixture, generated, torch.tensor([[piece]]), context, question)
    torch.testing.assert_close(total, torch.ones(1, 1), atol=1e-5, rtol=0)


def test_every_parameter_learns(model: MQAN) -> None:
    encoded = encode(model, torch.randn(2, 6, 10), torch.randn(2, 4, 10), ([6, 3], [4, 4]))
    answers = model.decoder.project(torch.randn(2, 3, 10))
    answers = torch.cat([model.decoder.start.expand(2, 1, -1), answers[:, 1:]], dim=1)
    mixture = model.decoder(answers, encoded)
    pieces = torch.tensor([[1, 2, 3], [1, 5, 6]])
    p = target_probability(mixture, pieces, pieces, torch.arange(6).expand(2, -1), torch.arange(4).expand(2, -1))
    p.log().sum().backward()
    idle = [name for name, w in model.named_parameters() if w.grad is None or not w.grad.abs().sum() > 0]
    assert idle == []
