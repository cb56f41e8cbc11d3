"""The rows of a dataset asked otherwise; each way takes an example, what draws another one, and the generator.

``NAME_adversarial``, after AddSent (Jia and Liang 2017): names and numbers of the question are changed, it becomes a
statement with a false answer of the same type, which is put between two others of the text, or at its end.

``NAME_changed``, after SQuAD 2.0 (Rajpurkar et al. 2018): half of the questions are changed, also in words of the
opposite sense, and their answer is that there is none. A reader must compare the facts and not only the words.

``NAME_facts``: a question and its answer become a statement that a text affirms, denies (where the answer is another
value of the same kind that stands in it) or leaves open. The sentence with the right answer is the evidence.

``NAME_surrounded``: texts between other texts, as a reader meets them in the windows of a long document. The windows
without the answer have to say so (shared normalisation, Clark and Gardner 2018).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.rows import FactRow, Verdict
from mqan_data.questions import facts
from mqan_data.questions.answered import statement_of
from mqan_data.questions.asked import one_of
from mqan_data.questions.clauses import negated
from mqan_data.questions.words import groups

_SENTENCE_GAP: Final = re.compile(r"(?<=[a-z0-9)\"'][.!?]) +(?=[A-Z\"'(])")
_NAME: Final = re.compile(  # not at the beginning of a sentence
    r"(?<![\w.])(?<![.!?] )(?<!^)[A-Z][\w'’-]*\w(?: (?:(?:of|the|de|von|van) )?[A-Z][\w'’-]*\w)*"
)
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:,\d{3})*")
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
_WORDS_ASKED = frozenset({"Who", "What", "When", "Where", "Which", "Why", "How", "In", "On", "At", "The", "I"})
_OPPOSITES = {one: other for pair in groups("opposites") for one, other in (pair, pair[::-1])}
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b")
_IN_BRACKETS = re.compile(r"([^.,;:!?()\n]*)\(([^()\n]*)\)")  # with what stands before them
_YEARS_OFF = (-31, -17, -8, -4, -2, 3, 5, 9, 14, 26)
_TRIES = 4  # other rows that are asked for names and answers
_CHANGED, _OWN_NAMES = 0.6, 0.25  # share of the rows that are tried; of those, share with names of the same text
_ROWS_TRIED = 12  # rows that are asked for a statement
_UNKNOWN, _ELSEWHERE = 0.18, 0.3  # share of the facts that the text leaves open; of those, share of another text
_TRUE, _NEGATED = 0.38, 0.2  # share of the others that is true, as far as there is another value; share with "not"
_SURROUNDED, _MISSING = 0.8, 0.2  # share of the rows, so that a short text is still met; share without their own text
_MOST_OTHERS = 3
_MOST = 1_600  # characters of a context: about a window
_GAPS = (" ", "\n", "\n\n")


class Source(Protocol):
    """Rows of one dataset, about each of which questions are drawn anew every time."""

    @property
    def name(self) -> str:
        """Name of the dataset; unique within a mixture."""

    def __len__(self) -> int: ...

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        """Return a question about a row; the same for the same row and state of ``rng``."""


Another = Callable[[], Example]


def _changed(example: Example, another: Another, rng: np.random.Generator) -> Example:
    if not example.answers or example.choices or rng.random() >= _CHANGED:
        return example
    names_from = example.context if rng.random() < _OWN_NAMES else another().context
    return without_answer(example, names_from, rng) or example


def _as_facts(example: Example, another: Another, rng: np.random.Generator) -> Example:
    first = example
    for _ in range(_ROWS_TRIED):
        other = another()
        asked = as_fact(example, other.context, rng)
        if asked is not None:
            return asked
        example = other  # a row that makes no statement gives way to another
    return first


def _between_others(example: Example, another: Another, rng: np.random.Generator) -> Example:
    if example.choices or rng.random() >= _SURROUNDED:
        return example
    drawn = [another().context for _ in range(int(rng.integers(1, _MOST_OTHERS + 1)))]
    others = list(dict.fromkeys(other for other in drawn if other != example.context))
    is_missing = bool(example.answers) and rng.random() < _MISSING
    return surrounded(example, others, is_missing=is_missing, rng=rng)


DERIVED: Final[Mapping[str, Callable[[Example, Another, np.random.Generator], Example]]] = {
    "adversarial": lambda e, another, rng: with_distractor(e, [another().context for _ in range(_TRIES)], rng) or e,
    "changed": _changed,
    "facts": _as_facts,
    "surrounded": _between_others,
}


class DerivedSource:
    """The rows of another source, of questions answered by quotations, each of them changed when it is drawn."""

    def __init__(self, source: Source, way: str) -> None:
        self._source, self._changed, self.name = source, DERIVED[way], f"{source.name}_{way}"

    def __len__(self) -> int:
        return len(self._source)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        def another() -> Example:
            return self._source.draw(int(rng.integers(len(self._source))), rng)

        return replace(self._changed(self._source.draw(index, rng), another, rng), task=self.name)


def with_distractor(example: Example, texts: Sequence[str], rng: np.random.Generator) -> Example | None:
    """Return an example with a misleading sentence in its text, of names and values of other texts; None for none."""
    if not example.answers or example.answer_start is None or example.choices:
        return None
    question = changed_question(example.question, texts, rng)
    false = another_value(example, " ".join(texts), rng)
    sentence = None if question is None or false is None else statement_of(question, false)
    if sentence is None or any(_holds(sentence, answer) for answer in example.answers):
        return None
    start, end = example.answer_start, example.answer_start + len(example.answers[0])
    gaps = [gap.start() for gap in _SENTENCE_GAP.finditer(example.context) if not start < gap.start() < end]
    place = one_of(rng, gaps) if gaps and rng.random() < 0.6 else len(example.context)
    added = f" {sentence}"
    if rng.random() < 0.15:
        place, added = 0, f"{sentence} "
    context = example.context[:place] + added + example.context[place:]
    return replace(example, context=context, answer_start=start + len(added) if place <= start else start)


def changed_question(question: str, texts: Sequence[str], rng: np.random.Generator, *, known: str = "") -> str | None:
    """Return a question that asks something else: with other names, numbers and words of the opposite sense.

    Names come from ``texts``, those that the question has not and that share no word with the names of ``known``; None
    where there is nothing to change.
    """
    taken = _words_of_names(known)
    found = (name for text in texts for name in _NAME.findall(text))
    names: list[str] = [name for name in found if name not in question and taken.isdisjoint(_words_of_names(name))]
    changed = _NUMBER.sub(lambda match: _other_number(match[0], rng), question)
    changed = _OPPOSITE.sub(lambda match: _OPPOSITES[match[0]], changed)

    def other_name(match: re.Match[str]) -> str:
        if not names or match[0] in _WORDS_ASKED:
            return match[0]
        alike = [name for name in names if name.count(" ") == match[0].count(" ")]
        return one_of(rng, alike or names)

    changed = _NAME.sub(other_name, changed)
    return None if changed == question else changed


def _words_of_names(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text) if word[0].isupper()} - _WORDS_ASKED


def another_value(example: Example, text: str, rng: np.random.Generator) -> str | None:
    """Return the answer with another value of its kind in a text in place of its own; None for none."""
    right = example.answers[0]
    for kind in _KINDS:
        own = kind.search(right)
        if own is not None:
            taken = {own[0], *kind.findall(example.question), *(v for a in example.answers for v in kind.findall(a))}
            text = text if kind in (_DATE, _YEAR) else _DATE.sub(" ", text)
            values = [value for value in dict.fromkeys(kind.findall(text)) if value not in taken]
            return right[: own.start()] + one_of(rng, values) + right[own.end() :] if values else None
    name = right.removeprefix("the ").removeprefix("The ")
    if _NAME.findall(f"a {name}") != [name]:
        return None
    known = _words_of_names(" ".join((*example.answers, example.question)))
    names = [
        found[0]
        for found in _NAME.finditer(text)
        if known.isdisjoint(_words_of_names(found[0]))
        and not (text == example.context and _is_beside(example, found.start(), found.end()))
    ]
    alike = [other for other in dict.fromkeys(names) if abs(other.count(" ") - name.count(" ")) < 2]
    return one_of(rng, alike) if alike else None


def _is_beside(example: Example, start: int, end: int) -> bool:
    first = example.answer_start or 0
    last = first + len(example.answers[0])
    between = example.context[last:start] if start >= last else example.context[end:first]
    return _BESIDE.match(between) is not None


def _other_number(text: str, rng: np.random.Generator) -> str:
    number: int = int(text.replace(",", ""))
    width = len(text) if text.startswith("0") else 0
    if _YEAR.fullmatch(text):
        return str(number + int(one_of(rng, _YEARS_OFF)))
    if number <= 28:  # perhaps the day of a month
        return f"{(number + int(rng.integers(1, 27))) % 28 or 28:0{width}d}"
    step = max(1, number // 10)
    other = number + int(rng.integers(1, 6)) * step * (1 if number < 6 * step or rng.random() < 0.5 else -1)
    return f"{other:,}" if "," in text else f"{other:0{width}d}"


def _holds(text: str, part: str) -> bool:
    return bool(part) and re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text, re.IGNORECASE) is not None


def without_answer(example: Example, names_from: str, rng: np.random.Generator) -> Example | None:
    """Return an example whose question is changed so that its text does not answer it; None where nothing can be.

    Names of the text ``names_from`` take the place of the question's. Those that are known to fit the answer are not
    used: of the answer, of a sentence that holds it, and other names for what the question names, in brackets beside.
    """
    sentences = _SENTENCE_GAP.split(example.context)
    holding = [part for part in sentences if any(answer in part for answer in example.answers)]
    asked = _words_of_names(example.question)
    beside = (f"{before} {within}" for before, within in _IN_BRACKETS.findall(example.context))
    alike = [names for names in beside if not asked.isdisjoint(_words_of_names(names))]
    known = " ".join((*example.answers, *holding, example.question, *alike))
    question = changed_question(example.question, [names_from], rng, known=known)
    return None if question is None else replace(example, question=question, answers=(), answer_start=None)


def as_fact(example: Example, other: str, rng: np.random.Generator) -> Example | None:
    """Return a question of fact about the text of an example or an ``other`` text; None where no rule makes one."""
    if not example.answers or example.answer_start is None or example.choices:
        return None
    text, question, evidence = example.context, example.question, None
    value: str | None = example.answers[0]
    verdict: Verdict = "unknown"
    if rng.random() >= _UNKNOWN:
        verdict, evidence = "yes", (_sentence_around(text, example.answer_start),)
        if rng.random() >= _TRUE:
            verdict, value = "no", another_value(example, text, rng)
    elif rng.random() < _ELSEWHERE and other != text:
        text = other
    else:
        changed = without_answer(example, text if rng.random() < 0.5 else other, rng)
        if changed is None or _small_words(changed.question) != _small_words(question):
            return None
        question = changed.question
    statement = None if value is None else statement_of(question, value)
    if statement is None:
        return None
    if verdict != "unknown" and rng.random() < _NEGATED and (denial := negated(statement)) is not None:
        statement, verdict = denial, "no" if verdict == "yes" else "yes"
    return replace(facts.draw(FactRow(text, statement, verdict, evidence), None, rng), id=example.id)


def _small_words(question: str) -> list[str]:
    return [word for word in question.split() if word.islower()]


def _sentence_around(text: str, place: int) -> tuple[int, int]:
    gaps = list(_SENTENCE_GAP.finditer(text))
    starts = [0, *(gap.end() for gap in gaps if gap.end() <= place)]
    ends = [*(gap.start() for gap in gaps if gap.end() > place), len(text)]
    return starts[-1], ends[0]


def surrounded(example: Example, others: list[str], *, is_missing: bool, rng: np.random.Generator) -> Example:
    """Return an example with other texts around its own, as many as have room, or without it where it ``is_missing``.

    Texts that hold an answer by chance are left out then; without any other text the example stays as it is.
    """
    if is_missing:
        others = [other for other in others if not any(a.casefold() in other.casefold() for a in example.answers)]
    gap = one_of(rng, _GAPS)
    room = _MOST - (0 if is_missing else len(example.context))
    kept: list[str] = []
    for other in others:
        if len(other) + len(gap) <= room:
            kept.append(other)
            room -= len(other) + len(gap)
    if not kept:
        return example
    if is_missing:
        return replace(example, context=gap.join(kept), answers=(), answer_start=None)
    place = int(rng.integers(len(kept) + 1))
    before = "".join(other + gap for other in kept[:place])
    behind = "".join(gap + other for other in kept[place:])
    start = None if example.answer_start is None else example.answer_start + len(before)
    return replace(example, context=before + example.context + behind, answer_start=start)
