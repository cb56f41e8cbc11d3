"""A run that starts from trained weights: what was learnt stays, the vocabulary grows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mqan_core.request import read_request
from mqan_core.vocab import Vocabulary
from mqan_training.average import average
from mqan_training.model.embeddings import join_columns, quantized_vectors, write_vectors
from mqan_training.model.network import Network
from mqan_training.transfer import Pretrained, adopt, grow_pieces, vectors_for, with_fewer_columns

GENERATOR = "mqan.decoder.generator.weight"
PROJECTION = "mqan.encoder.projection.weight"


@pytest.fixture
def pretrained(tiny_network: Network) -> Pretrained:
    vocabulary = tiny_network.vocabulary
    vectors = tiny_network.embedder.vectors
    return Pretrained("tiny", tiny_network.mqan.config, vocabulary.pieces[1:], vectors, tiny_network.state_dict())


def test_known_pieces_keep_their_places_and_new_ones_follow() -> None:
    assert grow_pieces(["b", "a"], ["c", "a", "d", "e"], 5) == ("b", "a", "c", "d")
    assert grow_pieces(["b", "a"], ["c"], 3) == ("b", "a")
    with pytest.raises(ValueError, match="num_generated is 2, but .* generates 3 pieces"):
        grow_pieces(["b", "a"], [], 2)


def test_learned_rows_stay_and_new_rows_start_at_random(tiny_network: Network, pretrained: Pretrained) -> None:
    words = pretrained.vectors.words
    pieces = grow_pieces(pretrained.pieces, [" kočka ", " pes "], len(pretrained.pieces) + 3)
    torch.manual_seed(5)
    grown = Network(replace(pretrained.model, dropout=0.5), pretrained.vectors, Vocabulary(pieces, words))
    fresh = grown.state_dict()[GENERATOR][-2:].clone()
    adopt(grown, pretrained)
    before, after = tiny_network.state_dict(), grown.state_dict()
    assert after[GENERATOR].shape[0] == before[GENERATOR].shape[0] + 2
    for name, weights in before.items():
        torch.testing.assert_close(after[name][: len(weights)] if weights.dim() else after[name], weights)
    torch.testing.assert_close(after[GENERATOR][-2:], fresh)


@torch.no_grad()
def test_a_run_can_go_on_with_blocks(tiny_network: Network, pretrained: Pretrained) -> None:
    vocabulary = Vocabulary(pretrained.pieces, pretrained.vectors.words)
    blocks = Network(replace(pretrained.model, attention_block=4), pretrained.vectors, vocabulary).eval()
    adopt(blocks, pretrained)
    for length, is_same in ((8, True), (9, False)):
        projected = torch.randn(2, length, pretrained.model.width)
        lengths = torch.full((2,), length)
        whole, cut = (
            network.mqan.encode(projected, projected[:, :3], lengths, lengths.clamp(max=3))
            for network in (tiny_network, blocks)
        )
        assert torch.allclose(whole.c_fin_BCD, cut.c_fin_BCD, atol=1e-6) == is_same


def test_blocks_need_a_context_of_its_own(pretrained: Pretrained) -> None:
    joined = replace(pretrained.model, attention_block=4, coattention=False, question_pointer=False)
    with pytest.raises(ValueError, match=r"attention_block needs model\.coattention"):
        Network(joined, pretrained.vectors, Vocabulary(pretrained.pieces, pretrained.vectors.words))


def test_another_model_is_refused_and_named(pretrained: Pretrained) -> None:
    wider = replace(pretrained.model, width=32, input_residual=False)
    vocabulary = Vocabulary(pretrained.pieces, pretrained.vectors.words)
    with pytest.raises(ValueError, match="width is 24, the recipe says 32, input_residual is True, the recipe says F"):
        adopt(Network(wider, pretrained.vectors, vocabulary), pretrained)


def test_missing_and_misshapen_weights_are_named(pretrained: Pretrained) -> None:
    vocabulary = Vocabulary(pretrained.pieces, pretrained.vectors.words)
    network = Network(pretrained.model, pretrained.vectors, vocabulary)
    without = {name: tensor for name, tensor in pretrained.weights.items() if name != "mqan.decoder.start"}
    with pytest.raises(ValueError, match="tiny has no weights mqan.decoder.start"):
        adopt(network, replace(pretrained, weights=without))
    with pytest.raises(ValueError, match=r"mqan.decoder.start has the shape \[3\], expected \[24\]"):
        adopt(network, replace(pretrained, weights={**pretrained.weights, "mqan.decoder.start": torch.zeros(3)}))


def test_wider_vectors_leave_the_answers_as_they_were(
    tiny_network: Network, pretrained: Pretrained, tmp_path: Path
) -> None:
    learned = pretrained.vectors
    names = [learned.words[0], "never seen before"]
    rows = np.random.default_rng(3).standard_normal((2, 5)).astype(np.float32)
    path = tmp_path / "wider.safetensors"
    write_vectors(path, join_columns(learned, quantized_vectors(names, rows)))
    vectors = vectors_for(pretrained, path)
    assert vectors.words == (*learned.words, "never seen before")
    assert vectors.width == learned.width + 5
    vocabulary = Vocabulary(pretrained.pieces, vectors.words)
    network = Network(pretrained.model, vectors, vocabulary).eval()
    adopt(network, pretrained)
    before = tiny_network.mqan.encoder.project(tiny_network.embedder.embed_words(list(learned.words)))
    after = network.mqan.encoder.project(network.embedder.embed_words(list(learned.words)))
    torch.testing.assert_close(after, before, atol=0.02, rtol=0)  # the joined rows are quantised anew

    columns = slice(learned.width, vectors.width)
    with torch.no_grad():
        network.mqan.encoder.projection.weight[:, columns] = 0.5
    gained = Pretrained("wider", pretrained.model, pretrained.pieces, vectors, network.state_dict())
    mean = average([pretrained, gained]).mqan.encoder.projection.weight
    assert (mean[:, columns] == 0.25).all(), "to the first one they are zero"
    torch.testing.assert_close(mean[:, : learned.width], pretrained.weights[PROJECTION][:, : learned.width])
    with pytest.raises(ValueError, match="wider reads other word vectors than tiny"):
        average([gained, pretrained])


@torch.no_grad()
def test_fewer_columns_keep_what_the_projections_tell_apart(tiny_network: Network, pretrained: Pretrained) -> None:
    learned = pretrained.vectors
    low_rank = dict(pretrained.weights)
    for name in (PROJECTION, PROJECTION.replace("encoder", "decoder")):
        low_rank[name] = low_rank[name].clone()
        low_rank[name][:, 5 : learned.width] = 0.0  # so that five columns are enough
    given = replace(pretrained, weights=low_rank)
    fewer = with_fewer_columns(given, 5)
    assert (fewer.vectors.words, fewer.vectors.width) == (learned.words, 5)
    norms = [np.linalg.norm(vectors.dequantized(), axis=1).mean() for vectors in (fewer.vectors, learned)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-2)
    vocabulary = Vocabulary(pretrained.pieces, learned.words)
    words = [*learned.words[:3], "never seen before"]
    projected = {}
    for source in (given, fewer, with_fewer_columns(given, 2)):
        network = Network(source.model, source.vectors, vocabulary).eval()
        adopt(network, source)
        parts = network.mqan.encoder, network.mqan.decoder
        projected[source.vectors.width] = torch.cat([p.project(network.embedder.embed_words(words)) for p in parts])
    torch.testing.assert_close(projected[5], projected[learned.width], atol=0.02, rtol=0)  # rows are quantised anew
    assert (projected[2] - projected[learned.width]).abs().max() > 0.1
    message = f"vector_columns is 999, but the vectors of tiny have {learned.width}, of which its projections tell"
    with pytest.raises(ValueError, match=message):
        with_fewer_columns(pretrained, 999)


def test_a_new_self_alignment_leaves_the_encodings_as_they_were(tiny_network: Network, pretrained: Pretrained) -> None:
    vocabulary = Vocabulary(pretrained.pieces, pretrained.vectors.words)
    network = Network(replace(pretrained.model, self_alignment=True), pretrained.vectors, vocabulary).eval()
    adopt(network, pretrained)
    inputs = torch.randn(2, 7, 24), torch.randn(2, 3, 24), torch.tensor([7, 5]), torch.tensor([3, 2])
    with torch.no_grad():
        for new, old in zip(network.mqan.encode(*inputs), tiny_network.mqan.encode(*inputs), strict=True):
            torch.testing.assert_close(new, old)
    without = Network(replace(pretrained.model), pretrained.vectors, vocabulary)
    aligned = replace(pretrained, model=network.mqan.config, weights=network.state_dict())
    with pytest.raises(ValueError, match="self_alignment is True, the recipe says False"):
        adopt(without, aligned)


@pytest.mark.parametrize("model", [{"pointer_shift": True}, {"coverage": True}], ids=" ".join)
def test_a_new_part_leaves_the_answers_as_they_were(
    model: dict[str, Any], tiny_network: Network, pretrained: Pretrained
) -> None:
    vocabulary = Vocabulary(pretrained.pieces, pretrained.vectors.words)
    network = Network(replace(pretrained.model, **model), pretrained.vectors, vocabulary).eval()
    adopt(network, pretrained)
    request = read_request(vocabulary, "the harbour was closed in 1923", "When was it closed?")
    new, old = (some.greedy_answers([request], 5)[0] for some in (network, tiny_network))
    assert new.text == old.text
    assert new.probability == pytest.approx(old.probability, abs=1e-6)


@torch.no_grad()
def test_a_new_part_is_averaged_and_cannot_be_dropped(pretrained: Pretrained) -> None:
    vocabulary = Vocabulary(pretrained.pieces, pretrained.vectors.words)
    network = Network(replace(pretrained.model, pointer_shift=True), pretrained.vectors, vocabulary).eval()
    adopt(network, pretrained)
    network.mqan.decoder.shift.bias.fill_(0.5)
    network.mqan.decoder.start.zero_()
    gained = replace(pretrained, model=network.mqan.config, weights=network.state_dict())
    mean = average([pretrained, gained]).mqan.decoder
    assert mean.shift.bias.item() == 0.5, "what the first one has not is the last one's"
    torch.testing.assert_close(mean.start, pretrained.weights["mqan.decoder.start"] / 2)
    with pytest.raises(ValueError, match="tiny is another model than tiny: pointer_shift"):
        average([gained, pretrained])
    with pytest.raises(ValueError, match="pointer_shift is True, the recipe says False"):
        adopt(Network(pretrained.model, pretrained.vectors, vocabulary), gained)


def test_a_file_that_does_not_extend_the_learned_vectors_is_left_alone(
    pretrained: Pretrained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vectors_for(pretrained, tmp_path / "none.safetensors") is pretrained.vectors
    learned = pretrained.vectors
    rows = np.random.default_rng(4).standard_normal((len(learned.words), 40)).astype(np.float32)
    other = quantized_vectors(learned.words, rows)
    write_vectors(tmp_path / "other.safetensors", other)
    assert vectors_for(pretrained, tmp_path / "other.safetensors") is learned
    assert "does not begin with the word vectors of tiny" in " ".join(capsys.readouterr().err.split())
