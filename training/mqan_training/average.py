"""The mean of networks that were trained one from another.

Where they began together the mean is often better than each of them, also at what the later one lost: Izmailov et al.
(2018), "Averaging Weights Leads to Wider Optima and Better Generalization"; Wortsman et al. (2022), "Model soups".
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from mqan_training.checkpoint import VECTORS, Checkpoint, save_checkpoint
from mqan_training.model.network import Network
from mqan_training.optim import make_optimizer
from mqan_training.transfer import Pretrained, adopt, differing_settings, extends, network_of, pretrained_of


@torch.no_grad()
def average(networks: Sequence[Pretrained]) -> Network:
    """Return the network of mean weights, in evaluation mode.

    Args:
        networks: at least two; the vocabulary of each begins with that of those before it. Where one has no weights,
            of pieces or parts of the model that came later, the last one's count in their place; those of columns of
            the word vectors that came later count as zero.

    Raises:
        ValueError: they are too few, or not of one kind; the message names what differs.
    """
    if len(networks) < 2:
        raise ValueError("an average takes at least two networks")
    last = networks[-1]
    mean = network_of(last)
    totals = {name: tensor.clone() for name, tensor in mean.state_dict().items()}
    for network in networks[:-1]:
        _check_fit(network, last)
        grown = network_of(last)
        adopt(grown, network)
        for name, tensor in grown.state_dict().items():
            totals[name] += tensor
    mean.load_state_dict({name: total / len(networks) for name, total in totals.items()})
    return mean


def _check_fit(network: Pretrained, last: Pretrained) -> None:
    differing = differing_settings(network.model, last.model)
    if differing:
        raise ValueError(f"{network.source} is another model than {last.source}: {', '.join(differing)}")
    if last.pieces[: len(network.pieces)] != network.pieces:
        raise ValueError(f"{network.source} generates other pieces than {last.source} begins with")
    vectors, expected_vectors = network.vectors, last.vectors
    equal = vectors.words == expected_vectors.words and (
        np.array_equal(vectors.rows, expected_vectors.rows) and np.array_equal(vectors.scales, expected_vectors.scales)
    )
    if not equal and not extends(expected_vectors, vectors):
        raise ValueError(f"{network.source} reads other word vectors than {last.source}")
    pieces, expected_pieces = vectors.pieces, expected_vectors.pieces
    if pieces is not None and expected_pieces is not None and not pieces.is_same(expected_pieces):
        raise ValueError(f"{network.source} reads other word pieces than {last.source}")


def save_average(folder: Path, networks: Sequence[Pretrained], last: Checkpoint) -> None:
    """Write a checkpoint of mean weights, to export or to go on from with another run.

    Args:
        folder: where it goes; must not exist.
        networks: all but the last, as for ``average``.
        last: the last network, whose recipe the average has.

    Raises:
        ValueError: the networks do not fit together, or the folder exists.
    """
    if folder.exists():
        raise ValueError(f"{folder} exists already; choose another folder")
    together = [*networks, pretrained_of(last)]
    network = average(together)
    save_checkpoint(
        folder,
        config=last.config,
        step=last.step,
        drawn=last.drawn,
        pieces=last.pieces,
        frozen={VECTORS: last.vectors_path},
        model=network,
        average={},
        optimizer=make_optimizer(network, last.train_config.optim),  # has taken no step
        training={**last.training, "averaged": [network.source for network in together]},
    )
