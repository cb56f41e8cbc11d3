"""Questions about rows: how they are drawn, worded, and how lists of choices are written into them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.settings import read_yaml

T = TypeVar("T")
Spans = tuple[tuple[int, int], ...]

_NAME = re.compile(r"\{([^{}]+)\}")
_MARKS = (
    ("- ",) * 40,
    ("* ",) * 40,
    tuple(f"{n}. " for n in range(1, 41)),
    (*(f"{letter}) " for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), *("",) * 14),
)

_WORDINGS: Mapping[str, list[str]] = read_yaml(Path(__file__).with_name("wordings.yaml"))

YES_NO = ("yes", "no")
TRUE_FALSE = ("true", "false")
NONE_OF_THESE = ("none of these", "none of the above", "other", "something else", "none")


def ask(
    context: str,
    question: str,
    answers: Iterable[str],
    start: int | None = None,
    choices: Iterable[str | Choice] = (),
    multiple: bool = False,
    evidence: Spans | None = None,
) -> Example:
    """Return a question about a row; its source gives it the task and the id."""
    offered = tuple(Choice(choice) if isinstance(choice, str) else choice for choice in choices)
    answers = tuple(answers)
    return Example("", "", context, question, answers, start, choices=offered, multiple=multiple, evidence=evidence)


def ask_yes_no(
    rng: np.random.Generator,
    context: str,
    question: str,
    says_yes: bool,
    words: Sequence[str] = YES_NO,
    evidence: Spans | None = None,
) -> Example:
    """Return a question that is answered by one of two words: as choices, named in the question, or neither."""
    answer, order = words[0] if says_yes else words[1], list[str]()
    style = rng.random()
    if style < 0.45:
        order = shuffled(rng, words)
        if rng.random() < 0.3:
            order, answer = [word.capitalize() for word in order], answer.capitalize()
    elif style < 0.65 and words == YES_NO:
        question += one_of(rng, (" Yes or no?", " (yes/no)", " Answer yes or no.", " yes or no", " Reply yes or no."))
        answer = answer.capitalize() if "Yes" in question else answer
    return ask(context, question, (answer,), choices=order, evidence=evidence)


def ask_among(
    rng: np.random.Generator, share: float, context: str, question: str, answers: Iterable[str], items: Sequence[str]
) -> Example:
    """Return a question with items to choose from: as choices in a share of the draws, else named in its text."""
    if rng.random() < share or len(items) < 2:
        return ask(context, question, answers, choices=items)
    return ask(context, with_options(rng, question, items), answers)


def wordings(name: str) -> tuple[str, ...]:
    """Return the templates of a name; none where ``wordings.yaml`` has none."""
    return tuple(_WORDINGS.get(name, ()))


def word_sets(name: str) -> list[list[str]]:
    """Return sets of words that take the place of others, which have slashes between them in the file."""
    return [words.split(" / ") for words in _WORDINGS[name]]


def worded(rng: np.random.Generator, name: str, /, **values: str) -> str:
    return one_of(rng, wordings(name)).format(**values)


def one_of(rng: np.random.Generator, items: Sequence[T]) -> T:
    return items[int(rng.integers(len(items)))]


def some_of(rng: np.random.Generator, items: Sequence[T], number: int) -> list[T]:
    """Return so many of several, or all, in random order."""
    order = rng.permutation(len(items))[:number]
    return [items[place] for place in order]


def shuffled(rng: np.random.Generator, items: Sequence[T]) -> list[T]:
    return some_of(rng, items, len(items))


def enumerated(rng: np.random.Generator, items: Sequence[str]) -> str:
    """Return choices as they would be listed within a sentence."""
    *first, last = items
    if not first or any("," in item for item in items):
        return one_of(rng, ("; ", " / ", " | ")).join(items)
    style = rng.random()
    if style < 0.7:
        return f"{', '.join(first)}{'' if style < 0.6 else ','} or {last}"
    return (" or " if style < 0.8 else one_of(rng, (", ", "; ", " / ", ", "))).join(items)


def with_options(rng: np.random.Generator, question: str, items: Sequence[str]) -> str:
    """Return a question with its choices named after it, before it, or in lines below it."""
    if rng.random() < 0.1:
        marks = one_of(rng, _MARKS)
        return "\n".join([question, *(mark + item for mark, item in zip(marks, items, strict=False))])
    template = one_of(rng, wordings("with_options"))
    return template.format(question=question, stem=question.rstrip("?.: "), options=enumerated(rng, items))


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


def article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" else "a"
