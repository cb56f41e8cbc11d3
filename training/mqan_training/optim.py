"""Adam, learning rates that rise, stay and fall, and a moving average of the weights."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from mqan_training.config import OptimConfig
from mqan_training.errors import DivergedError


def rate_share(step: int, total_steps: int, warmup_steps: int, cooldown_steps: int) -> float:
    """Return which share of the highest rate a step has, counted from 1.

    It rises over the warm-up, stays, and falls linearly to 0 over the last ``cooldown_steps``, so that a run can be
    made longer or shorter until then (Haegele et al. 2024).
    """
    rising = min(1.0, step / max(warmup_steps, 1))
    return min(rising, max(total_steps - step + 1, 0) / cooldown_steps) if cooldown_steps > 0 else rising


def learning_rate(config: OptimConfig, step: int, total_steps: int) -> float:
    """Return the learning rate of a step, counted from 1.

    ``inverse_sqrt`` is the paper's: linear from 0 to the peak over the warm-up, then peak * sqrt(warmup / step).
    ``constant`` stays at the peak until the last ``cooldown_steps``; ``linear`` falls from the warm-up on, to 0 at the
    last step.
    """
    warmup = max(config.warmup_steps, 1)
    if config.schedule == "inverse_sqrt":
        return config.peak_rate * min(step / warmup, math.sqrt(warmup / step))
    if config.schedule == "linear":
        return config.peak_rate * min(step / warmup, rate_share(step + 1, total_steps, warmup, total_steps - warmup))
    return config.peak_rate * rate_share(step, total_steps, warmup, config.cooldown_steps)


def make_optimizer(module: nn.Module, config: OptimConfig) -> torch.optim.Adam:
    """Return the optimiser of a module's parameters; weight decay, if any, is decoupled."""
    groups = decay_groups(module.parameters(), config.weight_decay)
    return torch.optim.AdamW(groups, lr=0.0, betas=config.betas, eps=config.epsilon, fused=True)


def decay_groups(parameters: Iterable[nn.Parameter], weight_decay: float, **settings: float) -> list[dict[str, Any]]:
    """Return groups of an optimiser: matrices, which decay, and vectors, which do not."""
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for parameter in parameters:
        (vectors if parameter.dim() <= 1 else matrices).append(parameter)
    return [
        {"params": matrices, "weight_decay": weight_decay, **settings},
        {"params": vectors, "weight_decay": 0.0, **settings},
    ]


def refuse_divergence(step: int, values: Mapping[str, float | Tensor], advice: str) -> None:
    """Check that the numbers of a step are finite; waits for the device that they are computed on.

    Args:
        step: that they are of.
        values: losses and the norm of the gradient, by name.
        advice: what to change.

    Raises:
        DivergedError: one is not.
    """
    if wrong := [name for name, value in values.items() if not math.isfinite(float(value))]:
        raise DivergedError(f"step {step}: {' and '.join(wrong)} not finite: the run has diverged; {advice}")


class WeightAverage:
    """Exponential moving average of parameters, with the usual correction for a short history."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: p.detach().clone() for name, p in module.named_parameters()}

    @torch.no_grad()
    def update(self, module: nn.Module, step: int) -> None:
        """Take in the weights after a step, counted from 1."""
        decay = min(self.decay, (1 + step) / (10 + step))
        parameters = dict(module.named_parameters())
        averages = [self.tensors[name] for name in parameters]
        torch._foreach_lerp_(averages, list(parameters.values()), 1 - decay)

    @torch.no_grad()
    def mix(self, weights: Mapping[str, Tensor], share: float) -> None:
        """Take in a share of other weights, by name."""
        for name, tensor in self.tensors.items():
            if name in weights:  # what they lack was not there to begin with
                tensor.lerp_(weights[name].to(tensor), share)

    def state(self) -> dict[str, Tensor]:
        """Return the averaged weights by name."""
        return self.tensors

    @contextmanager
    def in_use(self, module: nn.Module) -> Iterator[None]:
        """Give a module the averaged weights for a while."""
        trained = {name: p.detach().clone() for name, p in module.named_parameters()}
        module.load_state_dict(self.tensors, strict=False)
        yield
        module.load_state_dict(trained, strict=False)
