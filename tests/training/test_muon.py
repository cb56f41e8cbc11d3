"""Muon's steps: orthogonal for the matrices between hidden layers, Adam's for all else."""

import pytest
import torch
from torch import nn

from mqan_training.config import OptimConfig
from mqan_training.model.layers import BiLSTM, MultiHead
from mqan_training.muon import orthogonal
from mqan_training.optim import make_optimizer

RATE, DECAY = 1e-2, 0.1


class Layers(nn.Module):
    """One layer of each kind that the network has."""

    def __init__(self) -> None:
        super().__init__()
        self.ngrams = nn.EmbeddingBag(100, 70)
        self.lstm = BiLSTM(80, 140)
        self.attention = MultiHead(72, 2, 36, dropout=0.0)
        self.outer = nn.Linear(72, 150)
        self.gamma = nn.Linear(72, 1)
        self.generator = nn.Linear(72, 90)


@pytest.mark.parametrize("shape", [(1, 70, 70), (4, 70, 200), (3, 200, 70)])
def test_singular_values_become_about_1_and_their_vectors_stay(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(1)
    x = torch.randn(shape) * torch.tensor([1e-3, 1.0, 30.0, 5.0])[: shape[0], None, None]
    left, values, right = torch.linalg.svd(x, full_matrices=False)
    found = left.transpose(1, 2) @ orthogonal(x) @ right.transpose(1, 2)
    on_diagonal = found.diagonal(dim1=1, dim2=2)
    told = values > 0.01 * x.norm(dim=(1, 2))[:, None]
    assert told.float().mean() > 0.8
    assert on_diagonal[told].min() > 0.6
    assert on_diagonal.max() < 1.3
    torch.testing.assert_close(found, torch.diag_embed(on_diagonal), atol=1e-4, rtol=0)


def test_only_hidden_matrices_take_orthogonal_steps_and_gates_each_their_own() -> None:
    torch.manual_seed(1)
    muon, adam = Layers(), Layers()
    adam.load_state_dict(muon.state_dict())
    before = {name: p.detach().clone() for name, p in muon.named_parameters()}
    for method, layers in (("muon", muon), ("adam", adam)):
        optimizer = make_optimizer(layers, OptimConfig(method=method, weight_decay=DECAY))  # type: ignore[arg-type]
        for group in optimizer.param_groups:
            group["lr"] = RATE
        generator = torch.Generator().manual_seed(2)
        for parameter in layers.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
    as_adam = dict(adam.named_parameters())
    parts = {"lstm": 4, "attention.inputs": 3, "attention.output": 1, "outer": 1}
    orthogonal_ones = set()
    for name, parameter in muon.named_parameters():
        number = next((number for start, number in parts.items() if name.startswith(start)), None)
        if number is None or parameter.dim() == 1:
            torch.testing.assert_close(parameter, as_adam[name], msg=name)
            continue
        orthogonal_ones.add(name)
        step = (before[name] * (1 - RATE * DECAY) - parameter).detach().unflatten(0, (number, -1))
        size = RATE * 0.2 * max(step.shape[1:]) ** 0.5
        values = torch.linalg.svdvals(step)
        assert values.max() < 1.3 * size, name
        assert values.median() > 0.6 * size, name
        elements = step.square().mean().sqrt() / RATE
        assert 0.1 < elements < 0.25, f"{name}: as large as Adam's"
    assert len(orthogonal_ones) == 7
