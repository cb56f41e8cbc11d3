"""Adam, and a moving average of the weights."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from mqan_core.errors import MqanError
from mqan_training.recipe import Recipe


class DivergedError(MqanError, FloatingPointError):
    """A loss or the gradient of a run is not finite; the message says of which step, and what to change."""


def make_optimizer(network: nn.Module, recipe: Recipe, of_reader: tuple[str, ...]) -> torch.optim.Optimizer:
    """Return AdamW with a rate for weights whose names begin with ``of_reader``, and one for all else."""
    groups: list[dict[str, Any]] = []
    for is_reader, rate in ((True, recipe.reader_rate), (False, recipe.decoder_rate)):
        found = [p for name, p in network.named_parameters() if name.startswith(of_reader) == is_reader]
        for is_matrix, decay in ((True, recipe.weight_decay), (False, 0.0)):  # vectors do not decay
            some = [p for p in found if (p.dim() > 1) == is_matrix]
            groups.append({"params": some, "weight_decay": decay, "peak_rate": rate})
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=recipe.epsilon, fused=True)


def refuse_divergence(step: int, values: Mapping[str, float | Tensor], advice: str) -> None:
    """Check that the numbers of a step are finite; waits for the device that they are computed on."""
    if wrong := [name for name, value in values.items() if not math.isfinite(float(value))]:
        raise DivergedError(f"step {step}: {' and '.join(wrong)} not finite: the run has diverged; {advice}")


class WeightAverage:
    """Exponential moving average of parameters, with the usual correction for a short history."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: p.detach().clone() for name, p in module.named_parameters()}

    @torch.no_grad()
    def update(self, module: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        parameters = dict(module.named_parameters())
        averages = [self.tensors[name] for name in parameters]
        torch._foreach_lerp_(averages, list(parameters.values()), 1 - decay)

    @torch.no_grad()
    def mix(self, weights: Mapping[str, Tensor], share: float) -> None:
        for name, tensor in self.tensors.items():
            if name in weights:  # what they lack was not there to begin with
                tensor.lerp_(weights[name].to(tensor), share)

    @contextmanager
    def in_use(self, module: nn.Module) -> Iterator[None]:
        trained = {name: p.detach().clone() for name, p in module.named_parameters()}
        module.load_state_dict(self.tensors, strict=False)
        yield
        module.load_state_dict(trained, strict=False)
