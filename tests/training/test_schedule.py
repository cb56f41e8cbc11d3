"""Learning rates of appendix B, the moving average, and which task each step trains on."""

import pytest
import torch
from torch import nn

from mqan_training.optim import WeightAverage, make_optimizer
from mqan_training.recipe import Recipe
from mqan_training.schedule import rate_share
from mqan_training.stream import round_of


@pytest.mark.parametrize(
    ("step", "share"),
    [(1, 1 / 800), (400, 0.5), (799, 799 / 800), (800, 1.0), (3200, 0.5), (80_000, 0.1)],
)
def test_the_papers_rate_peaks_at_800_and_falls_with_the_root(step: int, share: float) -> None:
    assert rate_share(step, 100_000, 800, 0, "inverse_sqrt") == pytest.approx(share, rel=1e-12)


def test_linear_ends_at_0() -> None:
    shares = [rate_share(step, 120, 20, 0, "linear") for step in range(1, 131)]
    assert shares[9] == shares[69] == pytest.approx(0.5)
    assert shares[19] == 1 == max(shares)
    assert shares[119:] == [0.0] * 11
    assert shares[:20] == sorted(shares[:20])
    assert shares[19:] == sorted(shares[19:], reverse=True)


def test_constant_stays_at_the_peak_and_cools_down_at_the_end() -> None:
    shares = [rate_share(step, 120, 20, 40) for step in range(1, 121)]
    assert shares[9] == pytest.approx(0.5)
    assert shares[19:81] == [1] * 62
    assert shares[119] == pytest.approx(1 / 40)
    assert [rate_share(step, 1000, 20, 40) for step in range(1, 81)] == shares[:80]


def test_weight_decay_spares_vectors_and_the_reader_has_a_rate_of_its_own() -> None:
    recipe = Recipe(name="r", steps=1, sources={"a": 1}, reader_rate=1e-4, decoder_rate=1e-3, weight_decay=0.1)
    network = nn.ModuleDict({"bert": nn.Linear(3, 2), "rest": nn.Linear(2, 2)})
    groups = make_optimizer(network, recipe, ("bert.",)).param_groups
    found = [(group["params"][0].dim(), group["weight_decay"], group["peak_rate"]) for group in groups]
    assert found == [(2, 0.1, 1e-4), (1, 0.0, 1e-4), (2, 0.1, 1e-3), (1, 0.0, 1e-3)]


def test_the_average_forgets_slowly_but_not_at_the_start() -> None:
    module = nn.Linear(1, 1)
    with torch.no_grad():
        module.weight.fill_(0)
    average = WeightAverage(module, 0.9)
    expected = 0.0
    for step in range(1, 101):
        with torch.no_grad():
            module.weight.fill_(step)
        average.update(module, step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
    assert average.tensors["weight"].item() == pytest.approx(expected, rel=1e-5)
    assert 85 < expected < 95  # behind the last weight by about decay / (1 - decay)


# --- Which task each step trains on


def test_a_round_spreads_tasks_evenly() -> None:
    assert round_of({"a": 4, "b": 2, "c": 1}) == ["a", "b", "a", "c", "a", "b", "a"]
    assert round_of({"a": 1}) == ["a"]
    assert round_of({"a": 0, "b": 2}) == ["b", "b"]
