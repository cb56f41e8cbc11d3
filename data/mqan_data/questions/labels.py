"""Questions about the labels of a row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.formats.dataset_file import Form, LabelsPart, load_dataset, readable
from mqan_data.formats.rows import LabelRow
from mqan_data.questions import asked as q

_LEFT_OUT = 0.12  # share of questions with choices that lack the right one
_NOTHING = tuple(name for name in q.NONE_OF_THESE if name.startswith("none"))  # where there is nothing else either
_NONE_OFFERED = 0.35  # share of these that offer "none of these" for it
_GENERIC = 0.3  # share of questions in words that fit any label set


def draw(row: LabelRow, part: LabelsPart, rng: np.random.Generator) -> Example:
    """Draw a question about the labels of a row; without answers where the right label is not among the choices."""
    form = q.one_of(rng, part.forms)
    drawing = _Drawing(row, part, form, rng, q.filled(form.text, row.values))
    style = rng.random()
    are_questions = any(label.questions or label.negated for label in part.labels.values())  # then it is yes or no
    if part.free and style < (0.15 if are_questions else 0.25):
        name = [readable(key, part.labels[key].name) for key in row.right[:1]]
        return q.ask(drawing.context, q.fitted(q.one_of(rng, form.questions), row.values), name)
    if style < 0.25 and (row.right or not part.none):
        return drawing.yes_no()
    if style < (0.75 if part.multiple else 0.3) and not part.closed and not part.ordered:
        return drawing.several()
    return drawing.one()


def draw_of_another(row: LabelRow, other: LabelRow, part: LabelsPart, rng: np.random.Generator) -> Example | None:
    """Ask what a row is about of the text of another one, which does not say; None where that cannot be done."""
    form = q.one_of(rng, part.forms)
    text = None if _is_plain(part, form) else q.with_text_of(form.text, row.values, other.values)
    if text is None:
        return None
    question = q.fitted(q.one_of(rng, form.questions), row.values)
    return q.ask(text, question, (), choices=q.shuffled(rng, list(_names(part).values())) if rng.random() < 0.5 else ())


def canonical(row: LabelRow, part: LabelsPart, _rng: object = None) -> Example:
    form, names = part.forms[0], _names(part)
    question, answers = q.fitted(form.questions[0], row.values), [names[key] for key in row.right]
    return q.ask(q.filled(form.text, row.values), question, answers, choices=names.values(), multiple=part.multiple)


def _names(part: LabelsPart) -> dict[str, str]:
    return {key: readable(key, label.name) for key, label in part.labels.items()}


@cache
def _names_of_parts(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels of other sets, which can never be right here."""
    found = list[str]()
    for reference in parts:
        dataset, _, name = reference.partition(".")
        part = load_dataset(dataset).parts.get(name)
        if not isinstance(part, LabelsPart):
            raise ValueError(f"distractors: {reference!r} names no part with labels; write it as dataset.part.")
        found += _names(part).values()
    return tuple(dict.fromkeys(found))


def _is_plain(part: LabelsPart, form: Form) -> bool:
    """Return whether its questions are about the text alone, so that words that fit any label set say as much."""
    return part.generic and not any("{" in question for question in form.questions)


@dataclass(frozen=True, slots=True)
class _Drawing:
    row: LabelRow
    part: LabelsPart
    form: Form
    rng: np.random.Generator
    context: str

    def one(self) -> Example:
        part, form, rng, values = self.part, self.form, self.rng, self.row.values
        choices, right = self._named(self._drawn_keys(multiple=False))
        answers = right[:1]
        lacks = not answers and not part.closed
        if (lacks and rng.random() < _NONE_OFFERED) or (not part.closed and rng.random() < 0.04):
            none = q.one_of(rng, q.NONE_OF_THESE if self.row.right else _NOTHING)
            if none not in {choice.label.casefold() for choice in choices}:
                choices = [*choices, Choice(none)]
                answers = [none] if lacks else answers
        labels = [choice.label for choice in choices]
        if rng.random() < 0.68 or max(map(len, labels), default=0) > 60:
            return q.ask(self.context, self._question(), answers, choices=choices)
        if form.options and rng.random() < 0.5:
            question = q.fitted(q.one_of(rng, form.options), {**values, "options": q.enumerated(rng, labels)})
        elif rng.random() < 1 - _GENERIC or not _is_plain(part, form):
            question = q.with_options(rng, q.fitted(q.one_of(rng, form.questions), values), labels)
        else:
            question = self._worded("choose_from", options="{options}")
            question = q.filled(question, {"options": q.enumerated(rng, labels)})
        return q.ask(self.context, question, answers)

    def several(self) -> Example:
        choices, right = self._named(self._drawn_keys(multiple=True))
        question = self._worded("choose_several") if _is_plain(self.part, self.form) else self._question()
        return q.ask(self.context, question, right, choices=choices, multiple=True)

    def yes_no(self) -> Example:
        row, part, form, rng = self.row, self.part, self.form, self.rng
        truth = bool(row.right) and rng.random() < 0.5
        key = q.one_of(rng, row.right) if truth else q.one_of(rng, self._clearly_wrong() or list(row.right))
        truth = key in row.right
        label = part.labels[key]
        name = q.one_of(rng, (readable(key, label.name), *label.synonyms))
        values = {**row.values, "label": name, "kind": part.kind, "description": label.description}
        negated = rng.random() < 0.2
        says_yes, words = truth != negated, ("yes", "no")
        own = label.negated if negated else label.questions
        of_form = form.negated if negated else form.yes_no
        if own and rng.random() < 0.7:
            question = q.fitted(q.one_of(rng, own), values)
        elif of_form and rng.random() < 1 - _GENERIC:
            question = q.fitted(q.one_of(rng, of_form), values)
        elif not _is_plain(part, form):
            asked = q.fitted(q.one_of(rng, form.questions), row.values)
            question, says_yes = q.worded(rng, "is_answer", question=asked, answer=name), truth
        elif (style := rng.random()) < 0.12:
            question, words = q.worded(rng, "statement_not" if negated else "statement", **values), q.TRUE_FALSE
        elif label.description and not negated and style < 0.3:
            question = q.worded(rng, "described", **values)
        else:
            question = q.worded(rng, "is_it_not" if negated else "is_it", **values)
        return q.ask_yes_no(rng, self.context, question, says_yes, words)

    def _question(self) -> str:
        if _is_plain(self.part, self.form) and self.rng.random() < _GENERIC:
            return self._worded("choose")
        return q.fitted(q.one_of(self.rng, self.form.questions), self.row.values)

    def _worded(self, name: str, **values: str) -> str:
        return q.worded(self.rng, name, kind=self.part.kind, kinds=self.part.kinds or f"{self.part.kind}s", **values)

    def _drawn_keys(self, *, multiple: bool) -> list[str]:
        keys, part, rng = list(self.part.labels), self.part, self.rng
        if part.closed:
            return q.shuffled(rng, keys)
        if part.ordered and rng.random() < 0.6:
            return keys if rng.random() < 0.7 else keys[::-1]
        wrong, right = self._clearly_wrong(), list(self.row.right)
        number = q.number_of_choices(rng, len(keys))
        if not multiple:
            right = q.some_of(rng, right, 1)
        if rng.random() < _LEFT_OUT and len(wrong) > 1:
            right = []
        elif multiple:
            right = q.some_of(rng, right, max(1, number - 1))
        return q.shuffled(rng, [*right, *q.some_of(rng, wrong, max(number - len(right), 1))])

    def _clearly_wrong(self) -> list[str]:
        keys, right = list(self.part.labels), self.row.right
        if self.part.ordered and len(keys) > 3 and right:
            return [key for key in keys if abs(keys.index(key) - keys.index(right[0])) > 1]
        return [key for key in keys if key not in right]

    def _named(self, keys: Sequence[str]) -> tuple[list[Choice], list[str]]:
        """Write the labels: by name, synonym or description, in one style; of two alike a wrong one is left out."""
        rng, others, right = self.rng, _names_of_parts(self.part.distractors), self.row.right
        by = rng.random()
        write = _style(rng) if not self.part.closed or rng.random() < 0.3 else str
        written: dict[str, Choice] = {}
        seen: set[str] = set()
        for key in sorted(keys, key=lambda key: key not in right):
            label = self.part.labels[key]
            name, description = readable(key, label.name), ""
            if by < 0.25 and label.synonyms:
                name = q.one_of(rng, (name, *label.synonyms))
            elif by < 0.42:
                description = label.description
            elif by < 0.48 and label.description:
                name = label.description
            name = write(name)
            if name.casefold() not in seen:
                seen.add(name.casefold())
                written[key] = Choice(name, description)
        choices = [written[key] for key in keys if key in written]
        answers = [written[key].label for key in keys if key in written and key in right]
        if others and rng.random() < 0.15:
            for name in q.some_of(rng, others, int(rng.integers(1, 4))):
                if name.casefold() not in seen and len(choices) < 30:
                    seen.add(name.casefold())
                    choices.insert(int(rng.integers(len(choices) + 1)), Choice(write(name)))
        return choices, answers


def _style(rng: np.random.Generator) -> Callable[[str], str]:
    styles: tuple[tuple[float, Callable[[str], str]], ...] = (
        (0.7, str),
        (0.8, lambda name: name[:1].upper() + name[1:]),
        (0.87, str.title),
        (0.95, lambda name: name.replace(" ", "_").replace("-", "_") if len(name) < 25 else name),
    )
    style = rng.random()
    return next((write for most, write in styles if style < most), str.upper)
