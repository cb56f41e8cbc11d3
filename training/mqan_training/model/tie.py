"""What ties the decoder to a pretrained reader's own scores of an answer's first and last word (``Span``).

A reader learns within minutes to point at the first and the last word of an answer, a decoder in hours. Here the
reader's scores are terms of the decoder's: of the pointers and switches at its first step, and of its decision to end.
After a word that was copied the pointers are drawn to the word that follows it.

Shape letters as in ``decoder.py``; ``T`` is C or Q.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from mqan_core.text.vocab import NUM_SPECIAL

_LOOK_AHEAD = 12  # words behind a word among which the answer may end instead
_FAR = -1e4  # a score that no softmax sees
_NEVER = 20.0  # is taken from the logit of what cannot be at a step

IsWord = tuple[Tensor, Tensor]  # bool, which words of context and question the previous word is


class Span(NamedTuple):
    """A pretrained reader's scores of words as the answer's first and last, and what the caller allows."""

    start_BC: Tensor
    start_BQ: Tensor
    end_BC: Tensor
    end_BQ: Tensor
    null_B: Tensor  # of the answer not being there
    written_B: Tensor  # of its not being one quotation, so that its first word is the generator's
    pointed_BQ: Tensor  # as in ``ReaderInputs``
    allowed_B3: Tensor
    first_BD: Tensor  # what the LSTM starts from


class FirstTerms(NamedTuple):
    """What the reader's scores add at the first step: to the pointers' scores, and to logits."""

    start_BC: Tensor
    start_BQ: Tensor
    side_B: Tensor  # of lambda: how much more the context has of the answer's start
    refusal_B: Tensor
    gamma_B: Tensor


class Constants(NamedTuple):
    span: Span
    first: FirstTerms
    hazard_BC: Tensor  # how good a last word each word is
    hazard_BQ: Tensor


class Ties(NamedTuple):
    """The ties of a step: ``first`` is added at the first one, ``copied`` is of the word before the others."""

    constants: Constants
    first: FirstTerms | None
    copied: tuple[Tensor, Tensor] | None = None  # from which places, as shares that sum to 1; 0 where it was not copied
    is_first_B: Tensor | None = None  # where rows of a batch are at different steps


def ties_of(
    constants: Constants | None,
    pointers: tuple[Tensor, Tensor] | None = None,
    is_word: IsWord | None = None,
    position_B: Tensor | None = None,
) -> Ties | None:
    """Return the ties of a step, by where the one before pointed: lambda alpha^C and (1 - lambda) alpha^Q."""
    if constants is None or pointers is None:
        return constants and Ties(constants, constants.first)
    if is_word is None:
        raise ValueError("a tied decoder needs to know which words the previous word is")
    from_BC, from_BQ = pointers[0] * is_word[0], pointers[1] * is_word[1]
    total_B1 = from_BC.sum(dim=1, keepdim=True) + from_BQ.sum(dim=1, keepdim=True)
    total_B1 = total_B1.clamp(min=1e-6)
    copied = from_BC / total_B1, from_BQ / total_B1
    if position_B is None:
        return Ties(constants, None, copied)
    is_first_B = (position_B == 0).to(from_BC.dtype)
    here = FirstTerms(*(x * is_first_B.view(-1, *[1] * (x.dim() - 1)) for x in constants.first))
    return Ties(constants, here, copied, is_first_B)


class Tie(nn.Module):
    """The terms that a pretrained reader's scores give to the decoder's; at first it points as the reader does."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.follow = nn.Linear(width, 1)  # how much a pointer is drawn to the word behind the last one
        nn.init.zeros_(self.follow.weight)
        nn.init.constant_(self.follow.bias, 5.0)
        self.start_weight = nn.Parameter(torch.ones(()))
        self.side_weight = nn.Parameter(torch.ones(()))  # of context against question, in lambda
        self.null_weight = nn.Parameter(torch.ones(()))  # of refusal against the generator's words
        self.written_weight = nn.Parameter(torch.ones(()))  # of these two against the pointers, in gamma
        self.stop = nn.Linear(width, 1)  # how much the end of a quotation is the end of the answer
        nn.init.zeros_(self.stop.weight)
        nn.init.ones_(self.stop.bias)

    def constants(self, span: Span | None, c_mask_BC: Tensor, q_mask_BQ: Tensor) -> Constants:
        if span is None:
            raise ValueError("a tied decoder needs a reader's scores of first and last words")
        hazards = _hazard(span.end_BC, c_mask_BC), _hazard(span.end_BQ, q_mask_BQ)
        in_context_B, in_question_B = _log_sum(span.start_BC, c_mask_BC), _log_sum(span.start_BQ, span.pointed_BQ)
        side_B = self.side_weight * (in_context_B - in_question_B).clamp(-20.0, 20.0)
        context_B = in_context_B + torch.where(span.allowed_B3[:, 0] > 0, 0.0, _FAR)
        words_B = span.written_B + torch.where(span.allowed_B3[:, 2] > 0, 0.0, _FAR)
        copied_B, generated_B = _log_add(context_B, in_question_B), _log_add(span.null_B, words_B)
        refusal_B = self.null_weight * (span.null_B - words_B).clamp(-20.0, 20.0)
        gamma_B = self.written_weight * (generated_B - copied_B).clamp(-20.0, 20.0)
        starts = self.start_weight * span.start_BC, self.start_weight * span.start_BQ
        return Constants(span, FirstTerms(*starts, side_B, refusal_B, gamma_B), *hazards)

    def scores(self, scores_BJ: Tensor, scores_BQ: Tensor, h_BD: Tensor, ties: Ties) -> tuple[Tensor, Tensor]:
        """Return the scores of both pointers (equation 8) with the reader's, and drawn to the word after the last."""
        if ties.first is not None:
            scores_BJ, scores_BQ = scores_BJ + ties.first.start_BC, scores_BQ + ties.first.start_BQ
        if ties.copied is not None:
            follow_B1 = self.follow(h_BD).float()
            moved_BC, moved_BQ = (functional.pad(part[:, :-1], (1, 0)) for part in ties.copied)
            pull_BC, pull_BQ = follow_B1 * moved_BC, follow_B1 * moved_BQ
            scores_BJ, scores_BQ = scores_BJ + pull_BC, scores_BQ + pull_BQ
        return scores_BJ, scores_BQ

    def terms(self, h_BD: Tensor, ties: Ties) -> tuple[Tensor, ...]:
        """Return what is added to the logits of the refusal, of the end and of gamma, [B] each."""
        never_B = torch.zeros_like(h_BD[:, 0]) - _NEVER
        _, first, hazard_BC, hazard_BQ = ties.constants
        at_first = (first.refusal_B, never_B, first.gamma_B)  # nobody ends before the first word
        if ties.copied is None:
            return at_first
        at_BC, at_BQ = ties.copied[0] * hazard_BC, ties.copied[1] * hazard_BQ
        end_B = self.stop(h_BD).float()[:, 0] * (at_BC.sum(dim=1) + at_BQ.sum(dim=1))  # was the previous word the last?
        later = (never_B, end_B, end_B)  # nobody refuses after the first word
        if ties.is_first_B is None:
            return later
        is_first_B = ties.is_first_B
        pairs = zip(at_first, later, strict=True)
        return tuple(first_B * is_first_B + later_B * (1 - is_first_B) for first_B, later_B in pairs)


def switch(logit_B: Tensor, ties: Ties) -> Tensor:
    """Return lambda (equation 12), of what is allowed."""
    if ties.first is not None:
        logit_B = logit_B + ties.first.side_B
    lambda_B, allowed_B3 = torch.sigmoid(logit_B), ties.constants.span.allowed_B3
    context_B, question_B = lambda_B * allowed_B3[:, 0], (1 - lambda_B) * allowed_B3[:, 1]
    return context_B / (context_B + question_B).clamp(min=1e-9)


def generate(
    logits_BAV: Tensor, gamma_BA: Tensor, allowed_B3: Tensor, refusal_BA: Tensor, end_BA: Tensor, tied_gamma_BA: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the generator's distribution and gamma (equations 11 and 12), of what is allowed."""
    special_BA2 = logits_BAV[..., :NUM_SPECIAL] + torch.stack([end_BA, refusal_BA], dim=-1)
    logits_BAV = torch.cat([special_BA2, logits_BAV[..., NUM_SPECIAL:]], dim=-1)
    p_vocab_BAV = torch.softmax(logits_BAV, dim=-1)
    gamma_BA = torch.sigmoid(gamma_BA + tied_gamma_BA)
    allowed_B3 = allowed_B3[(slice(None), *[None] * (gamma_BA.dim() - 1))]  # [B, 3] or [B, 1, 3]
    words_BAV = p_vocab_BAV[..., NUM_SPECIAL:] * allowed_B3[..., 2:]
    p_vocab_BAV = torch.cat([p_vocab_BAV[..., :NUM_SPECIAL], words_BAV], dim=-1)
    of_vocab_BA = p_vocab_BAV.sum(dim=-1)
    generated_BA = gamma_BA * of_vocab_BA
    copied_BA = (1 - gamma_BA) * torch.maximum(allowed_B3[..., 0], allowed_B3[..., 1])
    gamma_BA = generated_BA / (generated_BA + copied_BA).clamp(min=1e-9)
    return p_vocab_BAV / of_vocab_BA.clamp(min=1e-9)[..., None], gamma_BA


def _log_sum(scores_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return log sum exp of the scores where the mask is true, [B]; about -1e4 where it is nowhere."""
    scores_BT = torch.where(mask_BT, scores_BT, _FAR)
    most_B1 = scores_BT.amax(dim=1, keepdim=True)
    return (most_B1 + torch.exp(scores_BT - most_B1).sum(dim=1, keepdim=True).log())[:, 0]


def _log_add(left_B: Tensor, right_B: Tensor) -> Tensor:  # by operators that every runtime has
    most_B = torch.maximum(left_B, right_B)
    return most_B + torch.log1p(torch.exp(-(left_B - right_B).abs()))


def _hazard(end_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return by how much each word is a better last word than the best of those behind it, [B, T], within 10."""
    scores_BT = torch.where(mask_BT, end_BT, _FAR)
    behind_BT = functional.pad(scores_BT[:, 1:], (0, _LOOK_AHEAD), value=_FAR)
    # the pooling of two axes, of which exporting keeps the length open
    best_BT = functional.max_pool2d(behind_BT[:, None, None], (1, _LOOK_AHEAD), stride=1)[:, 0, 0]
    return (scores_BT - best_BT).clamp(-10.0, 10.0) * mask_BT
