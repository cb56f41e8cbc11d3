"""One run on several processes: each takes a share of every batch, and all take the step of the whole batch.

torchrun --nproc-per-node 4 --no-python mqan train RECIPE      four GPUs, or four processes of a CPU
mqan train RECIPE --ray-workers 4                              the same on a Ray cluster

Every process draws the same batches from the same seeded stream and keeps its share of their rows, so a checkpoint
holds nothing of a process, and a run goes on with any number of them. The first process alone writes files and
validates, while the others wait.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from mqan_training.losses import Losses, Mean, value_of

WAIT_S = 2 * 3600  # longest that the others wait while the first process validates


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among ``count`` of a run; that of rank 0 is the one that writes."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def wait(self) -> None:
        if self.count > 1:
            dist.barrier(device_ids=[self.device.index] if self.device.type == "cuda" else None)

    def all_same(self, number: int) -> bool:
        if self.count == 1:
            return True
        extremes = torch.tensor([number, -number], device=self.device)
        dist.all_reduce(extremes, dist.ReduceOp.MAX)
        return int(extremes[0]) == -int(extremes[1])

    def wrap(self, learner: nn.Module, *, has_unused_weights: bool) -> nn.Module:
        """Return what computes losses with gradients that are averaged over the processes."""
        if self.count == 1:
            return learner
        # The buffers never change; a batch may leave some weights without a gradient.
        return DistributedDataParallel(learner, forward_sync_buffers=False, find_unused_parameters=has_unused_weights)

    def merge(self, own: Losses, weights: Mapping[str, float], *, counts: bool) -> tuple[Tensor, dict[str, Tensor]]:
        """Return what to differentiate here, so that the processes' average is the gradient of the whole batch's
        losses, and these losses. Those without a weight are only watched; rows that do not count have weight 0.
        """
        whole = own
        if self.count > 1:
            numbers = [number.detach().double() for means in own.values() for mean in means for number in mean]
            sums = torch.stack(numbers) * counts
            dist.all_reduce(sums)
            pairs = iter(sums.float().view(-1, 2))
            whole = {name: tuple(Mean(*next(pairs)) for _ in means) for name, means in own.items()}
        objective = torch.zeros((), device=self.device)
        for name, weight in weights.items():
            means = zip(own[name], whole[name], strict=True)
            objective = objective + weight * value_of(Mean(mean.total, of_all.number) for mean, of_all in means)
        if self.count > 1:
            objective = objective * (self.count * counts)
        return objective, {name: value_of(means).detach() for name, means in whole.items()}

    def seed_dropout(self, seed: int, step: int) -> None:
        """Give each process but the first, whose state is in checkpoints, one by the seed and a step of the run.

        So a run that goes on from a checkpoint with the same number of processes draws the same dropout.
        """
        if not self.is_first:
            state = np.random.SeedSequence([seed, self.rank, step]).generate_state(1, np.uint64)
            torch.manual_seed(int(state[0]))


def is_first_process() -> bool:
    """Return whether this process, before it joined the others, is to be the one that writes."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def joined_processes() -> Iterator[Processes]:
    """Join the processes that a launcher started beside this one, and leave them at the end.

    A launcher is what sets ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, ``MASTER_ADDR`` and ``MASTER_PORT``, as torchrun
    does. A process group that exists already (Ray Train makes one) is used and left as it is. Without either, this
    process is alone.
    """
    if dist.is_initialized():
        on_gpu = dist.get_backend() == "nccl"
        device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
        yield Processes(dist.get_rank(), dist.get_world_size(), device)
        return
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(0, 1, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        return
    device = _own_device(int(os.environ.get("LOCAL_RANK", "0")))
    backend, gpu = ("nccl", device) if device.type == "cuda" else ("gloo", None)
    if gpu is not None:
        torch.cuda.set_device(gpu)
    dist.init_process_group(backend, timeout=timedelta(seconds=WAIT_S), device_id=gpu)
    yield Processes(dist.get_rank(), count, device)
    dist.destroy_process_group()  # not after an error: the others may be in the middle of something


def _own_device(local_rank: int) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    num_gpus = torch.cuda.device_count()
    if local_rank >= num_gpus:
        raise ValueError(
            f"process {local_rank} of this machine has no GPU, there are {num_gpus}: start at most {num_gpus} here "
            "(torchrun --nproc-per-node), or hide the GPUs with CUDA_VISIBLE_DEVICES= to train on the CPU"
        )
    return torch.device("cuda", local_rank)
