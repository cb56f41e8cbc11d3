"""The losses of both networks; each is a sum of means over examples, words or targets.

Of a pretrained reader:

- ``answer``: mean negative log-likelihood of a target (section 3 of McCann et al. 2018), the mean over an answer's
  words first, so that a query of twenty words weighs as much as a class.
- ``span``: negative log-likelihood of the reader's own first and last word (BERT's loss for SQuAD), in any of the
  places where the answer stands, or of its not being there.
- Where several choices may be right, each is a decision of its own: its mass against that of the refusal.
- ``similarity``: 1 - cosine between the vectors of texts and choices (``model/heads.py``) and those that the
  pretrained encoder gives them alone, so that the reader keeps what that knows (distillation, Hinton et al. 2015).
- ``consistency``: half the sum of both Kullback-Leibler divergences between the probabilities of the outcomes of a
  question that is asked in two ways.
- ``evidence``: cross-entropy of each word of the text being among those that decide for a label, where these are
  marked (``model/heads.py``).

Of the paper's network ``answer`` is the mean over all reachable targets.

Shape letters as in ``model/pretrained.py``.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import torch
from torch import Tensor
from torch.nn import functional

from mqan_core.text.vocab import REFUSAL_ID
from mqan_training.model.bert import Bert
from mqan_training.model.decoder import Encoded, Mixture
from mqan_training.model.heads import Alike
from mqan_training.model.network import Network
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.model.tie import Span
from mqan_training.piece_batches import PieceBatch
from mqan_training.words import WordBatch

_LEAST_PROBABILITY = 1e-9
_LEAST_OF_OUTCOME = 1e-4
_LEAST_OF_WORDS = 1e-12  # of the paper's network
_FAR = -1e4


class Mean(NamedTuple):
    """A mean as sum and number, so that processes can take it together; 0 of nothing."""

    total: Tensor
    number: Tensor

    @property
    def value(self) -> Tensor:
        return self.total / self.number.clamp(min=1)


Losses = Mapping[str, tuple[Mean, ...]]  # by name


def value_of(means: Iterable[Mean]) -> Tensor:
    return sum((mean.value for mean in means), torch.zeros(()))


def piece_losses(network: PretrainedNetwork, batch: PieceBatch, teacher: Bert | None = None) -> Losses:
    """Return the losses of a batch under teacher forcing; without a teacher there is none of the vectors."""
    previous_BA = functional.pad(batch.target_slots[:, :-1], (1, 0), value=-3)  # no word before the first step
    is_word_BAC = previous_BA[:, :, None] == batch.context_slots[:, None, :]
    is_word_BAQ = previous_BA[:, :, None] == batch.question_slots[:, None, :]
    encoded, mixture = network(batch.inputs, batch.answer_pieces, (is_word_BAC, is_word_BAQ))
    span_B, has_span_B = span_losses(encoded, batch)
    several_B, has_several_B = several_losses(mixture, encoded, batch)
    p_BA = target_probability(mixture, batch.target_ids, batch.target_slots, batch.context_slots, batch.question_slots)
    losses_BA = -torch.log(p_BA + _LEAST_PROBABILITY) * batch.is_step
    own_B = losses_BA.sum(dim=1) / batch.is_step.sum(dim=1).clamp(min=1)
    answer_B = torch.where(has_several_B, several_B, own_B)
    return {
        "answer": (Mean(answer_B.sum(), torch.tensor(len(answer_B), device=answer_B.device)),),
        "span": (Mean((span_B * has_span_B).sum(), has_span_B.sum()),),
        "similarity": () if teacher is None else similarity_loss(encoded, batch, teacher),
        "evidence": (evidence_loss(network, encoded, batch),),
        "consistency": (consistency_loss(mixture, batch),),
    }


def word_losses(network: Network, batch: WordBatch) -> Losses:
    _, mixture = network(batch)
    of_source = batch.context_tokens, batch.question_tokens
    p_BA = target_probability(mixture, batch.target_ids, batch.target_tokens, *of_source)
    reachable = batch.reachable
    if not network.mqan.config.question_pointer:  # what only the question holds is out of reach
        in_context_BA = (batch.target_tokens[:, :, None] == batch.context_tokens[:, None, :]).any(dim=2)
        reachable = reachable & (in_context_BA | (batch.target_ids < network.vocabulary.num_generated))
    return {"answer": (Mean(-torch.log(p_BA[reachable] + _LEAST_OF_WORDS).sum(), reachable.sum()),)}


def target_probability(
    mixture: Mixture,
    target_ids_BA: Tensor,
    target_tokens_BA: Tensor,
    context_tokens_BC: Tensor,
    question_tokens_BQ: Tensor,
) -> Tensor:
    """Return p(a_t) of equation 13 for given targets, [B, A], whose generator id is V where there is none.

    What cannot be copied (the end, padding) has the number of no token of context or question.
    """
    num_generated = mixture.p_vocab_BAV.shape[2]
    known_BA = target_ids_BA < num_generated
    ids_BA1 = target_ids_BA.clamp(max=num_generated - 1)[..., None]
    p_v_BA = mixture.p_vocab_BAV.gather(2, ids_BA1)[..., 0] * known_BA
    is_c_BAC = target_tokens_BA[:, :, None] == context_tokens_BC[:, None, :]
    is_q_BAQ = target_tokens_BA[:, :, None] == question_tokens_BQ[:, None, :]
    p_c_BA = (mixture.p_context_BAC * is_c_BAC).sum(dim=2)  # (10)
    p_q_BA = (mixture.p_question_BAQ * is_q_BAQ).sum(dim=2)
    gamma, lambda_ = mixture.gamma_BA, mixture.lambda_BA
    return gamma * p_v_BA + (1 - gamma) * (lambda_ * p_c_BA + (1 - lambda_) * p_q_BA)  # (13)


def evidence_loss(network: PretrainedNetwork, encoded: Encoded, batch: PieceBatch) -> Mean:
    """Return the mean over words, then over rows with marked evidence, of its cross-entropy."""
    rows = torch.arange(len(batch.decided), device=batch.decided.device)
    words_BCM, questions_BQM = cast(tuple[Tensor, Tensor], encoded.states)
    logits_BC = network.evidence(questions_BQM[rows, batch.decided.clamp(min=0)], words_BCM)
    mask_BC = encoded.c_mask_BC & (batch.decided >= 0)[:, None]
    losses_BC = functional.binary_cross_entropy_with_logits(logits_BC, batch.evidence.float(), reduction="none")
    of_row_B = (losses_BC * mask_BC).sum(dim=1) / mask_BC.sum(dim=1).clamp(min=1)
    return Mean(of_row_B.sum(), (batch.decided >= 0).sum())


def consistency_loss(mixture: Mixture, batch: PieceBatch) -> Mean:
    """Return the mean over questions that are asked in two ways of how far the two answers are apart."""
    mass_BQ, refusal_B1 = _decision(mixture)
    p_BO = torch.cat([torch.zeros_like(mass_BQ), refusal_B1], dim=1) + _LEAST_OF_OUTCOME
    p_BO = p_BO.scatter_add(1, batch.outcomes.clamp(min=0), mass_BQ * (batch.outcomes >= 0))
    log_BO = torch.log(p_BO / p_BO.sum(dim=1, keepdim=True))
    first_BO = log_BO.roll(1, dims=0)
    apart_B = 0.5 * ((log_BO.exp() - first_BO.exp()) * (log_BO - first_BO)).sum(dim=1)
    return Mean((apart_B * batch.is_twin).sum(), batch.is_twin.sum())


def _decision(mixture: Mixture) -> tuple[Tensor, Tensor]:
    """Return the probability of each choice, [B, Q], and that of none, [B, 1]."""
    gamma_B1 = mixture.gamma_BA[:, :1]
    mass_BQ = (1 - gamma_B1) * (1 - mixture.lambda_BA[:, :1]) * mixture.p_question_BAQ[:, 0]
    return mass_BQ, gamma_B1 * mixture.p_vocab_BAV[:, 0, REFUSAL_ID : REFUSAL_ID + 1]


def similarity_loss(encoded: Encoded, batch: PieceBatch, teacher: Bert) -> tuple[Mean, ...]:
    """Return the mean distance of texts' vectors from the teacher's, and of choices'."""
    alike = cast(Alike, encoded.alike)
    if not len(batch.text_pieces):
        nothing = alike.text_NM.new_zeros(())
        return Mean(nothing, nothing), Mean(nothing, nothing)
    text_UM, choice_UM = (sentence_vectors(teacher, pieces) for pieces in (batch.text_pieces, batch.choice_pieces))
    of_text, of_choices = (alike.text_NM, text_UM, batch.text_of), (alike.choice_BQM, choice_UM, batch.choice_of)
    return _distance(*of_text), _distance(*of_choices)


@torch.no_grad()
def sentence_vectors(encoder: Bert, pieces_US: Tensor) -> Tensor:
    """Return the vectors, of length 1, that a sentence encoder gives texts alone: mean states, [U, M]."""
    places_US = torch.arange(pieces_US.shape[1], device=pieces_US.device).expand_as(pieces_US)
    is_piece_US = pieces_US > 0
    states_USM = encoder(pieces_US, places_US, torch.zeros_like(pieces_US), is_piece_US).float()
    return functional.normalize((states_USM * is_piece_US[..., None]).sum(dim=1), dim=-1)


def _distance(vectors: Tensor, expected_UM: Tensor, which: Tensor) -> Mean:
    cosines = (vectors * expected_UM[which.clamp(min=0)]).sum(dim=-1)
    is_named = which >= 0
    return Mean(((1 - cosines) * is_named).sum(), is_named.sum())


def span_losses(encoded: Encoded, batch: PieceBatch) -> tuple[Tensor, Tensor]:
    """Return the loss of first and last word of each row, [B], and which rows have one."""
    span = cast(Span, encoded.span)
    c_mask_BC = encoded.c_mask_BC & (span.allowed_B3[:, :1] > 0)
    nulls_B2, never_B2 = (torch.stack([span.null_B, x], dim=1) for x in (span.written_B, span.written_B * 0 + _FAR))
    nulls_B2 = torch.where(span.allowed_B3[:, 2:] > 0, nulls_B2, never_B2)
    starts_BJ = torch.cat([nulls_B2, _kept(span.start_BQ, span.pointed_BQ), _kept(span.start_BC, c_mask_BC)], dim=1)
    nowhere_B2 = torch.full_like(nulls_B2, _FAR)
    ends_BJ = torch.cat([nowhere_B2, _kept(span.end_BQ, encoded.q_mask_BQ), _kept(span.end_BC, c_mask_BC)], dim=1)
    has_start_B, has_end_B = batch.starts.any(dim=1), batch.ends.any(dim=1)
    start_B = torch.where(has_start_B, _likelihood(starts_BJ, batch.starts), 0.0)
    end_B = torch.where(has_end_B, _likelihood(ends_BJ, batch.ends), 0.0)
    return -(start_B + end_B), has_start_B


def several_losses(mixture: Mixture, encoded: Encoded, batch: PieceBatch) -> tuple[Tensor, Tensor]:
    """Return the mean over choices of the loss of each being right or not, [B], and which rows have one."""
    mass_BQ, refusal_B1 = _decision(mixture)
    p_BQ = (mass_BQ + _LEAST_PROBABILITY) / (mass_BQ + refusal_B1 + 2 * _LEAST_PROBABILITY)
    asked_BQ = batch.right >= 0
    losses_BQ = -torch.log(torch.where(batch.right == 1, p_BQ, 1 - p_BQ).clamp(min=1e-6)) * asked_BQ
    return losses_BQ.sum(dim=1) / asked_BQ.sum(dim=1).clamp(min=1), asked_BQ.any(dim=1)


def _kept(scores_BT: Tensor, mask_BT: Tensor) -> Tensor:
    return torch.where(mask_BT, scores_BT, _FAR)


def _likelihood(scores_BJ: Tensor, places_BJ: Tensor) -> Tensor:
    of_all_B = torch.logsumexp(scores_BJ, dim=1)
    return torch.logsumexp(torch.where(places_BJ, scores_BJ, _FAR), dim=1) - of_all_B
