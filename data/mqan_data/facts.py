"""Questions of fact about paragraphs that were written for questions answered by quotations.

A question and its answer become a statement; the statement, or one with another value of the same kind that stands in
the paragraph, becomes a question that is answered by yes or no. Some are asked of a paragraph that does not say. The
sentence with the right answer is the evidence.
"""

import re
from dataclasses import replace
from typing import Final

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.adversarial import SENTENCE_GAP, without_answer, words_of_names
from mqan_data.questions import words as w
from mqan_data.questions.answered import statement_of
from mqan_data.questions.asked import TRUE_FALSE, YES_NO, one_of, shuffled
from mqan_data.questions.clauses import negated, question_of
from mqan_data.source import DerivedSource

_TRIES = 12  # rows that are asked for a statement
_UNKNOWN = 0.18  # share of the questions that the text does not answer
_ELSEWHERE = 0.3  # share of those that are asked of the text of another row
_NEGATED = 0.2  # share of the others that are asked with "not"
_TRUE = 0.38  # share that is true, of those that are tried: for some there is no other value
_OWN_NAMES = 0.5  # share of the changed questions that take names of the same text
_IS_TRUE = (
    "Is it true that {statement}?",
    "Is it right that {statement}?",
    "Does the text say that {statement}?",
    "According to the text, is it true that {statement}?",
    "Can one say that {statement}?",
)
_JUDGED = (
    "True or false: {sentence}",
    "{sentence} True or false?",
    "{sentence} Is that right?",
    "Is this true? {sentence}",
)
_IS_FALSE = ("Is it wrong that {statement}?", "Is it false that {statement}?", "Is it untrue that {statement}?")
_NAME: Final = re.compile(r"(?<![\w.])[A-Z][\w'’-]*\w(?: (?:(?:of|the|de|von|van) )?[A-Z][\w'’-]*\w)*")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(rf"\b(?:\d{{1,2}} (?:{_MONTHS})|(?:{_MONTHS}) \d{{1,2}}(?!\d))(?:,? \d{{4}})?")
_YEAR = re.compile(r"(?<![\w.,$€£])(?:1\d|20)\d\d(?![\w%]|[.,]\d)")
_KINDS: Final = (  # of values that take the place of each other
    _DATE,
    re.compile(rf"\b(?:{_MONTHS}) \d{{4}}\b"),
    _YEAR,
    re.compile(r"[$€£]\d[\d.,]*\d(?: (?:million|billion))?|[$€£]\d"),
    re.compile(r"(?<![\w.,$€£])\d[\d.,]*(?:%| percent| per cent)"),
    re.compile(r"(?<![\w.,$€£:])(?:\d{1,3}(?:,\d{3})+|\d+\.\d+|\d{1,3})(?![\w%:]|[.,]\d| percent| per cent)"),
    re.compile(r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty)\b"),
)
_BESIDE = re.compile(r"^(?:,| and| or| &|/| \(|\)|,? also)*\s*$")
_NO_NAMES = frozenset(
    {"The", "This", "These", "That", "He", "She", "It", "They", "In", "On", "At", "A", "An", "His", "Her"}
)


class FactsSource(DerivedSource):
    """The rows of a source as questions of fact; a row that makes no statement gives way to another."""

    suffix = "_facts"

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        example = first = self._source.draw(index, rng)
        for _ in range(_TRIES):
            other = self._source.draw(int(rng.integers(len(self))), rng)
            asked = as_fact(example, other.context, rng)
            if asked is not None:
                return replace(asked, task=self.name)
            example = other
        return replace(first, task=self.name)


def as_fact(example: Example, other: str, rng: np.random.Generator) -> Example | None:
    """Return a question of fact about the text of an example or an ``other`` text; None where no rule makes one."""
    if not example.answers or example.answer_start is None or example.choices:
        return None
    right = example.answers[0]
    if rng.random() < _UNKNOWN:
        if rng.random() < _ELSEWHERE and other != example.context:
            statement = statement_of(example.question, right)
            unknown = replace(example, context=other)
        else:
            changed = without_answer(example, example.context if rng.random() < _OWN_NAMES else other, rng)
            if changed is None or not _asks_of_others(example.question, changed.question):
                return None
            statement = statement_of(changed.question, right)
            unknown = changed
        return None if statement is None else _asked(unknown, statement, right, None, rng)
    holds = rng.random() < _TRUE
    value = right if holds else another_value(example, rng)
    statement = None if value is None else statement_of(example.question, value)
    if statement is None or value is None:
        return None
    asked = _asked(example, statement, value, holds, rng)
    return None if asked is None else replace(asked, evidence=(sentence_around(example.context, example.answer_start),))


def sentence_around(text: str, place: int) -> tuple[int, int]:
    """Return where the sentence begins and ends that holds a place of a text."""
    start, end = 0, len(text)
    for gap in SENTENCE_GAP.finditer(text):
        if gap.end() <= place:
            start = gap.end()
        else:
            end = gap.start()
            break
    return start, end


def another_value(example: Example, rng: np.random.Generator) -> str | None:
    """Return the answer with another value of its kind that stands in the text in place of its own; None for none."""
    right = example.answers[0]
    for kind in _KINDS:
        own = kind.search(right)
        if own is not None:
            taken = {own[0], *kind.findall(example.question), *(v for a in example.answers for v in kind.findall(a))}
            text = example.context if kind in (_DATE, _YEAR) else _DATE.sub(" ", example.context)
            values = [value for value in dict.fromkeys(kind.findall(text)) if value not in taken]
            return right[: own.start()] + one_of(rng, values) + right[own.end() :] if values else None
    own = _NAME.fullmatch(right.removeprefix("the ").removeprefix("The "))
    if own is None:
        return None
    known = words_of_names(" ".join((*example.answers, example.question)))
    names = [
        found[0]
        for found in _NAME.finditer(example.context)
        if known.isdisjoint(words_of_names(found[0]))
        and found[0].split()[0] not in _NO_NAMES
        and w.lowered([found[0], "x"]) == found[0]
        and not _is_beside(example, found.start(), found.end())
    ]
    alike = [name for name in dict.fromkeys(names) if abs(name.count(" ") - own[0].count(" ")) < 2]
    return one_of(rng, alike) if alike else None


def _is_beside(example: Example, start: int, end: int) -> bool:
    first = example.answer_start or 0
    last = first + len(example.answers[0])
    between = example.context[last:start] if start >= last else example.context[end:first]
    return _BESIDE.match(between) is not None


def _asks_of_others(question: str, changed: str) -> bool:
    return [word for word in question.split() if word.islower()] == [word for word in changed.split() if word.islower()]


def _asked(
    example: Example, statement: str, value: str, holds: bool | None, rng: np.random.Generator
) -> Example | None:
    """Return an example that asks whether a statement holds; None for "holds" is that the text does not say."""
    if value[:1].islower() and statement.startswith(value[:1].upper() + value[1:]):
        within = statement[:1].lower() + statement[1:]
    else:
        within = " ".join([w.lowered(statement.split()), *statement.split()[1:]])
    denial = negated(statement) if rng.random() < _NEGATED else None
    words, flipped = YES_NO, denial is not None
    style = rng.random()
    if denial is not None and style < 0.5:
        denied = " ".join([w.lowered(denial.split()), *denial.split()[1:]]).rstrip(".")
        question = one_of(rng, _IS_TRUE[:2]).format(statement=denied)
    elif denial is not None and style < 0.7:
        question = one_of(rng, _JUDGED).format(sentence=denial)
        words = TRUE_FALSE if "rue or" in question else YES_NO
    elif denial is not None:
        question = one_of(rng, _IS_FALSE).format(statement=within.rstrip("."))
    elif style < 0.12:
        question = one_of(rng, _IS_TRUE).format(statement=within.rstrip("."))
    elif style < 0.22:
        question = one_of(rng, _JUDGED).format(sentence=statement)
        words = TRUE_FALSE if "rue or" in question else YES_NO
    else:
        made = question_of(statement)
        if made is None:
            return None
        if value[:1].islower():
            made = re.sub(rf"^(\w+ ){re.escape(value[:1].upper() + value[1:])}(?!\w)", rf"\g<1>{value}", made)
        question = made
    answers: tuple[str, ...] = () if holds is None else (words[0] if holds != flipped else words[1],)
    choices = shuffled(rng, words) if rng.random() < 0.4 else list(words)
    if rng.random() < 0.25:
        choices, answers = [word.capitalize() for word in choices], tuple(word.capitalize() for word in answers)
    return replace(
        example,
        question=question,
        answers=answers,
        answer_start=None,
        choices=tuple(Choice(word) for word in choices),
    )
