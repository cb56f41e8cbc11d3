"""Questions with answers to choose from."""

import re

import numpy as np

from mqan_core.example import Choice
from mqan_data.formats.dataset_file import ChoicesPart
from mqan_data.formats.rows import ChoiceRow
from mqan_data.questions import wordings
from mqan_data.questions.asked import (
    NONE_OF_THESE,
    Asked,
    ask_yes_no,
    filled,
    fitted,
    number_of_choices,
    one_of,
    shuffled,
    some_of,
    with_options,
    with_text_of,
)

_FEW = 8  # answers that are mostly all offered
_LONG = 80  # characters of an answer that is not named within a question
_NONE_OFFERED = 0.04  # share of the questions with an answer that offer "none of these", too
_OF_OTHERS = re.compile(  # an answer that speaks of the others
    r"(?:all|none|both|neither)\b(?:.*\b(?:above|these|them|choices|options)\b|\W*$)", re.IGNORECASE
)


def ask_choices(row: ChoiceRow, part: ChoicesPart, rng: np.random.Generator) -> Asked:
    """Draw a question: with the answers as choices or in its text, about one of them, or without any."""
    form = one_of(rng, part.forms)
    values = dict(row.values)
    context, question = filled(form.text, values), fitted(one_of(rng, form.questions), values)
    style = rng.random()
    if part.quoted and style < 0.25:
        return _quoted(row, context, question)
    if style < 0.35 and not row.descriptions and not _refers(row):
        return _about_one(row, context, question, rng)
    options, answers = _drawn(row, part, rng)
    if part.flags:
        return Asked(context, question, answers, choices=_as_choices(options, row), multiple=True)
    if style < 0.6 and not row.descriptions and max(map(len, options)) < _LONG:
        named, right = [option.rstrip(".") for option in options], tuple(answer.rstrip(".") for answer in answers)
        return Asked(context, with_options(rng, question, named), right)
    return Asked(context, question, answers, choices=_as_choices(options, row))


def ask_choices_of_another(
    row: ChoiceRow, other: ChoiceRow, part: ChoicesPart, rng: np.random.Generator
) -> Asked | None:
    """Ask a question of the text of another row, which does not say; None where that cannot be done.

    Without its choices only where it is asked without them of its own text, too: "What does the man mean?" fits others.
    """
    form = one_of(rng, part.forms)
    template = one_of(rng, form.questions)
    text = with_text_of(form.text, row.values, other.values) if "{" in template else None
    if text is None or _refers(row):
        return None
    question, options = fitted(template, row.values), shuffled(rng, row.options)
    style = rng.random()
    if style < 0.3 and part.quoted:
        return Asked(text, question, ())
    if style < 0.5 and not row.descriptions and max(map(len, options)) < _LONG:
        return Asked(text, with_options(rng, question, [option.rstrip(".") for option in options]), ())
    return Asked(text, question, (), choices=_as_choices(options, row), multiple=bool(part.flags))


def canonical_choices(row: ChoiceRow, part: ChoicesPart) -> Asked:
    """Return the first wording with all answers as choices."""
    form, values = part.forms[0], dict(row.values)
    answers = tuple(row.options[place] for place in row.right)
    question = fitted(form.questions[0], values)
    choices = _as_choices(row.options, row)
    return Asked(filled(form.text, values), question, answers, choices=choices, multiple=bool(part.flags))


def _as_choices(options: tuple[str, ...] | list[str], row: ChoiceRow) -> tuple[Choice, ...]:
    return tuple(Choice(option, row.descriptions.get(option, "")) for option in options)


def _quoted(row: ChoiceRow, context: str, question: str) -> Asked:
    if not row.right:
        return Asked(context, question, ())
    answer = row.options[row.right[0]]
    start = context.find(answer)
    return Asked(context, question, (answer,), start if start >= 0 and context.count(answer) == 1 else None)


def _about_one(row: ChoiceRow, context: str, question: str, rng: np.random.Generator) -> Asked:
    truth = bool(row.right) and rng.random() < 0.5
    wrong = [place for place in range(len(row.options)) if place not in row.right]
    place = one_of(rng, row.right) if truth or not wrong else one_of(rng, wrong)
    template = one_of(rng, wordings.IS_ANSWER)
    asked = template.format(question=question, answer=row.options[place].rstrip("."))
    return ask_yes_no(rng, context, asked, place in row.right)


def _refers(row: ChoiceRow) -> bool:
    """Return whether one of the answers speaks of the others, so that none of them can be left out."""
    return any(_OF_OTHERS.match(option) for option in row.options)


def _drawn(row: ChoiceRow, part: ChoicesPart, rng: np.random.Generator) -> tuple[list[str], tuple[str, ...]]:
    """Draw the answers to offer, and which of them are right; now and then without the right one."""
    if _refers(row):
        offered = shuffled(rng, row.options)
        return offered, tuple(option for option in offered if row.options.index(option) in row.right)
    right = [row.options[place] for place in row.right]
    wrong = [option for place, option in enumerate(row.options) if place not in row.right]
    fewest = 1 if right else 2
    if len(row.options) > _FEW:
        wrong = some_of(rng, wrong, max(fewest, number_of_choices(rng, len(wrong) + 1) - 1))
    elif wrong and len(row.options) > 2 and rng.random() < 0.3:
        wrong = some_of(rng, wrong, int(rng.integers(fewest, len(wrong) + 1)))
    left_out = not right or (len(wrong) > 1 and rng.random() < 0.06)
    offered = shuffled(rng, wrong if left_out and wrong else [*right, *wrong])
    answers = () if left_out and wrong else tuple(option for option in offered if option in right)
    if not part.flags and rng.random() < (_NONE_OFFERED if answers else 0.5):
        none = one_of(rng, NONE_OF_THESE)
        if none not in offered:
            offered.insert(int(rng.integers(len(offered) + 1)), none)
            answers = answers or (none,)
    return offered, answers
