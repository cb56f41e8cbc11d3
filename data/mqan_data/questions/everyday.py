"""Questions of every kind that people wrote about a text, with the words that decide them."""

import re
from collections.abc import Sequence

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.formats.dataset_file import FactsPart
from mqan_data.formats.rows import EverydayRow, FactRow
from mqan_data.questions.asked import (
    NONE_OF_THESE,
    YES_NO,
    article,
    ask,
    one_of,
    shuffled,
    some_of,
    with_options,
    worded,
    wordings,
)
from mqan_data.questions.derived import ask_derived
from mqan_data.questions.facts import ask_facts

_AS_QUESTION = FactsPart(shape="facts", format="", files={}, text="", question="question", label="")
_DERIVED = 0.3  # share of the questions from which another one is made
_ABOUT_ONE, _IN_TEXT, _DROPPED = 0.15, 0.1, 0.25  # shares of the questions with labels
_NONE_NAMED = 0.35  # share of the questions of which no label is right that offer "none of these"
_NAME = re.compile(r"[a-z][a-z0-9' -]*")


def ask_everyday(row: EverydayRow, rng: np.random.Generator) -> Example:
    """Draw a wording of a question, and of its labels: all or some of them, in any order; or a question made of it."""
    if rng.random() < _DERIVED and (derived := ask_derived(row, rng)) is not None:
        return derived
    match row.kind:
        case "yes_no":
            verdict = row.answers[0] if row.answers else "unknown"
            fact = FactRow(row.text, row.question, verdict, row.evidence if row.answers else None)  # type: ignore[arg-type]
            return ask_facts(fact, _AS_QUESTION, rng)
        case "free":
            return _quoted(row, row.question)
        case "field":
            return _quoted(row, _of_field(row, rng))
        case "several":
            return _several(row, rng)
        case _:
            return _one(row, rng)


def canonical_everyday(row: EverydayRow) -> Example:
    """Return a question in its own words with all of its labels."""
    if row.kind in ("free", "field"):
        return _quoted(row, row.question if row.kind == "free" else f"What is the {row.question}?")
    choices = YES_NO if row.kind == "yes_no" else row.choices
    return ask(row.text, row.question, row.answers, None, choices, row.kind == "several", row.evidence or None)


def _quoted(row: EverydayRow, question: str) -> Example:
    is_clear = bool(row.answers) and row.text.count(row.answers[0]) == 1
    return ask(row.text, question, row.answers, row.text.find(row.answers[0]) if is_clear else None)


def _of_field(row: EverydayRow, rng: np.random.Generator) -> str:
    name, style = row.question, rng.random()
    if style < 0.2 and (of_type := wordings(f"of_{row.type}")):
        return of_type[0].format(name=name)
    return f"{name} ({row.type})" if style < 0.35 else worded(rng, "field", name=name, a=article(name))


def _one(row: EverydayRow, rng: np.random.Generator) -> Example:
    """Ask for one label: among choices, among those that the question names, or by yes and no about one of them."""
    style = rng.random()
    if style < _ABOUT_ONE and len(row.choices) > 1:
        return _about_one(row, rng, row.answers[:1])
    kept = list(row.choices)
    wrong = [choice for choice in kept if choice.label not in row.answers]
    if len(wrong) > 2 and rng.random() < _DROPPED:
        wrong = some_of(rng, wrong, int(rng.integers(2, len(wrong))))
        kept = [choice for choice in kept if choice in wrong or choice.label in row.answers]
    is_ordered = row.kind == "scale" or rng.random() < 0.1
    offered = kept if is_ordered else shuffled(rng, kept)
    if rng.random() < 0.5 and _tell(offered):
        offered = [Choice(choice.label) for choice in offered]
    answers = row.answers
    if row.kind == "choice" and rng.random() < (0.04 if answers else _NONE_NAMED):
        none = one_of(rng, (*NONE_OF_THESE, "not stated", "the text does not say"))
        if none not in [choice.label for choice in row.choices]:
            offered = [*offered, Choice(none)]
            answers = answers or (none,)
    if style < _ABOUT_ONE + _IN_TEXT and not any(choice.description or len(choice.label) > 60 for choice in offered):
        return ask(row.text, with_options(rng, row.question, [choice.label for choice in offered]), answers)
    return ask(row.text, row.question, answers, choices=offered, evidence=row.evidence if row.answers else None)


def _tell(choices: Sequence[Choice]) -> bool:
    """Return whether labels say by themselves what they stand for, and not by their descriptions alone."""
    return all(_NAME.fullmatch(choice.label.lower()) and len(choice.label) > 3 for choice in choices)


def _about_one(row: EverydayRow, rng: np.random.Generator, right: Sequence[str]) -> Example:
    wrong = [choice.label for choice in row.choices if choice.label not in row.answers]
    truth = bool(right) and (not wrong or rng.random() < 0.5)
    label = one_of(rng, right if truth else wrong)
    asked = worded(rng, "is_answer", question=row.question, answer=label)
    evidence = row.evidence if truth and len(row.answers) == 1 else None
    return ask(row.text, asked, ("yes" if truth else "no",), choices=YES_NO, evidence=evidence)


def _several(row: EverydayRow, rng: np.random.Generator) -> Example:
    if rng.random() < _ABOUT_ONE and len(row.choices) > 1:
        return _about_one(row, rng, row.answers)
    number = len(row.choices)
    if number > 3 and rng.random() < _DROPPED:
        number = int(rng.integers(3, number))
    offered = some_of(rng, row.choices, number)
    answers = [choice.label for choice in offered if choice.label in row.answers]
    evidence = row.evidence if len(row.answers) == 1 and answers else None  # of several nobody says which is whose
    return ask(row.text, row.question, answers, choices=offered, multiple=True, evidence=evidence)
