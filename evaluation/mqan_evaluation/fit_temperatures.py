"""Fit how sure a model may be, for each kind of question and number of choices, and how often it refuses.

The questions are drawn as in training (``DatasetSource.draw``) from the validation rows of the same datasets, so that
all kinds, numbers of choices and refusals are there. Errors are measured with maps that were fitted on the other half
of the contexts.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer.calibration import Calibration, QuestionKind, Temperatures, bucket_of, kind_of, logit
from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_core.manifest import MAX_OFFSET
from mqan_data.derived import Source
from mqan_data.formats.dataset_file import load_dataset
from mqan_data.mixture import load_sources
from mqan_data.synthetic.source import made_sources
from mqan_evaluation.answerers import EngineAnswerer, answer_all
from mqan_evaluation.everyday_section import NAME as EVERYDAY
from mqan_evaluation.everyday_section import everyday_examples
from mqan_evaluation.judging import draw_questions, expected_calibration_error, fit_logistic, fold_of, judge, mean
from mqan_evaluation.sections import Cell, Measuring, Section, calibrated
from mqan_runtime.readers import PieceReader

LEAST = 50  # fewest questions to fit a map on
EACH = 60  # questions drawn from each source where no limit is given
OF_EVERYDAY = 25  # times as many of everyday texts: they are what people ask, and have questions of every kind
_LEAST_MASS = 1e-12
_TEMPERATURES = np.exp(np.linspace(np.log(0.1), np.log(10), 401))  # 1 % apart
_PLAIN = Temperatures()

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Observed:
    """A question and the answer to it, not calibrated."""

    example: Example
    answer: Answer

    @property
    def kind(self) -> QuestionKind:
        return kind_of([choice.label for choice in self.answer.choices], self.example.multiple)

    def is_right(self, temperatures: Temperatures) -> bool:
        return judge(self.example, calibrated(self.answer, temperatures))[0] == 1

    def probability(self, temperatures: Temperatures) -> float:
        return calibrated(self.answer, temperatures).probability


def fit_temperatures(observed: Sequence[Observed]) -> Temperatures:
    """Return the maps: of kinds, and of the buckets of a number of choices that have at least ``LEAST`` questions.

    There is one map for several labels, as whether one holds does not depend on how many there are; it is fitted on
    people's questions where these are enough: more than half of their labels hold. The maps of choices are fitted on
    questions with choices, as labels that a question lists are sometimes cut wrongly from it.
    """
    groups: dict[str, list[Observed]] = defaultdict(list)
    of_people: list[Observed] = []
    for one in observed:
        if one.kind is QuestionKind.FREE:
            groups[QuestionKind.REFUSAL.value].append(one)
            if one.answer.answered:
                groups[one.kind.value].append(one)
        elif one.example.choices:
            groups[one.kind.value].append(one)
            if one.kind is QuestionKind.SEVERAL:
                of_people += [one] if one.example.task == EVERYDAY else []
            else:
                groups[f"{one.kind.value}/{bucket_of(len(one.answer.choices))}"].append(one)
    if len(of_people) >= LEAST:
        groups[QuestionKind.SEVERAL.value] = of_people
    fitted = {name: _fit(name, group) for name, group in groups.items() if len(group) >= LEAST}
    return Temperatures({name: found for name, found in sorted(fitted.items()) if found is not None})


def _fit(name: str, group: Sequence[Observed]) -> Calibration | None:
    if name not in _EVENTS:
        losses = sum(_loss_of_choices(o) for o in group)
        return Calibration(float(1 / _TEMPERATURES[int(np.argmin(losses))]), 0.0)
    events = [[(logit(p), is_true) for p, is_true in _EVENTS[name](o)] for o in group]
    given, true = np.array([event for of_one in events for event in of_one], np.float64).T
    weights = np.array([1 / len(of_one) for of_one in events for _ in of_one])  # each question counts once
    try:
        return fit_logistic(given, true, weights) if 0 < true.sum() < len(true) else None
    except ValueError:  # the probabilities say nothing: leave them
        return None


_EVENTS: Final[Mapping[str, Callable[[Observed], list[tuple[float, bool]]]]] = {
    QuestionKind.FREE: lambda o: [(o.answer.probability, o.is_right(_PLAIN))],
    QuestionKind.REFUSAL: lambda o: [(o.answer.refusal, not o.example.answers)],
    QuestionKind.SEVERAL: lambda o: [(c.against_refusal, c.label in o.example.answers) for c in o.answer.choices],
}
"""The events that the map of a kind is fitted on: their probabilities, and whether they came true."""


def _loss_of_choices(observed: Observed) -> FloatArray:
    choices, answers = observed.answer.choices, {answer.casefold().strip() for answer in observed.example.answers}
    masses = [*(choice.probability for choice in choices), observed.answer.refusal]
    scores = np.log(np.maximum(np.array(masses), _LEAST_MASS))[:, None] / _TEMPERATURES
    right = [choice.label.casefold().strip() in answers for choice in choices]
    loss: FloatArray = np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[np.array([*right, not any(right)])])
    return loss


def calibration_sources(data: Path, trained_on: Sequence[str]) -> list[Source]:
    """Return the validation rows of the datasets that a model was trained on and that are there, and synthetic texts.

    Where it names none, of all that are not held back.
    """
    found = [s for s in load_sources(data, None, "validation") if not trained_on or s.name in trained_on]
    return [*(s for s in found if load_dataset(s.name).folder_in(data).is_dir()), *made_sources("train")]


def _draw(measuring: Measuring, sources: Sequence[Source]) -> list[Example]:
    each = min(measuring.limit or EACH, EACH)
    number = {EVERYDAY: OF_EVERYDAY * each}
    drawn = [e for s in sources for e in draw_questions([s], number.get(s.name, each), measuring.seed)]
    if all(s.name != EVERYDAY for s in sources):
        return drawn
    return [*drawn, *(replace(e, task=EVERYDAY) for e in everyday_examples(measuring) if e.multiple)]


def calibration_section(
    measuring: Measuring, trained_on: Sequence[str] = (), sources: Sequence[Source] | None = None
) -> tuple[Temperatures, Section]:
    """Draw questions, answer them, fit the maps; return them with the errors before and after.

    They are drawn from the datasets named, or all that are not held back, or from ``sources``.
    """
    sources = calibration_sources(measuring.data, trained_on) if sources is None else sources
    examples = _draw(measuring, sources)
    answers = measuring.ask("calibration", examples)
    observed = [Observed(e, a) for e, a in zip(examples, answers, strict=True) if a is not None]
    folds = [fold_of(one.example.context) for one in observed]
    halves = [fit_temperatures([o for o, f in zip(observed, folds, strict=True) if f != fold]) for fold in (0, 1)]
    temperatures = fit_temperatures(observed)
    if not temperatures.maps:
        raise ValueError(f"{len(observed)} questions are too few to fit probabilities to: raise --limit")
    mapped = [halves[fold] for fold in folds]
    return temperatures, Section("calibration", "Probabilities", _rows(observed, mapped, temperatures))


def _rows(
    observed: Sequence[Observed], mapped: Sequence[Temperatures], temperatures: Temperatures
) -> list[dict[str, Cell]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(observed):
        groups[_group(one)].append(place)
    groups["all"] = list(range(len(observed)))
    before, after = (
        [(one.probability(maps), one.is_right(maps)) for one, maps in zip(observed, of_each, strict=True)]
        for of_each in ([_PLAIN] * len(observed), mapped)
    )
    rows: list[dict[str, Cell]] = []
    for name, places in sorted(groups.items(), key=lambda pair: (pair[0] == "all", pair[0])):
        found = temperatures.maps.get(name) or temperatures.maps.get(name.partition("/")[0])
        rows.append(
            {
                "kind": name,
                "questions": len(places),
                "accuracy": mean([after[i][1] for i in places]),
                "temperature": None if found is None else round(1 / found.scale, 3),
                "offset": None if found is None else round(found.offset, 3),
                "ECE before": _error([before[i] for i in places]),
                "ECE after": _error([after[i] for i in places]),
            }
        )
    return rows


def _error(answers: Sequence[tuple[float, bool]]) -> float:
    probability, right = np.array(answers, np.float64).T
    return round(expected_calibration_error(probability, right), 4)


def _group(one: Observed) -> str:
    if one.kind is QuestionKind.FREE:
        return (QuestionKind.FREE if one.answer.answered else QuestionKind.REFUSAL).value
    return f"{one.kind.value}/{bucket_of(len(one.answer.choices))}"


def trust_rows(answers: Sequence[Mapping[str, Any]], sections: Sequence[str]) -> list[dict[str, Cell]]:
    """Return, of sections whose answers were kept, the calibration error and how sure answers fare.

    ``answers`` are records of ``Measuring.answers``; a section that was not asked is left out.
    """
    rows: list[dict[str, Cell]] = []
    for name in sections:
        found = [a for a in answers if a["section"] == name and a["is_read"]]
        if found:
            judged = [(float(a["probability"]), bool(a["right"])) for a in found]
            sure = [right for probability, right in judged if probability >= 0.9]
            rows.append(
                {
                    "set": name,
                    "answers": len(found),
                    "ECE": _error(judged),
                    "at 0.9 or more": len(sure),
                    "accuracy of these": mean(sure) if sure else None,
                }
            )
    return rows


def fit_refusal_offset(
    measuring: Measuring, answerer: EngineAnswerer, sources: Sequence[Source] | None = None
) -> float | None:
    """Fit by how much the score of refusing a free question is moved, and let the bundle answer with it.

    A model can be too fond of refusing, and still tell well which questions have no answer. How often there is none,
    given the probability of refusing, is a logistic map (Platt 1999). Where it crosses one half, the moved score has
    the probability one half. None: the bundle refuses no question, or there is too little to tell by.
    """
    reader = answerer.engine.reader
    if not isinstance(reader, PieceReader):
        return None
    sources = calibration_sources(measuring.data, answerer.sources) if sources is None else sources
    drawn = _draw(measuring, sources)
    free = [example for example in drawn if not example.choices]
    before, reader.refusal_offset = reader.refusal_offset, 0.0
    answers = answer_all(answerer, free, measuring.progress, measuring.threads)
    # of those whose question lists its labels, the refusal is another one
    read = [(e, a) for e, a in zip(free, answers, strict=True) if a is not None and not a.choices]
    is_missing = np.array([not e.answers for e, _ in read], np.float64)
    reader.refusal_offset = before
    if min(is_missing.sum(), (1 - is_missing).sum()) < LEAST:
        return None
    try:
        found = fit_logistic(np.array([logit(a.refusal) for _, a in read]), is_missing)
    except ValueError:
        return None
    reader.refusal_offset = float(np.clip(round(found.offset / found.scale, 3), -MAX_OFFSET, MAX_OFFSET))
    return reader.refusal_offset
