"""The bidirectional LSTM as one ONNX operator that knows each row's length.

``torch.export`` does not trace packed sequences, and a loop over time steps would be unrolled. So the exported graph
calls a custom torch operator, which is translated to ONNX ``LSTM`` with ``sequence_lens``.
"""

from collections.abc import Callable
from typing import Any

import onnxscript
import torch
from onnxscript import opset18 as op
from torch import Tensor, nn

from mqan_training.model.layers import BiLSTM

_TORCH_GATES = ("i", "f", "g", "o")
_ONNX_GATES = ("i", "o", "f", "g")  # ONNX calls the cell gate c


@torch.library.custom_op("mqan::bilstm", mutates_args=())
def bilstm(x_BTI: Tensor, lengths_B: Tensor, w_2GI: Tensor, r_2GK: Tensor, b_2G: Tensor) -> Tensor:
    """Run a bidirectional LSTM over right-padded rows; [B, T, 2 K], 0 beyond a row's length.

    Weights are in the layout of the ONNX operator: directions, gates in the order i o f g, biases of input and
    recurrence one after the other. It is there to be traced, not to be run in torch.
    """
    raise NotImplementedError


@bilstm.register_fake
def _(x_BTI: Tensor, lengths_B: Tensor, w_2GI: Tensor, r_2GK: Tensor, b_2G: Tensor) -> Tensor:
    return x_BTI.new_empty(x_BTI.shape[0], x_BTI.shape[1], 2 * r_2GK.shape[2])


def translation_table(hidden_width: int) -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return the ``custom_translation_table`` for ``torch.onnx.export``, of one width K of a direction."""

    def bilstm_onnx(x, lengths, w, r, b):  # type: ignore[no-untyped-def]  # the exporter reads annotations
        x_TBI = op.Transpose(x, perm=[1, 0, 2])
        lengths_32 = op.Cast(lengths, to=onnxscript.INT32.dtype)
        attributes: dict[str, Any] = {"direction": "bidirectional", "hidden_size": hidden_width}
        y_T2BK, _, _ = op.LSTM(x_TBI, w, r, b, lengths_32, **attributes)  # type: ignore[arg-type]
        y_BT2K = op.Transpose(y_T2BK, perm=[2, 0, 1, 3])
        return op.Reshape(y_BT2K, op.Constant(value_ints=[0, 0, -1]))  # type: ignore[arg-type]

    return {torch.ops.mqan.bilstm.default: bilstm_onnx}


class ExportedBiLSTM(nn.Module):
    """A trained ``BiLSTM`` with its weights in the layout of the ONNX operator."""

    def __init__(self, trained: BiLSTM) -> None:
        super().__init__()
        directions = (trained.forward_lstm, trained.backward_lstm)
        self.register_buffer("w", torch.stack([_reorder(d.weight_ih_l0) for d in directions]))
        self.register_buffer("r", torch.stack([_reorder(d.weight_hh_l0) for d in directions]))
        biases = [torch.cat([_reorder(d.bias_ih_l0), _reorder(d.bias_hh_l0)]) for d in directions]
        self.register_buffer("b", torch.stack(biases))

    def forward(self, x_BTI: Tensor, lengths_B: Tensor) -> Tensor:
        """Map [B, T, I] with lengths [B] to [B, T, D]."""
        output: Tensor = torch.ops.mqan.bilstm(x_BTI, lengths_B, self.w, self.r, self.b)
        return output


def _reorder(weights: Tensor | nn.Module) -> Tensor:
    if not isinstance(weights, Tensor):
        raise TypeError("expected a weight")
    gates = dict(zip(_TORCH_GATES, weights.detach().chunk(4), strict=True))
    return torch.cat([gates[name] for name in _ONNX_GATES]).contiguous()


def replace_bilstms(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, BiLSTM):
            setattr(module, name, ExportedBiLSTM(child))
        else:
            replace_bilstms(child)
