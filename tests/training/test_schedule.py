"""Learning rates of appendix B, the moving average, and which task each step trains on."""

from collections import Counter

import pytest
import torch
from torch import nn

from mqan_training.config import OptimConfig, PhaseConfig, TaskConfig, TrainConfig
from mqan_training.curriculum import round_of, schedule
from mqan_training.optim import WeightAverage, learning_rate, make_optimizer, rate_share


@pytest.mark.parametrize(
    ("step", "rate"),
    [(1, 2.5e-3 / 800), (400, 1.25e-3), (799, 2.5e-3 * 799 / 800), (800, 2.5e-3), (3200, 1.25e-3), (80_000, 2.5e-4)],
)
def test_the_papers_rate_peaks_at_800_and_falls_with_the_root(step: int, rate: float) -> None:
    assert learning_rate(OptimConfig(), step, 100_000) == pytest.approx(rate, rel=1e-12)


def test_linear_ends_at_0() -> None:
    config = OptimConfig(peak_rate=4e-3, warmup_steps=20, schedule="linear")
    rates = [learning_rate(config, step, 120) for step in range(1, 131)]
    assert rates[9] == pytest.approx(2e-3)
    assert rates[19] == 4e-3 == max(rates)
    assert rates[69] == pytest.approx(2e-3)
    assert rates[119:] == [0.0] * 11
    assert rates[:20] == sorted(rates[:20])
    assert rates[19:] == sorted(rates[19:], reverse=True)


def test_constant_stays_at_the_peak_and_cools_down_at_the_end() -> None:
    config = OptimConfig(peak_rate=4e-3, warmup_steps=20, schedule="constant", cooldown_steps=40)
    rates = [learning_rate(config, step, 120) for step in range(1, 121)]
    assert rates[9] == pytest.approx(2e-3)
    assert rates[19:81] == [4e-3] * 62
    assert rates[100] == pytest.approx(2e-3)
    assert rates[119] == pytest.approx(1e-4)
    longer = [learning_rate(config, step, 1000) for step in range(1, 81)]
    assert longer == rates[:80]


@pytest.mark.parametrize("name", ["inverse_sqrt", "linear", "constant"])
def test_without_warm_up_the_first_step_has_the_peak(name: str) -> None:
    config = OptimConfig(peak_rate=1e-3, warmup_steps=0, schedule=name)  # type: ignore[arg-type]
    assert learning_rate(config, 1, 1) == 1e-3
    assert learning_rate(config, 1, 50) == 1e-3


def test_a_share_rises_stays_and_falls() -> None:
    assert [rate_share(step, 12, 4, 4) for step in range(1, 13)] == [0.25, 0.5, 0.75, *[1] * 6, 0.75, 0.5, 0.25]
    shares = [rate_share(step, 100, 10, 90) for step in range(1, 102)]  # of MT-DNN: it falls from the warm-up on
    assert shares[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert shares[9] == shares[10] == 1
    assert shares[55] == pytest.approx(0.5)
    assert shares[100] == 0


def test_weight_decay_spares_vectors() -> None:
    optimizer = make_optimizer(nn.Linear(3, 2), OptimConfig(weight_decay=0.1))
    decays = {group["params"][0].dim(): group["weight_decay"] for group in optimizer.param_groups}
    assert decays == {2: 0.1, 1: 0.0}
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.98)


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
    assert average.state()["weight"].item() == pytest.approx(expected, rel=1e-5)
    assert 85 < expected < 95  # behind the last weight by about decay / (1 - decay)


# --- Which task each step trains on


def test_a_round_spreads_tasks_evenly() -> None:
    assert round_of({"a": 4, "b": 2, "c": 1}) == ["a", "b", "a", "c", "a", "b", "a"]
    assert round_of({"a": 1}) == ["a"]
    assert round_of({"a": 0, "b": 2}) == ["b", "b"]


def test_every_task_keeps_near_its_even_places() -> None:
    weights = {"squad": 10, "sst": 3, "woz": 3, "mwsc": 1, "imdb": 1}
    one_round = round_of(weights)
    assert Counter(one_round) == weights
    for name, weight in weights.items():
        places = [i + 0.5 for i, task in enumerate(one_round) if task == name]
        even = [(i + 0.5) / weight * len(one_round) for i in range(weight)]
        assert max(abs(place - wanted) for place, wanted in zip(places, even, strict=True)) <= len(weights) / 2


@pytest.mark.parametrize("weights", [{}, {"a": 0}, {"a": 2, "b": -1}])
def test_a_round_needs_a_task(weights: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must not be negative and not all 0, found"):
        round_of(weights)


def run(steps: int, *phases: PhaseConfig) -> TrainConfig:
    tasks = (TaskConfig("sst", 2), TaskConfig("mwsc", 1))
    return TrainConfig("r", tasks, steps, "v", phases=phases)


def test_phases_come_first_and_rounds_start_anew() -> None:
    config = run(10, PhaseConfig(3, {"mwsc": 1}), PhaseConfig(2, {"mwsc": 1, "sst": 1}))
    assert schedule(config) == ["mwsc"] * 3 + ["mwsc", "sst"] + ["sst", "mwsc", "sst", "sst", "mwsc"]
    assert schedule(run(4)) == ["sst", "mwsc", "sst", "sst"]
    assert schedule(run(3, PhaseConfig(3, {"mwsc": 1}))) == ["mwsc"] * 3


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    phase = PhaseConfig(5, {"mwsc": 2, "sst": 1})
    assert schedule(run(40, phase))[:17] == schedule(run(17, phase))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (run(9, PhaseConfig(2, {"imdb": 1})), "phases: 'imdb' is not among the tasks sst, mwsc"),
        (run(9, PhaseConfig(6, {"sst": 1}), PhaseConfig(4, {"sst": 1})), "phases: take 10 steps, the run has 9"),
        (run(9, PhaseConfig(2, {"sst": 0})), "not all 0"),
    ],
)
def test_a_curriculum_that_does_not_fit_is_refused(config: TrainConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schedule(config)
