"""The offset of refusals is where a bundle refuses about as often as there is no answer."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_evaluation.answerers import EngineAnswerer
from mqan_evaluation.fit_temperatures import fit_refusal_offset
from mqan_evaluation.sections import Measuring
from mqan_runtime.engine import Engine
from tests.answering import make_text

NUM_QUESTIONS = 400


class Questions:
    name = "questions"

    def __init__(self, answerer: EngineAnswerer, share: float) -> None:
        rng = random.Random(5)
        asked = [(make_text(rng, 20), make_text(rng, 4)) for _ in range(NUM_QUESTIONS)]
        answers = answers_of(answerer, asked)
        order = np.argsort([answer.refusal for answer in answers])
        missing = set(order[int(len(order) * (1 - share)) :].tolist())
        missing ^= set(rng.sample(range(NUM_QUESTIONS), NUM_QUESTIONS // 20))
        self.examples = [Example("t", str(i), *one, () if i in missing else ("a",)) for i, one in enumerate(asked)]
        self.refusals = [answer.refusal for answer in answers]

    def __len__(self) -> int:
        return len(self.examples)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        return self.examples[index]


def answers_of(answerer: EngineAnswerer, asked: Sequence[tuple[str, str]]) -> list[Answer]:
    """Return the answers to contexts and questions; all are read together."""
    return answerer.engine.answer([answerer.engine.read(*one) for one in asked], [6] * len(asked))


def right(answerer: EngineAnswerer, questions: Questions) -> float:
    answers = answers_of(answerer, [(example.context, example.question) for example in questions.examples])
    return float(np.mean([a.answered == bool(e.answers) for a, e in zip(answers, questions.examples, strict=True)]))


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_a_bundle_refuses_as_often_as_it_should(small_bundle: Path, tmp_path: Path, share: float) -> None:
    answerer = EngineAnswerer.open(small_bundle)
    questions = Questions(answerer, share)
    before = right(answerer, questions)
    offset = fit_refusal_offset(Measuring(answerer, tmp_path), answerer, [questions] * 7)
    assert offset is not None
    assert isinstance(answerer.engine, Engine)
    assert answerer.engine.reader.refusal_offset == offset
    assert (offset < 0) == (share < np.mean(np.array(questions.refusals) > 0.5))
    assert right(answerer, questions) > before + 0.05
    assert fit_refusal_offset(Measuring(answerer, tmp_path), answerer, [questions] * 7) == offset


def test_an_offset_that_cannot_be_fitted_stays(small_bundle: Path, tmp_path: Path) -> None:
    answerer = EngineAnswerer.open(small_bundle)
    assert isinstance(answerer.engine, Engine)
    questions = Questions(answerer, 0.5)
    answerer.engine.reader.refusal_offset = 0.25
    few = Measuring(answerer, tmp_path, limit=30)
    assert fit_refusal_offset(few, answerer, [questions]) is None
    # as many have no answer, but those that are refused least
    questions.examples = [replace(e, answers=() if e.answers else ("a",)) for e in questions.examples]
    assert fit_refusal_offset(Measuring(answerer, tmp_path), answerer, [questions] * 7) is None
    assert answerer.engine.reader.refusal_offset == 0.25
