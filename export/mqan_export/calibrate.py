"""Measure the ranges of what the LSTMs read, for the 8-bit graphs of a CPU."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mqan_core.request import Request
from mqan_training.layers import BiLSTM, length_mask
from mqan_training.network import Network

_BATCH = 16
_ROOM = 1.1  # for what these examples did not show; values beyond are clipped
_LEAST_RANGE = 1e-3


@torch.no_grad()
def measure_input_ranges(network: Network, requests: Sequence[Request]) -> dict[str, npt.NDArray[np.float32]]:
    """Return, by the name of each LSTM's module in the graph, the largest absolute value of each input [I].

    Args:
        network: in evaluation mode.
        requests: real ones, at least one.

    Raises:
        ValueError: there are no requests.
    """
    if not requests:
        raise ValueError("input ranges cannot be measured without requests")
    largest: dict[str, Tensor] = {}

    def note(name: str, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        x_BTI, lengths_B = inputs
        inside_BT1 = length_mask(lengths_B, x_BTI.shape[1])[:, :, None]
        seen_I = (x_BTI * inside_BT1).abs().amax(dim=(0, 1))
        largest[name] = torch.maximum(largest[name], seen_I) if name in largest else seen_I

    modules = [(name, module) for name, module in network.named_modules() if isinstance(module, BiLSTM)]
    hooks = [module.register_forward_pre_hook(partial(note, name)) for name, module in modules]
    try:
        for first in range(0, len(requests), _BATCH):
            network.encode_requests(requests[first : first + _BATCH], torch.device("cpu"))
    finally:
        for hook in hooks:
            hook.remove()
    return {name: np.maximum(seen.numpy() * _ROOM, _LEAST_RANGE).astype(np.float32) for name, seen in largest.items()}
