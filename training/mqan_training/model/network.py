"""MQAN over words: embedder and model together, with the training loss and greedy answers in torch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mqan_core.answer.trace import attribute
from mqan_core.answer.types import Answer
from mqan_core.ask.request import Request
from mqan_core.text.tokens import word_of
from mqan_core.text.vocab import END_ID, Vocabulary
from mqan_training.batching import Batch
from mqan_training.config import ModelConfig
from mqan_training.model.decoder import Encoded, Mixture
from mqan_training.model.embeddings import Embedder, StaticVectors
from mqan_training.model.greedy import GreedyStep, SlotBatch, greedy_trace
from mqan_training.model.mqan import MQAN

_LEAST_PROBABILITY = 1e-12  # keeps the logarithm finite


class Loss(NamedTuple):
    """Loss of a batch and what to watch beside it.

    Attributes:
        mean: mean negative log-likelihood of the reachable target tokens (section 3).
        num_targets: how many those are.
        spread_context, spread_question: mean standard deviation over examples of the mean final encoding; near 0 when
            the encodings have collapsed.
        spread_state: the same for the decoder's first state.
        source_mix: mean of gamma, (1 - gamma) lambda, (1 - gamma)(1 - lambda) over targets, [3].
    """

    mean: Tensor
    num_targets: int
    spread_context: float
    spread_question: float
    spread_state: float
    source_mix: tuple[float, float, float]


class Network(nn.Module):
    """What a checkpoint holds: the n-gram table and MQAN."""

    def __init__(self, config: ModelConfig, vectors: StaticVectors, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedder = Embedder(vectors, config.ngram_buckets, config.ngram_width)
        self.mqan = MQAN(config, self.embedder.width, vocabulary.num_generated)

    def forward(self, batch: Batch) -> Loss:
        """Return the loss of a batch under teacher forcing."""
        vectors_NE = self.embedder(*batch.words)
        encoder, decoder = self.mqan.encoder, self.mqan.decoder
        projected_ND = encoder.project(vectors_NE)  # once: a word has the same dropout in context and question
        c_proj = nn.functional.embedding(batch.context_words, projected_ND)
        q_proj = nn.functional.embedding(batch.question_words, projected_ND)
        encoded = self.mqan.encode(c_proj, q_proj, batch.context_lengths, batch.question_lengths)
        a_proj = nn.functional.embedding(batch.answer_words, decoder.project(vectors_NE))
        start = decoder.start.to(a_proj.dtype).expand(a_proj.shape[0], 1, -1)
        a_proj = torch.cat([start, a_proj[:, 1:]], dim=1)
        mixture = decoder(a_proj, encoded)
        p_BA = target_probability(
            mixture, batch.target_ids, batch.target_pieces, batch.context_pieces, batch.question_pieces
        )
        reachable = batch.reachable
        if not self.mqan.config.question_pointer:  # what only the question holds is out of reach
            in_context_BA = (batch.target_pieces[:, :, None] == batch.context_pieces[:, None, :]).any(dim=2)
            reachable = reachable & (in_context_BA | (batch.target_ids < self.vocabulary.num_generated))
        losses = -torch.log(p_BA[reachable] + _LEAST_PROBABILITY)
        with torch.no_grad():
            gamma, lambda_ = mixture.gamma_BA[reachable], mixture.lambda_BA[reachable]
            terms = (gamma, (1 - gamma) * lambda_, (1 - gamma) * (1 - lambda_))
            mix = (float(terms[0].mean()), float(terms[1].mean()), float(terms[2].mean()))
        return Loss(losses.mean(), int(reachable.sum()), *_spreads(encoded, mixture.p_vocab_BAV[:, 0]), mix)

    def generator_inputs(self) -> Tensor:
        """Return the projected decoder input of every generator piece, [V, D]; the end's is never used."""
        words = [word_of(piece) for piece in self.vocabulary.pieces]
        projected: Tensor = self.mqan.decoder.project(self.embedder.embed_words(words))
        return projected

    @torch.no_grad()
    def greedy_answers(self, requests: Sequence[Request], max_answer_tokens: int) -> list[Answer]:
        """Answer a batch of requests in torch: the reference for every other way to run the model."""
        was_training = self.training
        self.eval()
        device = self.mqan.decoder.start.device
        step = GreedyStep(self.mqan.decoder, END_ID)
        encoded, slots = self.encode_requests(requests, device)
        # one step more than tokens, for the end
        state = step.start(encoded, max_answer_tokens + 1)
        trace = greedy_trace(step, encoded, slots, state, max_answer_tokens + 1)
        self.train(was_training)
        return [
            attribute(row, request, self.vocabulary, max_answer_tokens)
            for row, request in zip(trace, requests, strict=True)
        ]

    def encode_requests(self, requests: Sequence[Request], device: torch.device) -> tuple[Encoded, SlotBatch]:
        """Encode requests by their slots, as the exported encoder does."""
        num_generated = self.vocabulary.num_generated
        c_slots, c_lengths = pad_rows([r.slots.context for r in requests], 0)
        q_slots, q_lengths = pad_rows([r.slots.question for r in requests], 0)
        ids, _ = pad_rows([r.slots.generator_ids for r in requests], num_generated)
        dtype = self.embedder.ngrams.weight.dtype
        vectors_BUE = torch.zeros(len(requests), ids.shape[1], self.embedder.width, dtype=dtype, device=device)
        for i, request in enumerate(requests):
            vectors_BUE[i, : len(request.slots.pieces)] = self.embedder.embed_words(request.slots.words)
        c_slots, q_slots, ids, c_lengths, q_lengths = (
            t.to(device) for t in (c_slots, q_slots, ids, c_lengths, q_lengths)
        )
        encoder, decoder = self.mqan.encoder, self.mqan.decoder
        projected_BUD = encoder.project(vectors_BUE)
        c_proj, q_proj = gather_slots(projected_BUD, c_slots), gather_slots(projected_BUD, q_slots)
        encoded = self.mqan.encode(c_proj, q_proj, c_lengths, q_lengths)
        return encoded, SlotBatch(c_slots, q_slots, ids, decoder.project(vectors_BUE), self.generator_inputs())


def target_probability(
    mixture: Mixture,
    target_ids_BA: Tensor,
    target_pieces_BA: Tensor,
    context_pieces_BC: Tensor,
    question_pieces_BQ: Tensor,
) -> Tensor:
    """Return p(a_t) of equation 13 for given target words, [B, A].

    Args:
        mixture: the decoder's output.
        target_ids_BA: generator id of each target, V where it has none.
        target_pieces_BA: identity of each target's piece; pieces are equal exactly when these are. Targets that
            cannot be copied (the end, padding) hold a number that no context or question has.
        context_pieces_BC: identity of each context token's piece; a negative number for padding.
        question_pieces_BQ: identity of each question token's piece; a negative number for padding.
    """
    num_generated = mixture.p_vocab_BAV.shape[2]
    known_BA = target_ids_BA < num_generated
    ids_BA1 = target_ids_BA.clamp(max=num_generated - 1)[..., None]
    p_v_BA = mixture.p_vocab_BAV.gather(2, ids_BA1)[..., 0] * known_BA
    p_c_BA = (mixture.p_context_BAC * (target_pieces_BA[:, :, None] == context_pieces_BC[:, None, :])).sum(
        dim=2
    )  # (10)
    p_q_BA = (mixture.p_question_BAQ * (target_pieces_BA[:, :, None] == question_pieces_BQ[:, None, :])).sum(dim=2)
    gamma, lambda_ = mixture.gamma_BA, mixture.lambda_BA
    return gamma * p_v_BA + (1 - gamma) * (lambda_ * p_c_BA + (1 - lambda_) * p_q_BA)  # (13)


def gather_slots(x_BUD: Tensor, slots_BT: Tensor) -> Tensor:
    """Return the row of each position's slot, [B, T, D]."""
    return x_BUD.gather(1, slots_BT[:, :, None].expand(-1, -1, x_BUD.shape[2]))


def pad_rows(rows: Sequence[np.ndarray], value: int) -> tuple[Tensor, Tensor]:
    """Pad integer rows to one int64 tensor [B, T]; return it with the lengths [B]."""
    lengths = torch.tensor([len(row) for row in rows])
    padded = torch.full((len(rows), int(lengths.max())), value, dtype=torch.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = torch.from_numpy(row.astype(np.int64))
    return padded, lengths


@torch.no_grad()
def _spreads(encoded: Encoded, p_first_BV: Tensor) -> tuple[float, float, float]:
    if p_first_BV.shape[0] < 2:
        return 0.0, 0.0, 0.0
    spreads = []
    for fin, mask in ((encoded.c_fin_BCD, encoded.c_mask_BC), (encoded.q_fin_BQD, encoded.q_mask_BQ)):
        means_BD = (fin.float() * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        spreads.append(float(means_BD.std(dim=0).mean()))
    return spreads[0], spreads[1], float(p_first_BV.log().std(dim=0).mean())
