"""A run that starts from trained weights: what was learnt stays, the vocabulary grows."""

from dataclasses import replace

import pytest
import torch

from mqan_core.text.vocab import Vocabulary
from mqan_training.model.network import Network
from mqan_training.transfer import Pretrained, adopt, grow_pieces

GENERATOR = "mqan.decoder.generator.weight"


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
