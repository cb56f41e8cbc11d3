"""Muon: steps whose matrices are nearly orthogonal, so that no direction of a layer is left behind.

Jordan et al. (2024), "Muon: An optimizer for hidden layers in neural networks"; the size of the steps is that of Liu et
al. (2025), "Muon is scalable for LLM training", equation 4: as large as Adam's, so that a recipe's rate fits either.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic iteration
_ITERATIONS = 5
_MOMENTUM = 0.95
_RMS = 0.2  # of a step's elements at a rate of 1
_LEAST_WIDTH = 64  # a matrix with fewer rows or columns is a handful of vectors
_PARTS_OF = {"weight_ih": 4, "weight_hh": 4, "inputs": 3}  # gates of an LSTM; queries, keys and values


class MuonWithAdam(torch.optim.AdamW):
    """Muon for the groups whose ``num_parts`` is not 0, all else as AdamW does."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step of both kinds; Muon's matrices lose their gradients."""
        for group in self.param_groups:
            if not group["num_parts"]:
                continue
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                state = self.state[parameter]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(parameter)
                state["momentum"].lerp_(gradient, 1 - _MOMENTUM)
                direction_PMN = gradient.lerp(state["momentum"], _MOMENTUM).unflatten(0, (group["num_parts"], -1))
                size = _RMS * max(direction_PMN.shape[1:]) ** 0.5
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.sub_(orthogonal(direction_PMN).flatten(0, 1), alpha=group["lr"] * size)
                parameter.grad = None  # Adam passes over it
        return super().step(closure)


def orthogonal(x_PMN: Tensor) -> Tensor:
    """Return matrices with the singular vectors of the given ones, and singular values between 0.6 and 1.3.

    By Newton and Schulz's iteration; values below a hundredth of a matrix's Frobenius norm stay smaller.
    """
    is_tall = x_PMN.shape[1] > x_PMN.shape[2]
    x_PMN = x_PMN.transpose(1, 2) if is_tall else x_PMN
    x_PMN = x_PMN / (x_PMN.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        gram_PMM = x_PMN @ x_PMN.transpose(1, 2)
        x_PMN = a * x_PMN + (b * gram_PMM + c * gram_PMM @ gram_PMM) @ x_PMN
    return x_PMN.transpose(1, 2) if is_tall else x_PMN


def num_parts(name: str, parameter: Tensor) -> int:
    """Return how many matrices a parameter stacks, each of which takes steps of its own.

    0 for what is no matrix between hidden layers: embeddings, the output over words, gates and vectors.
    """
    is_of_words = "ngrams" in name or "generator" in name
    if parameter.dim() != 2 or min(parameter.shape) < _LEAST_WIDTH or is_of_words:
        return 0
    return next((number for part, number in _PARTS_OF.items() if f".{part}" in name), 1)
