"""A question about a row, and how lists of choices are written into questions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mqan_core.example import Choice, Example

T = TypeVar("T")

_NAME = re.compile(r"\{([^{}]+)\}")

YES_NO = ("yes", "no")
TRUE_FALSE = ("true", "false")
NONE_OF_THESE = ("none of these", "none of the above", "other", "something else", "none")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about a row, and the answer; as in ``Example``."""

    context: str
    question: str
    answers: tuple[str, ...]
    answer_start: int | None = None
    choices: tuple[Choice, ...] = ()
    multiple: bool = False
    evidence: tuple[tuple[int, int], ...] | None = None

    def example(self, task: str, name: str) -> Example:
        """Return it as an example with this id."""
        return Example(
            task,
            name,
            self.context,
            self.question,
            self.answers,
            self.answer_start,
            choices=self.choices,
            multiple=self.multiple,
            evidence=self.evidence,
        )


def one_of(rng: np.random.Generator, items: Sequence[T]) -> T:
    """Return one of several, all as likely."""
    return items[int(rng.integers(len(items)))]


def some_of(rng: np.random.Generator, items: Sequence[T], number: int) -> list[T]:
    """Return so many of several, or all, in random order."""
    order = rng.permutation(len(items))[:number]
    return [items[place] for place in order]


def shuffled(rng: np.random.Generator, items: Sequence[T]) -> list[T]:
    """Return all in random order."""
    return some_of(rng, items, len(items))


def enumerated(rng: np.random.Generator, items: Sequence[str]) -> str:
    """Return choices as they would be listed within a sentence."""
    *first, last = items
    if not first or any("," in item for item in items):
        return one_of(rng, ("; ", " / ", " | ")).join(items)
    style = rng.random()
    if style < 0.6:
        return f"{', '.join(first)} or {last}"
    if style < 0.7:
        return f"{', '.join(first)}, or {last}"
    if style < 0.8:
        return " or ".join(items)
    return one_of(rng, (", ", "; ", " / ", ", ")).join(items)


_BEHIND_A_QUESTION = (
    "{question} {options}?",
    "{question} {options}?",
    "{stem}: {options}?",
    "{stem} - {options}?",
    "{question} Choose from: {options}.",
    "{question} Choose from {options}.",
    "{question} Options: {options}",
    "{question} Choices: {options}.",
    "{question} ({options})",
    "{question} Answer with one of: {options}.",
    "{question} Pick one: {options}.",
    "{question} Possible answers: {options}.",
    "{question} Your choices are {options}.",
    "Choose from: {options}. {question}",
    "Options: {options}. {question}",
    "{options}? {question}",
)


def with_options(rng: np.random.Generator, question: str, items: Sequence[str]) -> str:
    """Return a question with its choices named behind it, before it, or in lines below it."""
    if rng.random() < 0.1:
        marks = one_of(rng, (("- ",) * 40, ("* ",) * 40, tuple(f"{n}. " for n in range(1, 41)), tuple(_letters())))
        return "\n".join([question, *(mark + item for mark, item in zip(marks, items, strict=False))])
    template = one_of(rng, _BEHIND_A_QUESTION)
    stem = question.rstrip("?.: ")
    return template.format(question=question, stem=stem, options=enumerated(rng, items))


def _letters() -> list[str]:
    return [f"{chr(ord('A') + place)}) " for place in range(26)] + [""] * 14


def ask_yes_no(
    rng: np.random.Generator, context: str, question: str, says_yes: bool, words: Sequence[str] = YES_NO
) -> Asked:
    """Return a question that is answered by one of two words: as choices, named in the question, or neither."""
    answer = words[0] if says_yes else words[1]
    style = rng.random()
    if style < 0.45:
        order = shuffled(rng, words)
        if rng.random() < 0.3:
            order, answer = [word.capitalize() for word in order], answer.capitalize()
        return Asked(context, question, (answer,), choices=tuple(Choice(word) for word in order))
    if style < 0.65 and words == YES_NO:
        question += one_of(rng, (" Yes or no?", " (yes/no)", " Answer yes or no.", " yes or no", " Reply yes or no."))
        answer = answer.capitalize() if "Yes" in question else answer
    return Asked(context, question, (answer,))


def number_of_choices(rng: np.random.Generator, most: int) -> int:
    """Return how many choices to offer: 2 to 30, small numbers more often, at most ``most``."""
    largest = min(30, most)
    if largest <= 2:
        return largest
    return round(float(np.exp(rng.uniform(np.log(2), np.log(largest + 0.49)))))


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with each ``{name}`` replaced by its value; braces in values stay as they are."""
    return _NAME.sub(lambda match: values[match[1]], template)


def with_text_of(template: str, values: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """Return the text of another row; None where the two have the same text."""
    text = filled(template, other)
    return None if text == filled(template, values) else text


def fitted(template: str, values: Mapping[str, str]) -> str:
    """Return the question that a template makes; a question mark is never doubled."""
    return filled(template, values).replace("??", "?").strip()
