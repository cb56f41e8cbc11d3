"""Trace a pretrained reader: windows of word pieces -> all that the decoder reads of their words.

Shape letters: N windows, S pieces of a window, T words of a window, M width of the reader, D width of the decoder,
H heads.
"""

import copy
from collections.abc import Sequence

import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from mqan_core.text.layout import SHARED
from mqan_export.trace import OPSET, traced
from mqan_runtime.graphs import DYNAMIC, PIECES_INPUTS, pieces_outputs
from mqan_training.model.bert import BertLayer
from mqan_training.model.evidence import EVIDENCE_WIDTH
from mqan_training.model.pretrained import PretrainedNetwork, attention_mask
from mqan_training.model.similarity import mean_of_text
from mqan_training.piece_batches import MOST_PIECES

_HIDDEN = -1e4  # is added to the scores of pieces that are not attended to


class BalancedLinear(nn.Module):
    """A product as 8-bit numbers can hold it: the same function of its inputs as before.

    Its inputs are divided by a scale a feature, and its weights multiplied. Some inputs are ``apart``: they have a
    small product of their own, which is to stay in float32, and their columns of the weights are zeros.

    Args:
        linear: the product.
        scale_I: scale of each input.
        apart: places of the inputs that are apart.
    """

    inverse_I: Tensor
    places: Tensor
    own: Tensor

    def __init__(self, linear: nn.Linear, scale_I: Tensor, apart: Sequence[int] = ()) -> None:
        super().__init__()
        weight = linear.weight.detach().clone()
        self.register_buffer("places", torch.tensor(apart, dtype=torch.int64))
        self.register_buffer("own", weight[:, self.places].T.contiguous())
        weight[:, self.places] = 0.0
        self.register_buffer("inverse_I", 1 / scale_I)
        self.rest = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
        with torch.no_grad():
            self.rest.weight.copy_(weight * scale_I)
            if linear.bias is not None:
                self.rest.bias.copy_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., I] to [..., O]."""
        mapped: Tensor = self.rest(x * self.inverse_I)
        return mapped + x.index_select(-1, self.places) @ self.own if len(self.places) else mapped


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
    """

    def __init__(self, network: PretrainedNetwork) -> None:
        super().__init__()
        network = copy.deepcopy(network).eval()
        bert, decoder = network.bert, network.decoder
        self.positions, self.segments, self.norm = bert.positions, bert.segments, bert.norm
        self.layers = nn.ModuleList(ReaderLayer(layer) for layer in bert.layers)  # type: ignore[arg-type]
        self.word = network.project
        self.span, self.null, self.summary = network.span, network.null, network.summary
        self.similarity = network.similarity
        self.evidence = nn.Linear(bert.config.hidden_size, 2 * EVIDENCE_WIDTH)  # one product is faster than two
        with torch.no_grad():
            parts = (network.evidence.label, network.evidence.word)
            self.evidence.weight.copy_(torch.cat([part.weight for part in parts]))
            self.evidence.bias.copy_(torch.cat([part.bias for part in parts]))
        self.projection = decoder.projection
        self.contexts = nn.ModuleList(layer.context_attention for layer in decoder.layers)  # type: ignore[misc]

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
        states_NTM = _means(x_NSM, firsts_NT, lasts_NT)
        words_NTD = self.word(states_NTM)
        start_NT, end_NT = self.span(states_NTM).unbind(dim=-1)
        start_NT = start_NT + self._similarity(x_NSM, segments_NS, states_NTM) * _begin_choices(groups_NS, firsts_NT)
        pairs = [context.keys_values(words_NTD) for context in self.contexts]  # type: ignore[operator]
        return (
            words_NTD,
            self.projection(_means(vectors_NSM, firsts_NT, torch.minimum(lasts_NT, firsts_NT + (MOST_PIECES - 1)))),
            start_NT,
            end_NT,
            self.null(x_NSM[:, 0]),
            self.summary(x_NSM[:, 0]),
            *(keys for keys, _ in pairs),
            *(values for _, values in pairs),
            *self.evidence(states_NTM).chunk(2, dim=-1),
        )

    def _similarity(self, x_NSM: Tensor, segments_NS: Tensor, states_NTM: Tensor) -> Tensor:
        text_N1M = mean_of_text(x_NSM, segments_NS)[:, None]
        vectors_NTM = self.similarity.vectors(torch.cat([text_N1M, states_NTM], dim=1))  # one product, stored once
        return self.similarity.score(vectors_NTM[:, :1], vectors_NTM[:, 1:])

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


def _begin_choices(groups_NS: Tensor, firsts_NT: Tensor) -> Tensor:
    """Return 1 for the words that are choices, else 0, [N, T]."""
    return (groups_NS.gather(1, firsts_NT) > SHARED).float()


def _means(x_NSM: Tensor, firsts_NT: Tensor, lasts_NT: Tensor) -> Tensor:
    """Return the mean of what each word's pieces have, [N, T, M]."""
    place_S = torch.arange(x_NSM.shape[1])
    is_of_NTS = (place_S >= firsts_NT[..., None]) & (place_S <= lasts_NT[..., None])
    counts_NT1 = (lasts_NT - firsts_NT + 1).to(x_NSM.dtype)[..., None]
    return (is_of_NTS.to(x_NSM.dtype) @ x_NSM) / counts_NT1


def trace_reader(graph: ReaderGraph, num_layers: int) -> onnx.ModelProto:
    """Return the graph in ONNX; ``num_layers`` are the decoder's."""
    outputs = list(pieces_outputs(num_layers, evidence=True, text=False))
    return traced(graph, graph.example_inputs(), PIECES_INPUTS, outputs, DYNAMIC, OPSET)
