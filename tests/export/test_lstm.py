"""The exported LSTM operator equals the trained layer."""

import numpy as np
import onnxruntime
import torch
from torch import nn

from mqan_export.reader_graphs import ExportedBiLSTM, replace_bilstms, translation_table
from mqan_export.trace import WORDS_OPSET, traced
from mqan_training.model.layers import BiLSTM


def test_the_operator_equals_the_layer() -> None:
    torch.manual_seed(2)
    layer = BiLSTM(5, 8)
    for parameter in layer.parameters():
        parameter.data.normal_()
    x, lengths = torch.randn(4, 9, 5), torch.tensor([9, 1, 4, 7])
    axes: dict[str, tuple[str, ...]] = {"x": ("B", "C", "M"), "lengths": ("B",)}
    model = traced(ExportedBiLSTM(layer), (x, lengths), axes, ["y"], WORDS_OPSET, translation_table(4))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": x.numpy(), "lengths": lengths.numpy()})
    np.testing.assert_allclose(found, layer(x, lengths).detach().numpy(), atol=1e-6, rtol=1e-5)


def test_every_layer_is_replaced() -> None:
    module = nn.ModuleDict({"a": BiLSTM(4, 4), "b": nn.ModuleList([BiLSTM(4, 4), nn.Linear(4, 4)])})
    replace_bilstms(module)
    assert not any(isinstance(child, BiLSTM) for child in module.modules())
    assert sum(isinstance(child, ExportedBiLSTM) for child in module.modules()) == 2
