"""The weights of a bundle are those of the network it was exported from, to the last bit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from mqan_core.bundle import open_bundle
from mqan_core.errors import BundleError
from mqan_export.weights import pretrained_of_bundle
from mqan_training.model.network import Network


def test_all_weights_come_back(tiny_network: Network, tiny_bundle: Path) -> None:
    pretrained = pretrained_of_bundle(open_bundle(tiny_bundle), "tiny")
    assert pretrained.model == tiny_network.mqan.config
    assert pretrained.pieces == tiny_network.vocabulary.pieces[1:]
    assert pretrained.vectors.words == tiny_network.embedder.vectors.words
    assert (pretrained.vectors.dequantized() == tiny_network.embedder.vectors.dequantized()).all()
    for name, expected in tiny_network.state_dict().items():
        torch.testing.assert_close(pretrained.weights[name], expected, rtol=0, atol=0, msg=name)


def test_a_bundle_that_does_not_state_its_model_is_told(tiny_bundle: Path) -> None:
    bundle = open_bundle(tiny_bundle)
    for training in ({}, {"model": {"width": "wide"}}):
        with pytest.raises(BundleError, match="training cannot go on from it, for its weights or its model"):
            pretrained_of_bundle(replace(bundle, manifest=replace(bundle.manifest, training=training)), "tiny")
