"""Contextual word vectors, in the place of CoVe's: the first layers of a pretrained transformer read both texts.

McCann et al. (2017, 2018) add vectors to the words' own that a network learnt in translation. Here they come from the
lower layers of a BERT (Devlin et al. 2019), which read question and context as one sequence and are trained on: first
alone, to point at the answer (``span_loss``), then with the rest of the model. Their states are added to its projected
words. A word stands at one position, as the mean of its pieces' vectors, so that nothing has to be aligned.

A long context is read in windows, each with the question before it, so that the time grows with its length.

Shape letters: B batch, C context length, Q question length, S = 3 + Q + C, M width of the transformer, D width of the
model, A answer length.
"""

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from mqan_core.windows import MOST_QUESTION, WINDOW
from mqan_core.word_pieces import BETWEEN, FIRST, PieceVectors
from mqan_training.config import ModelConfig
from mqan_training.model.layers import MultiHead, length_mask

NUM_MARKS: Final = 3  # the first mark, and one behind question and context; they stand before both here
_NUM_POSITIONS = 512  # BERT's; a window and the question before it take 503 at most
_EPSILON = 1e-12  # BERT's


class ContextualLayer(nn.Module):
    """A layer of BERT: self-attention and a feed-forward network, each normalised after its sum."""

    def __init__(self, width: int, num_heads: int, ffn_width: int) -> None:
        super().__init__()
        self.attention = MultiHead(width, num_heads, width // num_heads, 0.0, bias=True)
        self.attention_norm = nn.LayerNorm(width, eps=_EPSILON)
        self.inner = nn.Linear(width, ffn_width)
        self.outer = nn.Linear(ffn_width, width)
        self.ffn_norm = nn.LayerNorm(width, eps=_EPSILON)

    def forward(self, x_BSM: Tensor, mask: Tensor) -> Tensor:
        """Map [B, S, M] to [B, S, M]; ``mask`` broadcasts to [B, H, S, S]."""
        attended = self.attention.attend(*self.attention.queries_keys_values(x_BSM), mask)
        x_BSM = self.attention_norm(x_BSM + attended)
        output: Tensor = self.ffn_norm(x_BSM + self.outer(functional.gelu(self.inner(x_BSM))))
        return output


class ContextualEncoder(nn.Module):
    """Reads words in their context; what it returns is added to the projected words.

    Args:
        config: of the model.
        pieces: vectors of word pieces, frozen.
    """

    def __init__(self, config: ModelConfig, pieces: PieceVectors) -> None:
        super().__init__()
        width = pieces.width
        self.pieces = pieces
        rows = torch.from_numpy(pieces.rows).float() * torch.from_numpy(pieces.scales)[:, None]
        self.register_buffer("table", rows, persistent=False)
        marks = torch.stack([torch.from_numpy(pieces.of_piece(mark)) for mark in (FIRST, BETWEEN, BETWEEN)])
        self.register_buffer("marks", marks, persistent=False)
        self.positions = nn.Parameter(torch.zeros(_NUM_POSITIONS, width))
        self.kinds = nn.Parameter(torch.zeros(2, width))  # of the question and of the context
        self.norm = nn.LayerNorm(width, eps=_EPSILON)
        self.layers = nn.ModuleList(
            ContextualLayer(width, config.contextual_heads, config.contextual_ffn_width)
            for _ in range(config.contextual_layers)
        )
        self.dropout = nn.Dropout(config.contextual_dropout)
        self.output = nn.Linear(width, config.width, bias=False)
        self.span = nn.Linear(width, 2)  # scores of an answer's first and last word; for training alone
        nn.init.zeros_(self.output.weight)
        nn.init.normal_(self.span.weight, std=0.02)
        nn.init.zeros_(self.span.bias)

    def embed(self, ids: Tensor, offsets_N: Tensor) -> Tensor:
        """Return the vectors [N, M] of words, given the numbers of their pieces and where each word's begin."""
        table: Tensor = self.table  # type: ignore[assignment]
        return functional.embedding_bag(ids, table, offsets_N, mode="mean")

    def read(
        self, c_words_BCM: Tensor, q_words_BQM: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the states of one window each, [B, 3 + Q + C, M], marks first, and which of them are there, [B, S]."""
        batch, num_context, _ = c_words_BCM.shape
        num_question = q_words_BQM.shape[1]
        marks: Tensor = self.marks  # type: ignore[assignment]
        x_BSM = torch.cat([marks.expand(batch, -1, -1), q_words_BQM, c_words_BCM], dim=1)
        q_end_B1, c_end_B1 = q_lengths_B[:, None] + 1, q_lengths_B[:, None] + c_lengths_B[:, None] + 2
        places_BS = torch.cat(
            [
                torch.zeros_like(q_end_B1),
                q_end_B1,
                c_end_B1,
                torch.arange(1, num_question + 1, device=q_end_B1.device).expand(batch, -1),
                q_end_B1 + torch.arange(1, num_context + 1, device=q_end_B1.device)[None, :],
            ],
            dim=1,
        )
        # a batch holds longer texts than a row may have: its padding stands anywhere
        positions_BSM = functional.embedding(places_BS.clamp(max=_NUM_POSITIONS - 1), self.positions)
        in_context_BS = torch.cat(
            [
                torch.zeros_like(places_BS[:, : NUM_MARKS - 1]),
                torch.ones_like(places_BS[:, :1]),
                torch.zeros_like(places_BS[:, NUM_MARKS : NUM_MARKS + num_question]),
                torch.ones_like(places_BS[:, NUM_MARKS + num_question :]),
            ],
            dim=1,
        )
        kinds_BSM = functional.embedding(in_context_BS, self.kinds)
        mask_BS = torch.cat(
            [
                torch.ones_like(q_end_B1, dtype=torch.bool).expand(-1, NUM_MARKS),
                length_mask(q_lengths_B, num_question),
                length_mask(c_lengths_B, num_context),
            ],
            dim=1,
        )
        x_BSM = self.dropout(self.norm(x_BSM + positions_BSM + kinds_BSM))
        for layer in self.layers:
            x_BSM = layer(x_BSM, mask_BS[:, None, None, :])
        return x_BSM, mask_BS

    def read_window(
        self, c_words_BCM: Tensor, q_words_BQM: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what is added to the words of one window each, [B, C, D], and of the questions, [B, Q, D]."""
        states_BSM, _ = self.read(c_words_BCM, q_words_BQM, c_lengths_B, q_lengths_B)
        added_BSD = self.output(states_BSM)
        first_of_context = NUM_MARKS + q_words_BQM.shape[1]
        return added_BSD[:, first_of_context:], added_BSD[:, NUM_MARKS:first_of_context]

    def forward(
        self, c_words_BCM: Tensor, q_words_BQM: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what is added to the projected words of context [B, C, D] and question [B, Q, D]."""
        batch, num_context, width = c_words_BCM.shape
        num_question = q_words_BQM.shape[1]
        q_read_BQM, q_lengths_B = q_words_BQM[:, :MOST_QUESTION], q_lengths_B.clamp(max=MOST_QUESTION)
        size = min(num_context, WINDOW)
        num_windows = -(-num_context // size)
        padded = functional.pad(c_words_BCM, (0, 0, 0, num_windows * size - num_context))
        firsts_N = torch.arange(num_windows, device=c_lengths_B.device) * size
        lengths_BN = (c_lengths_B[:, None] - firsts_N[None, :]).clamp(0, size)
        c_added_RKD, q_added_RQD = self.read_window(
            padded.reshape(batch * num_windows, size, width),
            q_read_BQM.repeat_interleave(num_windows, dim=0),
            lengths_BN.flatten(),
            q_lengths_B.repeat_interleave(num_windows),
        )
        c_added = c_added_RKD.unflatten(0, (batch, num_windows)).flatten(1, 2)[:, :num_context]
        q_added = q_added_RQD.unflatten(0, (batch, num_windows))[:, 0]  # as read before the first window
        return c_added, functional.pad(q_added, (0, 0, 0, num_question - q_added.shape[1]))

    def span_loss(
        self,
        c_words_BCM: Tensor,
        q_words_BQM: Tensor,
        c_lengths_B: Tensor,
        q_lengths_B: Tensor,
        matches: tuple[Tensor, Tensor, Tensor],
    ) -> Tensor:
        """Return the mean negative log-likelihood of where the answers stand, each end by itself (BERT's for SQuAD).

        Args:
            c_words_BCM, q_words_BQM, c_lengths_B, q_lengths_B: the texts, of one window each.
            matches: what ``answer_places`` returns: where answers begin in joined question and context, [B, Q + C],
                their lengths [B], and which answers are not in the texts and shall be refused, [B]. An answer that
                stands in several places has their probabilities' sum; one that stands nowhere does not count.
        """
        begins_BJ, lengths_B, refused_B = matches
        states_BSM, mask_BS = self.read(c_words_BCM, q_words_BQM, c_lengths_B, q_lengths_B)
        allowed_BS = mask_BS.clone()
        allowed_BS[:, 1:NUM_MARKS] = False
        logits_BS2 = self.span(states_BSM).float().masked_fill(~allowed_BS[..., None], -1e9)
        scores_BS2 = logits_BS2.log_softmax(dim=1)
        firsts_BJ, lasts_BJ = scores_BS2[:, NUM_MARKS:, 0], scores_BS2[:, NUM_MARKS:, 1]
        ends_BJ = torch.arange(firsts_BJ.shape[1], device=begins_BJ.device)[None, :] + lengths_B[:, None] - 1
        both_BJ = firsts_BJ + lasts_BJ.gather(1, ends_BJ.clamp(0, firsts_BJ.shape[1] - 1))
        known_B = begins_BJ.any(dim=1)
        at_places_B = both_BJ.masked_fill(~begins_BJ, -1e9).logsumexp(dim=1)
        at_mark_B = scores_BS2[:, 0].sum(dim=1)  # the first mark stands for no answer
        likelihood_B = torch.where(known_B, at_places_B, at_mark_B)
        counts_B = known_B | refused_B
        return -(likelihood_B * counts_B).sum() / counts_B.sum().clamp(min=1)


def answer_places(
    target_pieces_BA: Tensor, question_pieces_BQ: Tensor, context_pieces_BC: Tensor
) -> tuple[Tensor, Tensor]:
    """Return where answers begin in question and context, [B, Q + C], and how long they are, [B].

    Args:
        target_pieces_BA: numbers of the answers' pieces, negative for the end and padding.
        question_pieces_BQ: those of the questions, negative for padding; likewise ``context_pieces_BC``.
    """
    inside_BA = target_pieces_BA >= 0
    lengths_B = inside_BA.sum(dim=1)
    found = []
    for pieces_BT in (question_pieces_BQ, context_pieces_BC):
        begins_BT = torch.ones_like(pieces_BT, dtype=torch.bool)
        for k in range(int(lengths_B.max())):
            shifted_BT = functional.pad(pieces_BT[:, k:], (0, min(k, pieces_BT.shape[1])), value=-1)
            is_equal_BT = shifted_BT == target_pieces_BA[:, k : k + 1]
            begins_BT &= is_equal_BT | ~inside_BA[:, k : k + 1]
        found.append(begins_BT & (lengths_B > 0)[:, None] & (pieces_BT >= 0))
    return torch.cat(found, dim=1), lengths_B
