"""Adam with the warm-up schedules of appendix B, and a moving average of the weights."""

import math

import torch
from torch import Tensor, nn

from mqan_training.config import OptimConfig


def learning_rate(config: OptimConfig, step: int, total_steps: int) -> float:
    """Return the learning rate of a step, counted from 1.

    ``inverse_sqrt`` is the paper's: linear from 0 to the peak over the warm-up, then peak * sqrt(warmup / step).
    ``linear`` falls to 0 at ``total_steps``. ``constant`` stays at the peak and falls linearly to 0 over
    the last ``cooldown_steps``, so that a run can be made longer or shorter until then (Haegele et al. 2024).
    """
    warmup = max(config.warmup_steps, 1)
    if step < warmup:
        return config.peak_rate * step / warmup
    if config.schedule == "inverse_sqrt":
        return config.peak_rate * math.sqrt(warmup / step)
    if config.schedule == "constant":
        return config.peak_rate * min(1.0, (total_steps - step + 1) / max(config.cooldown_steps, 1))
    done = min(max(step - warmup, 0) / max(total_steps - warmup, 1), 1.0)
    return config.peak_rate * (1 - done)


def make_optimizer(module: nn.Module, config: OptimConfig) -> torch.optim.Adam:
    """Return the optimiser of a module's parameters; weight decay, if any, is decoupled and spares vectors."""
    parameters = list(module.parameters())
    groups = [
        {"params": [p for p in parameters if (p.dim() <= 1) == is_vector], "weight_decay": decay}
        for is_vector, decay in ((False, config.weight_decay), (True, 0.0))
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=config.betas, eps=config.epsilon, fused=True)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = rate


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

    def state(self) -> dict[str, Tensor]:
        """Return the averaged weights by name."""
        return self.tensors
