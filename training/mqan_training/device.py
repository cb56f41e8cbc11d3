"""The device that networks are trained on, and how batches get there."""

import torch
from torch import Tensor


def prepare_device() -> torch.device:
    """Return what networks are trained on: a GPU if there is one."""
    torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for each shape that it meets, in 10 ms
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the CPU on a device; a copy to a GPU does not wait for what the GPU is still at."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
