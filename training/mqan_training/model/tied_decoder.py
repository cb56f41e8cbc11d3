"""The decoder over a pretrained reader, tied to the reader's own scores of an answer's first and last word (``Span``).

The scores enter the pointers and switches of the first step, and the decision to end. Left alone, the decoder learns to
point far more slowly than the reader does. Shape letters as in ``decoder.py``.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mqan_core.text.vocab import NUM_SPECIAL
from mqan_training.model.decoder import Decoder, Encoded, IsWord, Recurrence
from mqan_training.model.tie import Copied, FirstTerms, Span, Tie, copied_from, hazard

_NEVER = 20.0  # is taken from the logit of what cannot be at a step


class Constants(NamedTuple):
    """What the reader adds at the first step, and how good a last word each word is."""

    first: FirstTerms
    hazard_BC: Tensor
    hazard_BQ: Tensor


class Ties(NamedTuple):
    """The ties of a step: ``first`` is added at the first one, ``copied`` is of the word before the others."""

    constants: Constants
    first: FirstTerms | None
    copied: Copied | None
    is_first_B: Tensor | None = None  # where rows of a batch are at different steps


class TiedDecoder(Decoder):
    """``Decoder`` with the reader's scores as terms; ``is_word`` is needed."""

    refuses = True
    tie: Tie

    def _add_parts(self, width: int) -> None:
        self.tie = Tie(width)

    def _summary(self, encoded: Encoded, c_fin: Tensor) -> Tensor:
        return _span(encoded).first_BD.float()

    def _constants(self, encoded: Encoded) -> Constants:
        span = _span(encoded)
        hazards = hazard(span.end_BC, encoded.c_mask_BC), hazard(span.end_BQ, encoded.q_mask_BQ)
        return Constants(self.tie.first_terms(span, encoded.c_mask_BC), *hazards)

    def _ties(
        self,
        constants: Constants,
        before: Recurrence | None = None,
        is_word: IsWord | None = None,
        position_B: Tensor | None = None,
    ) -> Ties:
        if before is None:
            return Ties(constants, constants.first, None)
        if is_word is None:
            raise ValueError("a tied decoder needs to know which words the previous word is")
        copied = copied_from(before.pointer_BC, before.question_pointer_BQ, *is_word)
        if position_B is None:
            return Ties(constants, None, copied)
        is_first_B = (position_B == 0).to(before.h_BD.dtype)
        here = FirstTerms(*(x * is_first_B.view(-1, *[1] * (x.dim() - 1)) for x in constants.first))
        return Ties(constants, here, copied, is_first_B)

    def _tied_scores(self, scores_BJ: Tensor, scores_BQ: Tensor, h_BD: Tensor, ties: Ties) -> tuple[Tensor, Tensor]:
        if ties.first is not None:
            scores_BJ, scores_BQ = scores_BJ + ties.first.start_BC, scores_BQ + ties.first.start_BQ
        if ties.copied is not None:
            follow_BC, follow_BQ = self.tie.followed(h_BD, ties.copied)
            scores_BJ, scores_BQ = scores_BJ + follow_BC, scores_BQ + follow_BQ
        return scores_BJ, scores_BQ

    def _pointed(self, encoded: Encoded) -> Tensor:
        return _span(encoded).pointed_BQ

    def _switch(self, logit_B: Tensor, encoded: Encoded, ties: Ties) -> Tensor:
        if ties.first is not None:
            logit_B = logit_B + ties.first.side_B
        lambda_B = torch.sigmoid(logit_B)
        allowed_B3 = _span(encoded).allowed_B3
        context_B, question_B = lambda_B * allowed_B3[:, 0], (1 - lambda_B) * allowed_B3[:, 1]
        return context_B / (context_B + question_B).clamp(min=1e-9)

    def _pointers(self, alpha_c_BC: Tensor, alpha_q_BQ: Tensor, lambda_B: Tensor) -> tuple[Tensor, Tensor]:
        return lambda_B[:, None] * alpha_c_BC, (1 - lambda_B[:, None]) * alpha_q_BQ

    def _terms(self, h_BD: Tensor, ties: Ties) -> tuple[Tensor, ...]:
        never_B = torch.zeros_like(h_BD[:, 0]) - _NEVER
        first = ties.constants.first
        at_first = (first.refusal_B, never_B, first.gamma_B)  # nobody ends before the first word
        if ties.copied is None:
            return at_first
        end_B = self.tie.end(h_BD, ties.copied, ties.constants.hazard_BC, ties.constants.hazard_BQ)
        later = (never_B, end_B, end_B)  # nobody refuses after the first word
        if ties.is_first_B is None:
            return later
        is_first_B = ties.is_first_B
        pairs = zip(at_first, later, strict=True)
        return tuple(first_B * is_first_B + later_B * (1 - is_first_B) for first_B, later_B in pairs)

    def _generated(
        self, logits_BAV: Tensor, gamma_BA: Tensor, encoded: Encoded, *terms: Tensor
    ) -> tuple[Tensor, Tensor]:
        refusal_BA, end_BA, tied_gamma_BA = terms
        special_BA2 = logits_BAV[..., :NUM_SPECIAL] + torch.stack([end_BA, refusal_BA], dim=-1)
        logits_BAV = torch.cat([special_BA2, logits_BAV[..., NUM_SPECIAL:]], dim=-1)
        p_vocab_BAV = torch.softmax(logits_BAV, dim=-1)  # (11)
        gamma_BA = torch.sigmoid(gamma_BA + tied_gamma_BA)  # (12)
        allowed_B3 = _span(encoded).allowed_B3
        allowed_B3 = allowed_B3[(slice(None), *[None] * (gamma_BA.dim() - 1))]  # [B, 3] or [B, 1, 3]
        words_BAV = p_vocab_BAV[..., NUM_SPECIAL:] * allowed_B3[..., 2:]
        p_vocab_BAV = torch.cat([p_vocab_BAV[..., :NUM_SPECIAL], words_BAV], dim=-1)
        of_vocab_BA = p_vocab_BAV.sum(dim=-1)
        generated_BA = gamma_BA * of_vocab_BA
        copied_BA = (1 - gamma_BA) * torch.maximum(allowed_B3[..., 0], allowed_B3[..., 1])
        gamma_BA = generated_BA / (generated_BA + copied_BA).clamp(min=1e-9)
        return p_vocab_BAV / of_vocab_BA.clamp(min=1e-9)[..., None], gamma_BA


def _span(encoded: Encoded) -> Span:
    if encoded.span is None:
        raise ValueError("a tied decoder needs a reader's scores of first and last words")
    return encoded.span
