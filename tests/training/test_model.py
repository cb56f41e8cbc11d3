"""MQAN against the paper's equations; teacher forcing and stepping are one function."""

from dataclasses import replace

import pytest
import torch

from mqan_training.config import ModelConfig
from mqan_training.model.decoder import Encoded, Mixture
from mqan_training.model.encoder import Coattention, SelfAlignment
from mqan_training.model.mqan import MQAN
from mqan_training.model.network import target_probability

CONFIG = ModelConfig(width=24, ffn_width=20, head_width=8, num_layers=2, ngram_buckets=50, ngram_width=6)
VARIANTS = {
    "default": CONFIG,
    "post-norm": replace(CONFIG, norm="post"),
    "plain paper": replace(CONFIG, norm="post", input_residual=False, decoder_start="zeros", head_width=24),
    "positions": replace(CONFIG, encoder_positions=True, num_layers=1),
    "self-alignment": replace(CONFIG, self_alignment=True),
    "blocks": replace(CONFIG, self_alignment=True, attention_block=3),
    "pointer shift": replace(CONFIG, pointer_shift=True),
    "coverage": replace(CONFIG, coverage=True),
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
    model = build(VARIANTS[request.param])
    if model.config.coverage:
        torch.nn.init.normal_(model.decoder.cover_query.weight)  # as after training: it begins at 0
    return model


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


def test_self_alignment_reads_where_else_a_word_is_said() -> None:
    torch.manual_seed(2)
    alignment = SelfAlignment(8)
    word = torch.randn(8) * 9
    read = torch.randn(1, 6, 8) * 0.1
    read[0, 1] = read[0, 4] = word
    encodings = torch.randn(1, 6, 8)
    mask = torch.tensor([[True] * 5 + [False]])
    read[0, 5] = word  # beyond the end
    found = alignment(read, encodings, mask)
    torch.testing.assert_close(found[0, 1], encodings[0, 4])
    torch.testing.assert_close(found[0, 4], encodings[0, 1])
    dummy = alignment.dummy[0, 0]
    others = torch.stack([dummy, *read[0, [1, 2, 3, 4]]])
    weights = torch.softmax(others @ read[0, 0], dim=0)
    torch.testing.assert_close(found[0, 0], weights[1:] @ encodings[0, [1, 2, 3, 4]])


def test_self_alignment_looks_no_further_than_the_blocks_beside() -> None:
    torch.manual_seed(2)
    read, encodings, mask = torch.randn(1, 6, 8), torch.randn(1, 6, 8), torch.ones(1, 6, dtype=torch.bool)
    whole, blocks = SelfAlignment(8), SelfAlignment(8, block=2)
    blocks.load_state_dict(whole.state_dict())
    found = blocks(read, encodings, mask)
    torch.testing.assert_close(found[0, 2:4], whole(read, encodings, mask)[0, 2:4])  # the middle one sees all
    torch.testing.assert_close(found[0, :2], whole(read[:, :4], encodings[:, :4], mask[:, :4])[0, :2])


@torch.no_grad()
def test_the_pointer_is_told_the_next_word() -> None:
    decoder = build(replace(CONFIG, pointer_shift=True)).decoder
    context, mask = torch.zeros(1, 4, CONFIG.width), torch.tensor([[True, True, True, False]])  # nothing to tell apart
    heads = (torch.zeros(1, CONFIG.num_heads, 4, CONFIG.head_width),) * CONFIG.num_layers
    encoded = Encoded(context, torch.randn(1, 2, CONFIG.width), heads, heads, mask, torch.ones(1, 2, dtype=torch.bool))
    state = decoder.initial_state(encoded, 3)._replace(pointer_BC=torch.tensor([[0.1, 0.3, 0.6, 0.0]]))

    def point() -> torch.Tensor:
        return decoder.step(torch.zeros(1, CONFIG.width), torch.zeros(1, dtype=torch.int64), state, encoded)[0][1]

    even = torch.tensor([[1 / 3, 1 / 3, 1 / 3, 0]])
    torch.testing.assert_close(point(), even)  # as it begins
    decoder.shift.bias.fill_(5)
    expected = torch.softmax(torch.tensor([[0, 0.5, 1.5]]), dim=1)  # the 0.6 of the last word has nowhere to go
    torch.testing.assert_close(point()[:, :3], expected)


@torch.no_grad()
def test_the_pointer_is_told_where_it_has_been() -> None:
    decoder = build(replace(CONFIG, coverage=True)).decoder
    context, mask = torch.zeros(1, 4, CONFIG.width), torch.tensor([[True, True, True, False]])
    context[..., 0] = torch.tensor([1.0, 1.0, -2.0, 1.0])
    heads = (torch.zeros(1, CONFIG.num_heads, 4, CONFIG.head_width),) * CONFIG.num_layers
    encoded = Encoded(context, torch.randn(1, 2, CONFIG.width), heads, heads, mask, torch.ones(1, 2, dtype=torch.bool))
    decoder.context_query.weight.zero_()  # nothing else to point by
    covered = torch.tensor([[0.5, 0.0, 1.5, 0.0]])
    state = decoder.initial_state(encoded, 3)._replace(coverage_BC=covered)
    step = torch.zeros(1, CONFIG.width), torch.zeros(1, dtype=torch.int64), state, encoded

    even = torch.tensor([[1 / 3, 1 / 3, 1 / 3, 0]])
    mixture, after = decoder.step(*step)
    torch.testing.assert_close(mixture.p_context_BAC, even)  # as it begins
    torch.testing.assert_close(after.coverage_BC, covered + even)
    decoder.cover_query.weight[0] = 1
    mixture, after = decoder.step(*step)
    h = after.h_BD.sum()
    expected = torch.softmax(h * torch.tensor([[0.5 * 1, 0.0, 1.5 * -2]]), dim=1)
    torch.testing.assert_close(mixture.p_context_BAC[:, :3], expected)


@pytest.mark.parametrize("config", [VARIANTS["pointer shift"], VARIANTS["coverage"]])
def test_a_pointer_that_knows_places_needs_a_context_of_its_own(config: ModelConfig) -> None:
    with pytest.raises(ValueError, match=r"model\.(pointer_shift|coverage) needs model\.coattention"):
        build(replace(config, coattention=False, question_pointer=False))


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


def test_a_target_without_source_has_no_probability() -> None:
    mixture = Mixture(
        torch.full((1, 1, 4), 0.25),
        torch.ones(1, 1, 1),
        torch.ones(1, 1, 1),
        torch.full((1, 1), 0.5),
        torch.full((1, 1), 0.5),
    )
    nothing = target_probability(
        mixture, torch.tensor([[4]]), torch.tensor([[9]]), torch.tensor([[1]]), torch.tensor([[2]])
    )
    assert nothing.item() == 0


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
