"""MQAN's decoder over a pretrained reader: word pieces in, the multi-pointer-generator's mixture out.

- One sequence of word pieces holds question, choices and context (``mqan_core.text.layout``); all layers of the BERT
  are trained on.
- A word's state is the mean of its pieces' states; that of a choice's separator is the mean over the whole choice.
  States, projected, are C_fin and Q_fin; there is nothing else between the reader and the decoder.
- The reader scores each word as first and last of the answer (``span``), with a loss of its own, and [CLS] as the
  answer not being there. The decoder is tied to these scores (``tie.py``).
- A choice scores higher the more its vector is like the text's (``heads.py``).

Shape letters: N windows, S pieces of a window, B requests, C context length, Q question length (the separators of the
choices included), A answer length, P pieces of a word, M width of the reader, D width of the decoder.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from mqan_core.text.layout import SHARED
from mqan_training.model.bert import Bert
from mqan_training.model.decoder import Decoder, Encoded, Mixture
from mqan_training.model.heads import Alike, Evidence, Similarity, are_choices, mean_of_text
from mqan_training.model.tie import Span
from mqan_training.recipe import ModelConfig


class ReaderInputs(NamedTuple):
    """Requests as the reader sees them.

    ``groups_NS``: 0 for padding, ``SHARED``, or the group of a label (``mqan_core.text.layout``). Places are those of a
    word's first piece in the N * S pieces, any for padding; counts are its pieces, 1 for padding. ``pointed_BQ`` are
    the words of the question that may be pointed at; ``allowed_B3`` says whether context, question and vocabulary may
    be used.
    """

    pieces_NS: Tensor
    positions_NS: Tensor
    segments_NS: Tensor
    groups_NS: Tensor
    rows_N: Tensor
    c_places_BC: Tensor
    q_places_BQ: Tensor
    c_counts_BC: Tensor
    q_counts_BQ: Tensor
    c_mask_BC: Tensor
    q_mask_BQ: Tensor
    pointed_BQ: Tensor
    allowed_B3: Tensor


def attention_mask(groups_NS: Tensor) -> Tensor:
    """Return which piece attends to which, bool [N, S, S]: all to what is shared, labels not to each other."""
    from_NS1, to_N1S = groups_NS[:, :, None], groups_NS[:, None, :]
    return (to_N1S > 0) & ((from_NS1 == SHARED) | (to_N1S == SHARED) | (from_NS1 == to_N1S))


def mean_states(states_NSM: Tensor, places_BT: Tensor, counts_BT: Tensor) -> Tensor:
    """Return the mean of the states of each word's pieces, [B, T, M]: so many in one window, from one place on."""
    sums_NSM = functional.pad(states_NSM.float().cumsum(dim=1), (0, 0, 1, 0))  # of the pieces in front of each
    rows_BT, firsts_BT = places_BT // states_NSM.shape[1], places_BT % states_NSM.shape[1]
    sums_BTM = sums_NSM[rows_BT, firsts_BT + counts_BT] - sums_NSM[rows_BT, firsts_BT]
    return sums_BTM / counts_BT[..., None]


class PretrainedNetwork(nn.Module):
    def __init__(self, config: ModelConfig, bert: Bert, num_generated: int) -> None:
        super().__init__()
        width = bert.config.hidden_size
        self.config = config
        self.bert = bert
        self.project = nn.Linear(width, config.width)
        self.summary = nn.Linear(width, config.width)
        self.span = nn.Linear(width, 2)  # scores of the first and the last word
        self.null = nn.Linear(width, 2)  # of [CLS]: the answer is not there, or is not one quotation
        self.decoder = Decoder(config, width, num_generated, is_tied=True)
        for linear in (self.span, self.null):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)
        self.similarity = Similarity(width)
        self.evidence = Evidence(width)

    def encode(self, inputs: ReaderInputs) -> Encoded:
        mask = attention_mask(inputs.groups_NS)
        states_NSM = self.bert(inputs.pieces_NS, inputs.positions_NS, inputs.segments_NS, mask)
        c_states_BCM = mean_states(states_NSM, inputs.c_places_BC, inputs.c_counts_BC)
        q_states_BQM = mean_states(states_NSM, inputs.q_places_BQ, inputs.q_counts_BQ)
        c_fin_BCD, q_fin_BQD = self.project(c_states_BCM), self.project(q_states_BQM)
        c_span_BC2, q_span_BQ2 = self.span(c_states_BCM).float(), self.span(q_states_BQM).float()
        first_BD, null_B2 = self._over_windows(states_NSM[:, 0], inputs)
        text_NM = self.similarity.vectors(mean_of_text(states_NSM, inputs.segments_NS))
        choice_BQM = self.similarity.vectors(q_states_BQM)
        similarity_BQ = self.similarity.score(text_NM[inputs.q_places_BQ // states_NSM.shape[1]], choice_BQM)
        similarity_BQ = similarity_BQ * are_choices(inputs.groups_NS, inputs.q_places_BQ)
        starts = c_span_BC2[..., 0], q_span_BQ2[..., 0] + similarity_BQ
        ends = c_span_BC2[..., 1], q_span_BQ2[..., 1]
        nulls = null_B2[:, 0], null_B2[:, 1]
        span = Span(*starts, *ends, *nulls, inputs.pointed_BQ, inputs.allowed_B3, first_BD)
        keys, values = self.decoder.read_context(self.decoder.attended((c_fin_BCD, q_fin_BQD)))
        rest = span, Alike(text_NM, choice_BQM), (c_states_BCM, q_states_BQM)
        return Encoded(c_fin_BCD, q_fin_BQD, keys, values, inputs.c_mask_BC, inputs.q_mask_BQ, *rest)

    def _over_windows(self, first_NM: Tensor, inputs: ReaderInputs) -> tuple[Tensor, Tensor]:
        num_rows = inputs.allowed_B3.shape[0]
        summaries_ND, null_N2 = self.summary(first_NM).float(), self.null(first_NM).float()
        sums_BD = summaries_ND.new_zeros(num_rows, summaries_ND.shape[1]).index_add(0, inputs.rows_N, summaries_ND)
        ones_N = torch.ones_like(null_N2[:, 0])
        counts_B = ones_N.new_zeros(num_rows).index_add(0, inputs.rows_N, ones_N)
        rows_N2 = inputs.rows_N[:, None].expand(-1, 2)
        least_B2 = null_N2.new_full((num_rows, 2), 1e9).scatter_reduce(0, rows_N2, null_N2, "amin")
        return sums_BD / counts_B[:, None], least_B2

    def word_vectors(self, pieces_XP: Tensor) -> Tensor:
        """Return the mean of the vectors of words' pieces, [..., M]; piece 0 is padding."""
        is_piece_XP1 = (pieces_XP > 0)[..., None]
        vectors_XPM = self.bert.pieces(pieces_XP) * is_piece_XP1
        return vectors_XPM.sum(dim=-2) / is_piece_XP1.sum(dim=-2).clamp(min=1)

    def forward(
        self, inputs: ReaderInputs, answer_pieces_BAP: Tensor, is_word: tuple[Tensor, Tensor]
    ) -> tuple[Encoded, Mixture]:
        """Return what was read and the mixture at every step of given answers (teacher forcing).

        ``answer_pieces_BAP`` are the pieces of the previous word of each step, ``is_word`` [B, A, C] and [B, A, Q] tell
        which words of context and question it is.
        """
        encoded = self.encode(inputs)
        # on a CPU the decoder's many small products are faster in float32, for which nothing is compiled
        is_reduced = torch.is_autocast_enabled(encoded.c_fin_BCD.device.type) and encoded.c_fin_BCD.is_cuda
        with torch.autocast(encoded.c_fin_BCD.device.type, enabled=is_reduced):
            read = encoded if is_reduced else encoded.in_float32()
            a_proj_BAD = self.decoder.project(self.word_vectors(answer_pieces_BAP[:, 1:]))
            start_B1D = self.decoder.start.to(a_proj_BAD.dtype).expand(a_proj_BAD.shape[0], 1, -1)
            return encoded, self.decoder(torch.cat([start_B1D, a_proj_BAD], dim=1), read, is_word)
