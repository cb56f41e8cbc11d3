"""What ties the decoder to a pretrained reader's own scores of an answer's first and last word.

A reader learns within minutes to point at the first and the last word of an answer, a decoder in hours. Here the
reader's scores are terms of the decoder's: of the pointers and switches at its first step, and of its decision to end.
After a word that was copied the pointers are drawn to the word that follows it.

Shape letters: B batch, C context length, Q question length, A answer length; ``T`` is C or Q.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

_LOOK_AHEAD = 12  # words behind a word among which the answer may end instead
_FAR = -1e4  # a score that no softmax sees


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


class Copied(NamedTuple):
    """Where the previous word was copied from: its places' shares, which sum to 1, or to 0 where it was not copied."""

    context_BC: Tensor
    question_BQ: Tensor


def copied_from(mass_BC: Tensor, mass_BQ: Tensor, is_word_BC: Tensor, is_word_BQ: Tensor) -> Copied:
    """Return where a word was copied from, by lambda alpha^C and (1 - lambda) alpha^Q of the step that chose it."""
    from_BC, from_BQ = mass_BC * is_word_BC, mass_BQ * is_word_BQ
    total_B1 = from_BC.sum(dim=1, keepdim=True) + from_BQ.sum(dim=1, keepdim=True)
    total_B1 = total_B1.clamp(min=1e-6)
    return Copied(from_BC / total_B1, from_BQ / total_B1)


def log_sum_exp(scores_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return log sum exp of the scores where the mask is true, [B]; about -1e4 where it is nowhere."""
    scores_BT = torch.where(mask_BT, scores_BT, _FAR)
    most_B1 = scores_BT.amax(dim=1, keepdim=True)
    return (most_B1 + torch.exp(scores_BT - most_B1).sum(dim=1, keepdim=True).log())[:, 0]


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

    def first_terms(self, span: Span, c_mask_BC: Tensor) -> FirstTerms:
        in_context_B, in_question_B = log_sum_exp(span.start_BC, c_mask_BC), log_sum_exp(span.start_BQ, span.pointed_BQ)
        side_B = self.side_weight * (in_context_B - in_question_B).clamp(-20.0, 20.0)
        context_B = in_context_B + torch.where(span.allowed_B3[:, 0] > 0, 0.0, _FAR)
        words_B = span.written_B + torch.where(span.allowed_B3[:, 2] > 0, 0.0, _FAR)
        copied_B, generated_B = _log_add(context_B, in_question_B), _log_add(span.null_B, words_B)
        refusal_B = self.null_weight * (span.null_B - words_B).clamp(-20.0, 20.0)
        gamma_B = self.written_weight * (generated_B - copied_B).clamp(-20.0, 20.0)
        starts = self.start_weight * span.start_BC, self.start_weight * span.start_BQ
        return FirstTerms(*starts, side_B, refusal_B, gamma_B)

    def followed(self, h_BD: Tensor, copied: Copied) -> tuple[Tensor, Tensor]:
        """Return what is added to the scores of both pointers (equation 8): the pull to the word after the last one."""
        follow_B1 = self.follow(h_BD).float()
        moved_BC, moved_BQ = (functional.pad(part[:, :-1], (1, 0)) for part in copied)
        return follow_B1 * moved_BC, follow_B1 * moved_BQ

    def end(self, h_BD: Tensor, copied: Copied, hazard_BC: Tensor, hazard_BQ: Tensor) -> Tensor:
        """Return what is added to the logits of the end and of gamma, [B]: whether the previous word is the last."""
        at_BC, at_BQ = copied.context_BC * hazard_BC, copied.question_BQ * hazard_BQ
        stop_B: Tensor = self.stop(h_BD).float()[:, 0]
        return stop_B * (at_BC.sum(dim=1) + at_BQ.sum(dim=1))


def _log_add(left_B: Tensor, right_B: Tensor) -> Tensor:  # by operators that every runtime has
    most_B = torch.maximum(left_B, right_B)
    return most_B + torch.log1p(torch.exp(-(left_B - right_B).abs()))


def hazard(end_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return by how much each word is a better last word than the best of those behind it, [B, T], within 10."""
    scores_BT = torch.where(mask_BT, end_BT, _FAR)
    behind_BT = functional.pad(scores_BT[:, 1:], (0, _LOOK_AHEAD), value=_FAR)
    # the pooling of two axes, of which exporting keeps the length open
    best_BT = functional.max_pool2d(behind_BT[:, None, None], (1, _LOOK_AHEAD), stride=1)[:, 0, 0]
    return (scores_BT - best_BT).clamp(-10.0, 10.0) * mask_BT
