"""Fields, refusals, instructions, reviews and long texts of datasets that were never trained on.

The names of classes are those of the zero-shot experiments of McCann et al. (2018).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from mqan_core.answer.types import Answer, Source
from mqan_core.example import Choice, Example
from mqan_data.mixture import validation_examples
from mqan_data.synthetic.source import made_sources
from mqan_evaluation import judging
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
MOST_ASKED: Final = 260  # most questions: each is read in some 35 windows
LENGTH: Final = 50_000  # characters of a long text
_GAP: Final = "\n\n"


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
    title = "Questions of which half have no answer in the text"
    return Section("squad2_dev", title, [_set_row(measuring, "squad2_dev")])


def made_section(measuring: Measuring) -> Section:
    """Measure texts made by program, in layouts that are held back: a table by kind of text."""
    each = measuring.limit or _MADE_EACH
    sources = made_sources("validation")
    drawn = {source.name: judging.draw_questions([source], each, measuring.seed) for source in sources}
    rows = [{"set": name, **_scores(measuring, name, examples)} for name, examples in drawn.items()]
    total = sum(map(len, drawn.values()))
    f1 = sum(float(row["nF1"] or 0) * len(drawn[str(row["set"])]) for row in rows) / total
    return Section("made", "Synthetic texts, in layouts that were not trained on", rows, {"nF1": round(f1, 2)})


def instruction_section(measuring: Measuring, names: Sequence[str] = INSTRUCTIONS) -> Section:
    """Measure instructions with choices beside the commonest answer, of all and of each instruction."""
    rows: list[dict[str, Cell]] = []
    for name in names:
        whole = validation_examples(measuring.data, name, judging.ALL, measuring.seed)
        examples = judging.sampled(whole, measuring.limit, measuring.seed)
        answers = measuring.ask(name, examples)
        is_repeated = len({example.question for example in whole}) * 3 < len(whole)
        rows.append(
            {
                "set": name,
                "examples": len(examples),
                "majority": judging.majority(whole),
                "majority of each instruction": judging.majority(whole, by_question=True) if is_repeated else None,
                "accuracy": judging.share_right(examples, answers),
                **judging.unanswered(answers),
            }
        )
    return Section("instructions", "Instructions with choices, of datasets that were not trained on", rows)


def review_section(measuring: Measuring) -> Section:
    """Measure SST under other names of its classes, in either order, and reviews of a dataset never trained on."""
    ways = {"own names": Wording(), "own names, reversed": Wording(in_reverse=True)}
    renamed = [Wording(names, in_reverse) for names in NEW_NAMES for in_reverse in (False, True)]
    ways |= {" or ".join(wording.offered): wording for wording in renamed}
    ways |= {rephrasing: Wording(question=rephrasing) for rephrasing in REPHRASINGS}
    examples = validation_examples(measuring.data, "sst", measuring.limit or judging.ALL, measuring.seed)
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
    other = validation_examples(measuring.data, OTHER_DOMAIN, measuring.limit or judging.ALL, measuring.seed)
    right = _right(measuring, OTHER_DOMAIN, other)
    rows.append({"set": OTHER_DOMAIN, "examples": len(other), "labels in question": right, "as choices": None})
    return Section("reviews", "Classes by other names, and reviews of another domain", rows)


def _right(measuring: Measuring, section: str, examples: list[Example]) -> float:
    return judging.share_right(examples, measuring.ask(section, examples))


def _set_row(measuring: Measuring, name: str) -> dict[str, Cell]:
    examples = validation_examples(measuring.data, name, measuring.limit or judging.ALL, measuring.seed)
    return {"set": name, **_scores(measuring, name, examples)}


def _scores(measuring: Measuring, section: str, examples: list[Example]) -> dict[str, Cell]:
    answers = measuring.ask(section, examples)
    judged = [judging.judge(example, answer) for example, answer in zip(examples, answers, strict=True)]
    answerable = [f1 for example, (_, f1) in zip(examples, judged, strict=True) if example.answers]
    return {
        "examples": len(examples),
        "nF1": judging.mean([f1 for _, f1 in judged]),
        "exact": judging.mean([exact for exact, _ in judged]),
        "nF1 where answered": judging.mean(answerable),
        "without answer": judging.per_cent(1 - len(answerable) / len(examples)),
        **judging.refusal_scores(examples, answers),
    }


def long_section(measuring: Measuring) -> Section:
    """Measure questions of SQuAD on their paragraph, and with other paragraphs before and after it."""
    whole = validation_examples(measuring.data, "squad", judging.ALL, measuring.seed)
    examples = judging.sampled(whole, min(measuring.limit or MOST_ASKED, MOST_ASKED), measuring.seed)
    others = list(dict.fromkeys(example.context for example in whole))
    placed = [
        within_others(example, others, LENGTH, np.random.default_rng([measuring.seed, i]))
        for i, example in enumerate(examples)
    ]
    alone, within = (measuring.ask(name, asked) for name, asked in (("long (paragraph)", examples), ("long", placed)))
    rows = [
        {"set": "squad: paragraph alone", **_row(examples, alone, [e.context for e in examples])},
        {"set": f"squad: in {LENGTH:,} characters", **_row(placed, within, [e.context for e in examples])},
    ]
    return Section("long", "Questions of SQuAD on their paragraph, and on a long text that holds it", rows)


def within_others(example: Example, others: Sequence[str], length: int, rng: np.random.Generator) -> Example:
    """Return the example with other texts around its own, which stands whole at a random place among them.

    ``length`` is the most characters of the text that is made.
    """
    kept: list[str] = []
    room = length - len(example.context)
    for place in rng.permutation(len(others)):
        other = others[int(place)]
        if other == example.context:
            continue
        room -= len(other) + len(_GAP)
        if room < 0:
            break
        kept.append(other)
    kept.insert(int(rng.integers(len(kept) + 1)), example.context)
    return replace(example, context=_GAP.join(kept), answer_start=None)


def _row(examples: Sequence[Example], answers: Sequence[Answer | None], own: Sequence[str]) -> dict[str, Cell]:
    judged = [judging.judge(example, answer) for example, answer in zip(examples, answers, strict=True)]
    right = [
        _is_quoted_from(example, answer, text)
        for example, answer, text, (exact, _) in zip(examples, answers, own, judged, strict=True)
        if exact == 1
    ]
    return {
        "examples": len(examples),
        "exact": judging.mean([exact for exact, _ in judged]),
        "nF1": judging.mean([f1 for _, f1 in judged]),
        "right ones quoted from the paragraph": judging.mean(right) if right else None,
        "refused": judging.mean(list(map(judging.is_refusal, answers))),
    }


def _is_quoted_from(example: Example, answer: Answer | None, text: str) -> bool:
    start = example.context.index(text)
    quoted = [] if answer is None else [span for span in answer.spans if span.source is Source.CONTEXT]
    return bool(quoted) and all(start <= span.start and span.end <= start + len(text) for span in quoted)
