"""Questions about the labels of a row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mqan_core.example import Choice
from mqan_data.formats.dataset_file import Form, LabelsPart, readable
from mqan_data.formats.rows import LabelRow
from mqan_data.questions import wordings
from mqan_data.questions.asked import (
    NONE_OF_THESE,
    TRUE_FALSE,
    Asked,
    ask_yes_no,
    enumerated,
    filled,
    fitted,
    number_of_choices,
    one_of,
    shuffled,
    some_of,
    with_options,
    with_text_of,
)

_LEFT_OUT = 0.12  # share of questions with choices that lack the right one
_NOTHING = tuple(name for name in NONE_OF_THESE if name.startswith("none"))  # where there is nothing else either
_NONE_OFFERED = 0.35  # share of these that offer "none of these" for it
_GENERIC = 0.3  # share of questions in words that fit any label set


@dataclass(frozen=True, slots=True)
class Named:
    """Labels of one question as they are written there.

    Attributes:
        choices: in the order in which they are offered.
        right: what those that are right are called.
    """

    choices: tuple[Choice, ...]
    right: tuple[str, ...]

    @property
    def labels(self) -> list[str]:
        """Return what the choices say."""
        return [choice.label for choice in self.choices]


def ask_labels(row: LabelRow, part: LabelsPart, rng: np.random.Generator, others: Sequence[str] = ()) -> Asked:
    """Draw a question about the labels of a row.

    Args:
        row: the row.
        part: what the dataset file says of it.
        rng: where chance comes from.
        others: labels of other sets, which can never be right here.

    Returns:
        The question; without answers where the right label is not among the choices.
    """
    form = one_of(rng, part.forms)
    style = rng.random()
    if part.free and style < _share_without_choices(part):
        return _free(row, part, form, rng)
    if style < 0.25 and (row.right or not part.none):
        return _yes_no(row, part, form, rng)
    if style < (0.75 if part.multiple else 0.3) and not part.closed and not part.ordered:
        return _several(row, part, form, rng, others)
    return _one(row, part, form, rng, others)


def _share_without_choices(part: LabelsPart) -> float:
    """Return the share for a set that makes sense so: less where its labels have questions, which are yes or no."""
    return 0.15 if any(label.questions or label.negated for label in part.labels.values()) else 0.25


def ask_labels_of_another(row: LabelRow, other: LabelRow, part: LabelsPart, rng: np.random.Generator) -> Asked | None:
    """Ask what a row is about of the text of another one, which does not say; None where that cannot be done."""
    form = one_of(rng, part.forms)
    text = None if _is_plain(part, form) else with_text_of(form.text, row.values, other.values)
    if text is None:
        return None
    question = fitted(one_of(rng, form.questions), row.values)
    names = [readable(key, label.name) for key, label in part.labels.items()]
    choices = tuple(Choice(name) for name in shuffled(rng, names)) if rng.random() < 0.5 else ()
    return Asked(text, question, (), choices=choices)


def canonical_question(row: LabelRow, part: LabelsPart) -> Asked:
    """Return the first wording with all labels of the set as choices, by name."""
    form, values = part.forms[0], dict(row.values)
    choices = tuple(Choice(readable(key, label.name)) for key, label in part.labels.items())
    names = dict(zip(part.labels, (choice.label for choice in choices), strict=True))
    answers = tuple(names[key] for key in row.right)
    question = fitted(form.questions[0], values)
    return Asked(filled(form.text, values), question, answers, choices=choices, multiple=part.multiple)


def _free(row: LabelRow, part: LabelsPart, form: Form, rng: np.random.Generator) -> Asked:
    values = dict(row.values)
    context, question = filled(form.text, values), fitted(one_of(rng, form.questions), values)
    answers = tuple(readable(key, part.labels[key].name) for key in row.right[:1])
    return Asked(context, question, answers)


def _one(row: LabelRow, part: LabelsPart, form: Form, rng: np.random.Generator, others: Sequence[str]) -> Asked:
    named = _named(_drawn_keys(row, part, rng, multiple=False), row, part, rng, others, described=True)
    values = dict(row.values)
    context = filled(form.text, values)
    answers = named.right[:1]
    lacks = not answers and not part.closed
    choices = named.choices
    if (lacks and rng.random() < _NONE_OFFERED) or (not part.closed and rng.random() < 0.04):
        none = one_of(rng, NONE_OF_THESE if row.right else _NOTHING)
        if none not in {choice.label.casefold() for choice in choices}:
            choices = (*choices, Choice(none))
            answers = (none,) if lacks else answers
    if rng.random() < 0.68 or any(len(choice.label) > 60 for choice in choices):
        return Asked(context, _question(part, form, values, rng), answers, choices=choices)
    labels = [choice.label for choice in choices]
    if form.options and rng.random() < 0.5:
        question = fitted(one_of(rng, form.options), {**values, "options": enumerated(rng, labels)})
    elif rng.random() < 1 - _GENERIC or not _is_plain(part, form):
        question = with_options(rng, fitted(one_of(rng, form.questions), values), labels)
    else:
        template = one_of(rng, wordings.CHOOSE_FROM)
        question = filled(template, {"kind": part.kind, "kinds": _kinds(part), "options": enumerated(rng, labels)})
    return Asked(context, question, answers)


def _several(row: LabelRow, part: LabelsPart, form: Form, rng: np.random.Generator, others: Sequence[str]) -> Asked:
    named = _named(_drawn_keys(row, part, rng, multiple=True), row, part, rng, others, described=True)
    values = dict(row.values)
    if _is_plain(part, form):
        question = one_of(rng, wordings.CHOOSE_SEVERAL).format(kind=part.kind, kinds=_kinds(part))
    else:
        question = _question(part, form, values, rng)
    return Asked(filled(form.text, values), question, named.right, choices=named.choices, multiple=True)


def _yes_no(row: LabelRow, part: LabelsPart, form: Form, rng: np.random.Generator) -> Asked:
    values = dict(row.values)
    context = filled(form.text, values)
    truth = bool(row.right) and rng.random() < 0.5
    key = one_of(rng, row.right) if truth else one_of(rng, _clearly_wrong(row, part) or list(row.right))
    truth = key in row.right
    label = part.labels[key]
    name = one_of(rng, (readable(key, label.name), *label.synonyms))
    named = {**values, "label": name, "kind": part.kind, "description": label.description}
    negated = rng.random() < 0.2
    own = label.negated if negated else label.questions
    of_form = form.negated if negated else form.yes_no
    if own and rng.random() < 0.7:
        return ask_yes_no(rng, context, fitted(one_of(rng, own), named), truth != negated)
    if of_form and rng.random() < 1 - _GENERIC:
        return ask_yes_no(rng, context, fitted(one_of(rng, of_form), named), truth != negated)
    if not _is_plain(part, form):
        asked = fitted(one_of(rng, form.questions), values)
        template = one_of(rng, wordings.IS_ANSWER)
        return ask_yes_no(rng, context, template.format(question=asked, answer=name), truth)
    style = rng.random()
    if style < 0.12:
        template = one_of(rng, wordings.STATEMENT_NOT if negated else wordings.STATEMENT)
        return ask_yes_no(rng, context, filled(template, named), truth != negated, TRUE_FALSE)
    if label.description and not negated and style < 0.3:
        return ask_yes_no(rng, context, filled(one_of(rng, wordings.DESCRIBED), named), truth)
    template = one_of(rng, wordings.IS_IT_NOT if negated else wordings.IS_IT)
    return ask_yes_no(rng, context, filled(template, named), truth != negated)


def _question(part: LabelsPart, form: Form, values: Mapping[str, str], rng: np.random.Generator) -> str:
    if _is_plain(part, form) and rng.random() < _GENERIC:
        return one_of(rng, wordings.CHOOSE).format(kind=part.kind, kinds=_kinds(part))
    return fitted(one_of(rng, form.questions), values)


def _is_plain(part: LabelsPart, form: Form) -> bool:
    """Return whether its questions are about the text alone, so that words that fit any label set say as much."""
    return part.generic and not any("{" in question for question in form.questions)


def _kinds(part: LabelsPart) -> str:
    return part.kinds or f"{part.kind}s"


def _drawn_keys(row: LabelRow, part: LabelsPart, rng: np.random.Generator, multiple: bool) -> list[str]:
    """Return the keys of the labels to offer, in the order in which they are offered."""
    keys = list(part.labels)
    if part.closed:
        return shuffled(rng, keys)
    if part.ordered and rng.random() < 0.6:
        return keys if rng.random() < 0.7 else keys[::-1]
    wrong = _clearly_wrong(row, part)
    number = number_of_choices(rng, len(keys))
    right = list(row.right)
    if not multiple:
        right = some_of(rng, right, 1)
    if rng.random() < _LEFT_OUT and len(wrong) > 1:
        right = []
    elif multiple:
        right = some_of(rng, right, max(1, number - 1))
    return shuffled(rng, [*right, *some_of(rng, wrong, max(number - len(right), 1))])


def _clearly_wrong(row: LabelRow, part: LabelsPart) -> list[str]:
    """Return the labels that are not right; of a scale none beside the right one."""
    keys = list(part.labels)
    if part.ordered and len(keys) > 3 and row.right:
        place = keys.index(row.right[0])
        return [key for key in keys if abs(keys.index(key) - place) > 1]
    return [key for key in keys if key not in row.right]


def _named(
    keys: Sequence[str],
    row: LabelRow,
    part: LabelsPart,
    rng: np.random.Generator,
    others: Sequence[str],
    *,
    described: bool,
) -> Named:
    """Write the labels: by name, synonym or description, in one style of writing, no two alike.

    Of two labels that would be written alike, one that is not right is left out.
    """
    by = rng.random()
    write = _style(rng) if not part.closed or rng.random() < 0.3 else str
    written: dict[str, Choice] = {}
    seen: set[str] = set()
    for key in sorted(keys, key=lambda key: key not in row.right):
        label = part.labels[key]
        name, description = readable(key, label.name), ""
        if by < 0.25 and label.synonyms:
            name = one_of(rng, (name, *label.synonyms))
        elif by < 0.42 and described:
            description = label.description
        elif by < 0.48 and label.description:
            name = label.description
        name = write(name)
        if name.casefold() in seen:
            continue
        seen.add(name.casefold())
        written[key] = Choice(name, description)
    choices = [written[key] for key in keys if key in written]
    right = tuple(written[key].label for key in keys if key in written and key in row.right)
    if others and rng.random() < 0.15:
        for name in some_of(rng, others, int(rng.integers(1, 4))):
            if name.casefold() not in seen and len(choices) < 30:
                seen.add(name.casefold())
                choices.insert(int(rng.integers(len(choices) + 1)), Choice(write(name)))
    return Named(tuple(choices), right)


def _style(rng: np.random.Generator) -> Callable[[str], str]:
    style = rng.random()
    if style < 0.7:
        return str
    if style < 0.8:
        return lambda name: name[:1].upper() + name[1:]
    if style < 0.87:
        return str.title
    if style < 0.95:
        return lambda name: name.replace(" ", "_").replace("-", "_") if len(name) < 25 else name
    return str.upper
