"""Fields, refusals, instructions and reviews: datasets that were never trained on, and classes by other names.

The names of classes are those of the zero-shot experiments of McCann et al. (2018).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from mqan_core.example import Choice, Example
from mqan_data.mixture import validation_examples
from mqan_data.synthetic.source import made_sources
from mqan_evaluation.judging import (
    ALL,
    draw_questions,
    judge,
    majority,
    mean,
    per_cent,
    refusal_scores,
    sampled,
    share_right,
    unanswered,
)
from mqan_evaluation.sections import Cell, Measuring, Section

FIELDS = ("restaurant8k", "e2e_nlg")  # held-back datasets with fields
INSTRUCTIONS = ("pubmedqa", "legalbench")  # held-back datasets with questions that are instructions, and choices
OTHER_DOMAIN = "product_reviews"  # held-back reviews of another domain than SST's
_MADE_EACH = 200  # questions of each kind of text, where no limit is given

LABELS: Final = ("negative", "positive")  # the classes of SST, as it names them
OWN: Final = "Is this review {0} or {1}?"  # the question of SST, with a place for each class
REPHRASINGS: Final = (
    "Would you call this review {0} or {1}?",
    "Does the author sound {0} or {1}?",
    "What is the sentiment here, {0} or {1}?",
    "{0} or {1}: which word describes this review better?",
    "Is the verdict of the person who wrote this {0} or {1}?",
)
"""Other ways to ask for the sentiment, with a place for each class."""

NEW_NAMES: Final = (("angry", "happy"), ("unsupportive", "supportive"), ("furious", "thrilled"))
"""Other names for the two sentiments. The default model meets some of them, as moods of a writer in made texts."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Another way to ask for the sentiment of a review, by names of negative and positive, in this order or not."""

    names: tuple[str, str] = LABELS
    in_reverse: bool = False
    question: str = OWN

    @property
    def offered(self) -> tuple[str, ...]:
        return self.names[::-1] if self.in_reverse else self.names

    def apply(self, example: Example) -> Example:
        """Return an example of SST asked this way."""
        called = dict(zip(LABELS, self.names, strict=True))
        question = self.question.format(*self.offered)
        return replace(example, question=question, answers=tuple(called[answer] for answer in example.answers))


def field_section(measuring: Measuring, names: Sequence[str] = FIELDS) -> Section:
    """Measure fields: F1 of all questions, where a refusal is right if and only if the text does not say."""
    return Section("fields", "Fields of datasets that were not trained on", [_set_row(measuring, n) for n in names])


def squad2_section(measuring: Measuring) -> Section:
    """Measure questions on Wikipedia, half of which the passage does not answer."""
    row = _set_row(measuring, "squad2_dev")
    return Section("squad2_dev", "Questions of which half have no answer in the text", [row])


def made_section(measuring: Measuring) -> Section:
    """Measure texts made by program, in layouts that are held back: a table by kind of text."""
    each = measuring.limit or _MADE_EACH
    drawn = {source.name: draw_questions([source], each, measuring.seed) for source in made_sources("validation")}
    rows = [{"set": name, **_scores(measuring, name, examples)} for name, examples in drawn.items()]
    total = sum(map(len, drawn.values()))
    f1 = sum(float(row["nF1"] or 0) * len(drawn[str(row["set"])]) for row in rows) / total
    return Section("made", "Synthetic texts, in layouts that were not trained on", rows, {"nF1": round(f1, 2)})


def instruction_section(measuring: Measuring, names: Sequence[str] = INSTRUCTIONS) -> Section:
    """Measure instructions with choices beside the commonest answer, of all and of each instruction."""
    rows: list[dict[str, Cell]] = []
    for name in names:
        whole = validation_examples(measuring.data, name, ALL, measuring.seed)
        examples = sampled(whole, measuring.limit, measuring.seed)
        answers = measuring.ask(name, examples)
        by_task = majority(whole, by_question=True) if len({e.question for e in whole}) * 3 < len(whole) else None
        rows.append(
            {
                "set": name,
                "examples": len(examples),
                "majority": majority(whole),
                "majority of each instruction": by_task,
                "accuracy": share_right(examples, answers),
                **unanswered(answers),
            }
        )
    return Section("instructions", "Instructions with choices, of datasets that were not trained on", rows)


def review_section(measuring: Measuring) -> Section:
    """Measure SST under other names of its classes, in either order, and reviews of a dataset never trained on."""
    ways = {"own names": Wording(), "own names, reversed": Wording(in_reverse=True)}
    renamed = [Wording(names, in_reverse) for names in NEW_NAMES for in_reverse in (False, True)]
    ways |= {" or ".join(wording.offered): wording for wording in renamed}
    ways |= {rephrasing: Wording(question=rephrasing) for rephrasing in REPHRASINGS}
    examples = validation_examples(measuring.data, "sst", measuring.limit or ALL, measuring.seed)
    rows: list[dict[str, Cell]] = []
    for way, wording in ways.items():
        asked = [wording.apply(example) for example in examples]
        chosen = [replace(e, choices=tuple(map(Choice, wording.offered))) for e in asked]
        rows.append(
            {
                "set": f"sst: {way}",
                "examples": len(asked),
                "labels in question": _right(measuring, f"sst ({way})", asked),
                "as choices": _right(measuring, f"sst ({way}, choices)", chosen),
            }
        )
    other = validation_examples(measuring.data, OTHER_DOMAIN, measuring.limit or ALL, measuring.seed)
    right = _right(measuring, OTHER_DOMAIN, other)
    rows.append({"set": OTHER_DOMAIN, "examples": len(other), "labels in question": right, "as choices": None})
    return Section("reviews", "Classes by other names, and reviews of another domain", rows)


def _right(measuring: Measuring, section: str, examples: list[Example]) -> float:
    return share_right(examples, measuring.ask(section, examples))


def _set_row(measuring: Measuring, name: str) -> dict[str, Cell]:
    examples = validation_examples(measuring.data, name, measuring.limit or ALL, measuring.seed)
    return {"set": name, **_scores(measuring, name, examples)}


def _scores(measuring: Measuring, section: str, examples: list[Example]) -> dict[str, Cell]:
    answers = measuring.ask(section, examples)
    judged = [judge(example, answer) for example, answer in zip(examples, answers, strict=True)]
    answerable = [f1 for example, (_, f1) in zip(examples, judged, strict=True) if example.answers]
    return {
        "examples": len(examples),
        "nF1": mean([f1 for _, f1 in judged]),
        "exact": mean([exact for exact, _ in judged]),
        "nF1 where answered": mean(answerable),
        "without answer": per_cent(1 - len(answerable) / len(examples)),
        **refusal_scores(examples, answers),
    }
