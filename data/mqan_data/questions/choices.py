"""Questions with answers to choose from, and questions that rows bring along."""

import re
from collections.abc import Sequence

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.formats.dataset_file import ChoicesPart
from mqan_data.formats.rows import ChoiceRow, QuestionRow
from mqan_data.questions.asked import (
    NONE_OF_THESE,
    ask,
    ask_yes_no,
    filled,
    fitted,
    number_of_choices,
    one_of,
    shuffled,
    some_of,
    with_options,
    with_text_of,
    worded,
)

_FEW = 8  # answers that are mostly all offered
_LONG = 80  # characters of an answer that is not named within a question
_NONE_OFFERED = 0.04  # share of the questions with an answer that offer "none of these", too
_OF_OTHERS = re.compile(  # an answer that speaks of the others
    r"(?:all|none|both|neither)\b(?:.*\b(?:above|these|them|choices|options)\b|\W*$)", re.IGNORECASE
)


def ask_choices(row: ChoiceRow, part: ChoicesPart, rng: np.random.Generator) -> Example:
    """Draw a question: with the answers as choices or in its text, about one of them, or without any."""
    form = one_of(rng, part.forms)
    context, question = filled(form.text, row.values), fitted(one_of(rng, form.questions), row.values)
    style = rng.random()
    if part.quoted and style < 0.25:
        answers = [row.options[place] for place in row.right[:1]]
        is_clear = bool(answers) and context.count(answers[0]) == 1
        return ask(context, question, answers, context.find(answers[0]) if is_clear else None)
    if style < 0.35 and not row.descriptions and not _refers(row):
        return _about_one(row, context, question, rng)
    options, answers = _drawn(row, part, rng)
    if style < 0.6 and not part.flags and _can_be_named(row, options):
        named = [option.rstrip(".") for option in options]
        return ask(context, with_options(rng, question, named), [answer.rstrip(".") for answer in answers])
    return ask(context, question, answers, choices=_as_choices(options, row), multiple=bool(part.flags))


def ask_choices_of_another(
    row: ChoiceRow, other: ChoiceRow, part: ChoicesPart, rng: np.random.Generator
) -> Example | None:
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
        return ask(text, question, ())
    if style < 0.5 and _can_be_named(row, options):
        return ask(text, with_options(rng, question, [option.rstrip(".") for option in options]), ())
    return ask(text, question, (), choices=_as_choices(options, row), multiple=bool(part.flags))


def canonical_choices(row: ChoiceRow, part: ChoicesPart) -> Example:
    """Return the first wording with all answers as choices."""
    form, answers = part.forms[0], [row.options[place] for place in row.right]
    question, choices = fitted(form.questions[0], row.values), _as_choices(row.options, row)
    return ask(filled(form.text, row.values), question, answers, choices=choices, multiple=bool(part.flags))


def _as_choices(options: Sequence[str], row: ChoiceRow) -> list[Choice]:
    return [Choice(option, row.descriptions.get(option, "")) for option in options]


def _can_be_named(row: ChoiceRow, options: Sequence[str]) -> bool:
    return not row.descriptions and max(map(len, options)) < _LONG


def _about_one(row: ChoiceRow, context: str, question: str, rng: np.random.Generator) -> Example:
    truth = bool(row.right) and rng.random() < 0.5
    wrong = [place for place in range(len(row.options)) if place not in row.right]
    place = one_of(rng, row.right) if truth or not wrong else one_of(rng, wrong)
    asked = worded(rng, "is_answer", question=question, answer=row.options[place].rstrip("."))
    return ask_yes_no(rng, context, asked, place in row.right)


def _refers(row: ChoiceRow) -> bool:
    """Return whether one of the answers speaks of the others, so that none of them can be left out."""
    return any(_OF_OTHERS.match(option) for option in row.options)


def _drawn(row: ChoiceRow, part: ChoicesPart, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Draw the answers to offer, and which of them are right; now and then without the right one."""
    right = [row.options[place] for place in row.right]
    wrong = [option for place, option in enumerate(row.options) if place not in row.right]
    if _refers(row):
        offered = shuffled(rng, row.options)
        return offered, [option for option in offered if option in right]
    fewest = 1 if right else 2
    if len(row.options) > _FEW:
        wrong = some_of(rng, wrong, max(fewest, number_of_choices(rng, len(wrong) + 1) - 1))
    elif wrong and len(row.options) > 2 and rng.random() < 0.3:
        wrong = some_of(rng, wrong, int(rng.integers(fewest, len(wrong) + 1)))
    left_out = not right or (len(wrong) > 1 and rng.random() < 0.06)
    offered = shuffled(rng, wrong if left_out and wrong else [*right, *wrong])
    answers = [] if left_out and wrong else [option for option in offered if option in right]
    if not part.flags and rng.random() < (_NONE_OFFERED if answers else 0.5):
        none = one_of(rng, NONE_OF_THESE)
        if none not in offered:
            offered.insert(int(rng.integers(len(offered) + 1)), none)
            answers = answers or [none]
    return offered, answers


def ask_plain(row: QuestionRow, rng: np.random.Generator) -> Example:
    """Return a question that a row brings along, in one of its wordings."""
    return ask(row.text, one_of(rng, row.questions), row.answers, row.start)


def ask_plain_of_another(row: QuestionRow, other: QuestionRow, rng: np.random.Generator) -> Example | None:
    """Ask the question of the text of another row; None where that holds the answer, too."""
    folded = other.text.casefold()
    if other.text == row.text or any(answer.casefold() in folded for answer in row.answers):
        return None
    return ask(other.text, one_of(rng, row.questions), ())


def canonical_plain(row: QuestionRow) -> Example:
    """Return the question in its first wording."""
    return ask(row.text, row.questions[0], row.answers, row.start)
