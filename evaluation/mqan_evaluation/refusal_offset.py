"""Fit by how much the score of refusing a free question is moved, so that a model refuses as often as it should.

A model can be too fond of refusing, and still tell well which questions have no answer: then a question is refused
although it probably has one. How often there is no answer, given the probability of refusing, is a logistic map (Platt
1999). Where it crosses one half, the moved score has the probability one half.
"""

from collections.abc import Sequence

import numpy as np

from mqan_core.calibration import logit
from mqan_evaluation.answerers import answer_all, ask_of
from mqan_evaluation.draws import draw_questions
from mqan_evaluation.engine_answerer import EngineAnswerer
from mqan_evaluation.fit_temperatures import EACH, LEAST, calibration_sources
from mqan_evaluation.reliability import fit_logistic
from mqan_evaluation.sections import Measuring
from mqan_runtime.answering_engine import AnsweringEngine
from mqan_training.data.source import Source


def fit_refusal_offset(
    measuring: Measuring, answerer: EngineAnswerer, sources: Sequence[Source] | None = None
) -> float:
    """Fit the offset of a bundle on the questions that its probabilities are fitted on, and let it answer with it.

    Args:
        measuring: which questions, and how.
        answerer: the bundle.
        sources: to draw from instead.

    Returns:
        The offset, in logits.

    Raises:
        ValueError: the bundle never refuses, or there are too few questions that have an answer, or that have none.
    """
    engine = answerer.engine
    if not isinstance(engine, AnsweringEngine):
        raise ValueError(f"{answerer.title} never refuses a question: it has no offset")
    sources = calibration_sources(measuring.data, answerer.sources) if sources is None else sources
    drawn = draw_questions(sources, min(measuring.limit or EACH, EACH), measuring.seed)
    free = [example for example in drawn if not example.choices]
    engine.reader.refusal_offset = 0.0
    decisions = answer_all(answerer, [ask_of(e) for e in free], measuring.progress, measuring.threads)
    # of those whose question lists its labels, the refusal is another one
    read = [(e, d) for e, d in zip(free, decisions, strict=True) if d is not None and not d.choices]
    is_missing = np.array([not e.answers for e, _ in read], np.float64)
    if min(is_missing.sum(), (1 - is_missing).sum()) < LEAST:
        raise ValueError(
            f"{len(read)} free questions, {int(is_missing.sum())} of them without an answer, are too few to fit the "
            "offset of refusals to: raise --limit"
        )
    found = fit_logistic(np.array([logit(d.refusal) for _, d in read]), is_missing)
    engine.reader.refusal_offset = round(found.offset / found.scale, 3)
    return engine.reader.refusal_offset
