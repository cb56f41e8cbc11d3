"""Questions with answers to choose from."""

import re
from collections.abc import Sequence

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.formats.dataset_file import ChoicesPart
from mqan_data.formats.rows import ChoiceRow
from mqan_data.questions import asked as q

_FEW = 8  # answers that are mostly all offered
_LONG = 80  # characters of an answer that is not named within a question
_NONE_OFFERED = 0.04  # share of the questions with an answer that offer "none of these", too
_OF_OTHERS = re.compile(  # an answer that speaks of the others
    r"(?:all|none|both|neither)\b(?:.*\b(?:above|these|them|choices|options)\b|\W*$)", re.IGNORECASE
)


def draw(row: ChoiceRow, part: ChoicesPart, rng: np.random.Generator) -> Example:
    """Draw a question: with the answers as choices or in its text, about one of them, or without any."""
    form = q.one_of(rng, part.forms)
    context, question = q.filled(form.text, row.values), q.fitted(q.one_of(rng, form.questions), row.values)
    style = rng.random()
    if part.quoted and style < 0.25:
        answers = [row.options[place] for place in row.right[:1]]
        is_clear = bool(answers) and context.count(answers[0]) == 1
        return q.ask(context, question, answers, context.find(answers[0]) if is_clear else None)
    if style < 0.35 and not row.descriptions and not _refers(row):
        return _about_one(row, context, question, rng)
    options, answers = _drawn(row, part, rng)
    if style < 0.6 and not part.flags and _can_be_named(row, options):
        named = [option.rstrip(".") for option in options]
        return q.ask(context, q.with_options(rng, question, named), [answer.rstrip(".") for answer in answers])
    return q.ask(context, question, answers, choices=_as_choices(options, row), multiple=bool(part.flags))


def draw_of_another(row: ChoiceRow, other: ChoiceRow, part: ChoicesPart, rng: np.random.Generator) -> Example | None:
    """Ask a question of the text of another row, which does not say; None where that cannot be done."""
    form = q.one_of(rng, part.forms)
    template = q.one_of(rng, form.questions)
    text = q.with_text_of(form.text, row.values, other.values) if "{" in template else None
    if text is None or _refers(row):
        return None
    question, options = q.fitted(template, row.values), q.shuffled(rng, row.options)
    style = rng.random()
    if style < 0.3 and part.quoted:  # else others fit without choices, too: "What does the man mean?"
        return q.ask(text, question, ())
    if style < 0.5 and _can_be_named(row, options):
        return q.ask(text, q.with_options(rng, question, [option.rstrip(".") for option in options]), ())
    return q.ask(text, question, (), choices=_as_choices(options, row), multiple=bool(part.flags))


def canonical(row: ChoiceRow, part: ChoicesPart, _rng: object = None) -> Example:
    form, answers = part.forms[0], [row.options[place] for place in row.right]
    question, choices = q.fitted(form.questions[0], row.values), _as_choices(row.options, row)
    return q.ask(q.filled(form.text, row.values), question, answers, choices=choices, multiple=bool(part.flags))


def _as_choices(options: Sequence[str], row: ChoiceRow) -> list[Choice]:
    return [Choice(option, row.descriptions.get(option, "")) for option in options]


def _can_be_named(row: ChoiceRow, options: Sequence[str]) -> bool:
    return not row.descriptions and max(map(len, options)) < _LONG


def _about_one(row: ChoiceRow, context: str, question: str, rng: np.random.Generator) -> Example:
    truth = bool(row.right) and rng.random() < 0.5
    wrong = [place for place in range(len(row.options)) if place not in row.right]
    place = q.one_of(rng, row.right) if truth or not wrong else q.one_of(rng, wrong)
    asked = q.worded(rng, "is_answer", question=question, answer=row.options[place].rstrip("."))
    return q.ask_yes_no(rng, context, asked, place in row.right)


def _refers(row: ChoiceRow) -> bool:
    """Return whether one of the answers speaks of the others, so that none of them can be left out."""
    return any(_OF_OTHERS.match(option) for option in row.options)


def _drawn(row: ChoiceRow, part: ChoicesPart, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Draw the answers to offer, and which of them are right; now and then without the right one."""
    right = [row.options[place] for place in row.right]
    wrong = [option for place, option in enumerate(row.options) if place not in row.right]
    if _refers(row):
        offered = q.shuffled(rng, row.options)
        return offered, [option for option in offered if option in right]
    fewest = 1 if right else 2
    if len(row.options) > _FEW:
        wrong = q.some_of(rng, wrong, max(fewest, q.number_of_choices(rng, len(wrong) + 1) - 1))
    elif wrong and len(row.options) > 2 and rng.random() < 0.3:
        wrong = q.some_of(rng, wrong, int(rng.integers(fewest, len(wrong) + 1)))
    left_out = not right or (len(wrong) > 1 and rng.random() < 0.06)
    offered = q.shuffled(rng, wrong if left_out and wrong else [*right, *wrong])
    answers = [] if left_out and wrong else [option for option in offered if option in right]
    if not part.flags and rng.random() < (_NONE_OFFERED if answers else 0.5):
        none = q.one_of(rng, q.NONE_OF_THESE)
        if none not in offered:
            offered.insert(int(rng.integers(len(offered) + 1)), none)
            answers = answers or [none]
    return offered, answers
