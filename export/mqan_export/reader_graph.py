"""Trace a pretrained reader: windows of word pieces -> all that the decoder reads of their words.

Shape letters: N windows, S pieces of a window, T words of a window, M width of the reader, D width of the decoder,
H heads.
"""

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from mqan_training.collate import MOST_PIECES
from mqan_training.model.bert import BertLayer
from mqan_training.model.pretrained import PretrainedNetwork, attention_mask

_HIDDEN = -1e4  # is added to the scores of pieces that are not attended to


class ScaledLinear(nn.Module):
    """A product whose inputs are divided by a scale a feature, and its weights multiplied: the same function.

    It lets 8-bit numbers hold inputs of which a few features are much wider than the others.
    """

    inverse: Tensor

    def __init__(self, linear: nn.Linear, scale_I: Tensor) -> None:
        super().__init__()
        self.register_buffer("inverse", 1 / scale_I)
        self.linear = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
        with torch.no_grad():
            self.linear.weight.copy_(linear.weight * scale_I)
            if linear.bias is not None:
                self.linear.bias.copy_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., I] to [..., O]."""
        mapped: Tensor = self.linear(x * self.inverse)
        return mapped


class ReaderLayer(nn.Module):
    """A layer of the reader with one product for queries, keys and values, and attention as one operator."""

    def __init__(self, layer: BertLayer) -> None:
        super().__init__()
        parts = (layer.query, layer.key, layer.value)
        self.num_heads = layer.num_heads
        self.inputs: nn.Module = nn.Linear(layer.query.in_features, 3 * layer.query.out_features)
        with torch.no_grad():
            self.inputs.weight.copy_(torch.cat([part.weight for part in parts]))
            self.inputs.bias.copy_(torch.cat([part.bias for part in parts]))
        self.attention_output: nn.Module = layer.attention_output
        self.attention_norm = layer.attention_norm
        self.inner: nn.Module = layer.inner
        self.outer: nn.Module = layer.outer
        self.output_norm = layer.output_norm

    def forward(self, x_NSM: Tensor, bias_N1SS: Tensor) -> Tensor:
        """Map [N, S, M] to [N, S, M]."""
        queries, keys, values = self.inputs(x_NSM).chunk(3, dim=-1)
        heads = self.num_heads
        attended, *_ = torch.onnx.ops.attention(queries, keys, values, bias_N1SS, q_num_heads=heads, kv_num_heads=heads)
        x_NSM = self.attention_norm(x_NSM + self.attention_output(attended))
        output: Tensor = self.output_norm(x_NSM + self.outer(functional.gelu(self.inner(x_NSM))))
        return output


class ReaderGraph(nn.Module):
    """The graph ``reader-*.onnx``; inputs and outputs are those of ``mqan_runtime.answering_graphs``.

    Args:
        network: whose reader it is.
        scales: name of a product -> scale of each feature that it reads (``ScaledLinear``).
    """

    def __init__(self, network: PretrainedNetwork, scales: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        network = copy.deepcopy(network).eval()
        bert, decoder = network.bert, network.decoder
        self.positions, self.segments, self.norm = bert.positions, bert.segments, bert.norm
        self.layers = nn.ModuleList(ReaderLayer(layer) for layer in bert.layers)  # type: ignore[arg-type]
        self.word = network.project
        self.span, self.null, self.summary = network.span, network.null, network.summary
        self.projection = decoder.projection
        self.contexts = nn.ModuleList(layer.context_attention for layer in decoder.layers)  # type: ignore[misc]
        for name, scale_I in (scales or {}).items():
            parent, _, last = name.rpartition(".")
            module = self.get_submodule(parent)
            setattr(module, last, ScaledLinear(getattr(module, last), scale_I))

    def forward(
        self,
        vectors_NSM: Tensor,
        positions_NS: Tensor,
        segments_NS: Tensor,
        groups_NS: Tensor,
        firsts_NT: Tensor,
        lasts_NT: Tensor,
    ) -> tuple[Tensor, ...]:
        """Read windows."""
        x_NSM = self.norm(vectors_NSM + self.positions(positions_NS) + self.segments(segments_NS))
        bias_N1SS = torch.where(attention_mask(groups_NS)[:, None], 0.0, _HIDDEN)
        for layer in self.layers:
            x_NSM = layer(x_NSM, bias_N1SS)
        num_windows, num_pieces, width = vectors_NSM.shape
        begins_N1 = torch.arange(num_windows)[:, None] * num_pieces
        states_NTM = x_NSM.reshape(-1, width)[firsts_NT + begins_N1]
        words_NTD = self.word(states_NTM)
        start_NT, end_NT = self.span(states_NTM).unbind(dim=-1)
        pairs = [context.keys_values(words_NTD) for context in self.contexts]  # type: ignore[operator]
        return (
            words_NTD,
            self.projection(_word_vectors(vectors_NSM, firsts_NT, lasts_NT)),
            start_NT,
            end_NT,
            self.null(x_NSM[:, 0]),
            self.summary(x_NSM[:, 0]),
            *(keys for keys, _ in pairs),
            *(values for _, values in pairs),
        )

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Return inputs to trace with; every dynamic size is different, so that none is taken for another."""
        windows, pieces, words = 2, 11, 7
        firsts = torch.arange(1, 1 + words).expand(windows, -1).contiguous()
        return (
            torch.randn(windows, pieces, self.positions.embedding_dim),
            torch.arange(pieces).expand(windows, -1).contiguous(),
            torch.zeros(windows, pieces, dtype=torch.int64),
            torch.ones(windows, pieces, dtype=torch.int64),
            firsts,
            firsts + 1,
        )


def _word_vectors(vectors_NSM: Tensor, firsts_NT: Tensor, lasts_NT: Tensor) -> Tensor:
    """Return the mean of the vectors of each word's first ``MOST_PIECES`` pieces, [N, T, M]."""
    place_S = torch.arange(vectors_NSM.shape[1])
    ends_NT = torch.minimum(lasts_NT, firsts_NT + MOST_PIECES - 1)
    is_of_NTS = (place_S >= firsts_NT[..., None]) & (place_S <= ends_NT[..., None])
    counts_NT1 = (ends_NT - firsts_NT + 1).to(vectors_NSM.dtype)[..., None]
    return (is_of_NTS.to(vectors_NSM.dtype) @ vectors_NSM) / counts_NT1
