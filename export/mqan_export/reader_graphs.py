"""Trace readers: what they read -> all that the decoder reads of it, by the names of ``mqan_runtime.graphs``.

Shape letters: N windows, S pieces of a window, T words of a window, M width of the reader, D width of the decoder,
H heads.
"""

import copy
from collections.abc import Callable
from typing import Any, Final

import onnx
import onnxscript
import torch
from onnxscript import opset18 as op
from torch import Tensor, nn
from torch.nn import functional

from mqan_core.text.layout import SHARED
from mqan_export.step_graph import Table
from mqan_export.trace import WORDS_OPSET, examples_of, traced
from mqan_runtime import graphs as g
from mqan_training.model.bert import BertLayer
from mqan_training.model.heads import EVIDENCE_WIDTH, mean_of_text
from mqan_training.model.layers import BiLSTM
from mqan_training.model.network import Network, gather_slots
from mqan_training.model.pretrained import PretrainedNetwork, attention_mask
from mqan_training.piece_batches import MOST_PIECES

_HIDDEN: Final = -1e4  # is added to the scores of pieces that are not attended to


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


class PiecesGraph(nn.Module):
    """The graph ``reader-*.onnx`` of word pieces: windows -> all that the decoder reads of their words."""

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
        x_NSM = self.norm(vectors_NSM + self.positions(positions_NS) + self.segments(segments_NS))
        bias_N1SS = torch.where(attention_mask(groups_NS)[:, None], 0.0, _HIDDEN)
        for layer in self.layers:
            x_NSM = layer(x_NSM, bias_N1SS)
        states_NTM = _means(x_NSM, firsts_NT, lasts_NT)
        words_NTD = self.word(states_NTM)
        start_NT, end_NT = self.span(states_NTM).unbind(dim=-1)
        text_N1M = mean_of_text(x_NSM, segments_NS)[:, None]
        vectors_NTM = self.similarity.vectors(torch.cat([text_N1M, states_NTM], dim=1))  # one product, stored once
        text_N1M, vectors_NTM = vectors_NTM[:, :1], vectors_NTM[:, 1:]
        alike_NT = self.similarity.score(text_N1M, vectors_NTM)
        start_NT = start_NT + alike_NT * (groups_NS.gather(1, firsts_NT) > SHARED).float()  # of choices
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
            text_N1M[:, 0],
        )


def _means(x_NSM: Tensor, firsts_NT: Tensor, lasts_NT: Tensor) -> Tensor:
    place_S = torch.arange(x_NSM.shape[1])
    is_of_NTS = (place_S >= firsts_NT[..., None]) & (place_S <= lasts_NT[..., None])
    counts_NT1 = (lasts_NT - firsts_NT + 1).to(x_NSM.dtype)[..., None]
    return (is_of_NTS.to(x_NSM.dtype) @ x_NSM) / counts_NT1


class WordsGraph(nn.Module):
    """The graph ``reader-*.onnx`` of words: vectors of slots, and the slot of each word."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.mqan = copy.deepcopy(network.mqan).eval()
        replace_bilstms(self.mqan)

    def forward(
        self,
        vectors: Tensor,
        context_slots: Tensor,
        question_slots: Tensor,
        context_lengths: Tensor,
        question_lengths: Tensor,
    ) -> tuple[Tensor, ...]:
        projected = self.mqan.encoder.project(vectors)
        c_proj, q_proj = gather_slots(projected, context_slots), gather_slots(projected, question_slots)
        encoded = self.mqan.encode(c_proj, q_proj, context_lengths, question_lengths)
        decoder = self.mqan.decoder
        first_input = decoder.start.expand(vectors.shape[0], -1)
        first_hidden, first_cell, *_ = decoder.first_recurrence(encoded)
        return (
            encoded.c_fin_BCD,
            encoded.q_fin_BQD,
            *encoded.keys_BHJW,
            *encoded.values_BHJW,
            encoded.c_mask_BC,
            encoded.q_mask_BQ,
            decoder.project(vectors),
            first_input,
            first_hidden,
            first_cell,
        )


def trace_embeddings(vectors: Table) -> onnx.ModelProto:
    """Trace the graph ``embeddings.onnx``: ids of word pieces -> their vectors."""
    return traced(vectors, examples_of(g.EMBEDDINGS_INPUTS, {}), g.EMBEDDINGS_INPUTS, list(g.EMBEDDINGS_OUTPUTS))


def trace_pieces(graph: PiecesGraph) -> onnx.ModelProto:
    outputs = g.pieces_outputs(len(graph.contexts), evidence=True, text=True)
    inputs = examples_of(g.PIECES_INPUTS, {"M": graph.positions.embedding_dim})
    return traced(graph, inputs, g.PIECES_INPUTS, list(outputs))


def trace_words(network: Network) -> onnx.ModelProto:
    config = network.mqan.config
    fixed = {"M": network.embedder.width, "D": config.width, "H": config.num_heads, "W": config.head_width}
    inputs, outputs = examples_of(g.WORDS_INPUTS, fixed), list(g.by_layer(g.WORDS_OUTPUTS, config.num_layers))
    table = translation_table(config.width // 2)
    return traced(WordsGraph(network), inputs, g.WORDS_INPUTS, outputs, WORDS_OPSET, table)


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
