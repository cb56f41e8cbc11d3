"""Fit by how much the score of refusing a free question is moved, so that a model refuses as often as it should.

A model can be too fond of refusing, and still tell well which questions have no answer: then a question is refused
although it probably has one. How often there is no answer, given the probability of refusing, is a logistic map (Platt
1999). Where it crosses one half, the moved score has the probability one half.
"""

from collections.abc import Sequence

import numpy as np

from mqan_core.answer.calibration import logit
from mqan_core.manifest import MAX_OFFSET
from mqan_data.source import Source
from mqan_evaluation.answerers import answer_all, ask_of
from mqan_evaluation.draws import draw_questions
from mqan_evaluation.engine_answerer import EngineAnswerer
from mqan_evaluation.fit_temperatures import EACH, LEAST, calibration_sources
from mqan_evaluation.reliability import fit_logistic
from mqan_evaluation.sections import Measuring
from mqan_runtime.readers import PieceReader


def fit_refusal_offset(
    measuring: Measuring, answerer: EngineAnswerer, sources: Sequence[Source] | None = None
) -> float | None:
    """Fit the offset of a bundle on the questions that its probabilities are fitted on, and let it answer with it.

    Args:
        measuring: which questions, and how.
        answerer: the bundle.
        sources: to draw from instead.

    Returns:
        The offset, in logits. None where it stays as it was: the bundle never refuses a question, there are too few
        questions with an answer, or without one, or the probability of refusing says nothing about which is which.
    """
    reader = answerer.engine.reader
    if not isinstance(reader, PieceReader):
        return None
    sources = calibration_sources(measuring.data, answerer.sources) if sources is None else sources
    drawn = draw_questions(sources, min(measuring.limit or EACH, EACH), measuring.seed)
    free = [example for example in drawn if not example.choices]
    before, reader.refusal_offset = reader.refusal_offset, 0.0
    decisions = answer_all(answerer, [ask_of(e) for e in free], measuring.progress, measuring.threads)
    # of those whose question lists its labels, the refusal is another one
    read = [(e, d) for e, d in zip(free, decisions, strict=True) if d is not None and not d.choices]
    is_missing = np.array([not e.answers for e, _ in read], np.float64)
    reader.refusal_offset = before
    if min(is_missing.sum(), (1 - is_missing).sum()) < LEAST:
        return None
    try:
        found = fit_logistic(np.array([logit(d.refusal) for _, d in read]), is_missing)
    except ValueError:
        return None
    reader.refusal_offset = float(np.clip(round(found.offset / found.scale, 3), -MAX_OFFSET, MAX_OFFSET))
    return reader.refusal_offset
