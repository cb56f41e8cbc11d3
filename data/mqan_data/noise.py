"""Noise as texts of daily life have it; what an example says stays right.

Every kind of noise is a list of edits of a text. Where the answer is a quotation, its place moves with the edits and
the answer becomes what then stands there; so does each value of an answer that is a list. Labels, choices and answers
that are no quotation stay as they are, and so do their words, wherever they stand.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mqan_core.example import Example
from mqan_data.questions.asked import TRUE_FALSE, YES_NO, one_of

_WORD = re.compile(r"[^\W\d_]+")
_SPACE = re.compile(r"(?<=\S) (?=\S)")
_LINE_START = re.compile(r"^(?=\S)", re.MULTILINE)
_SIGN = re.compile(r"(?<=\w)[.,;:!?](?=\s|$)|(?<=[a-z])['’](?=[a-z])")
_FUNCTION_WORD = re.compile(
    r"\b(?:what|which|when|where|whose|does|this|that|there|from|with|about|list|find|extract|the|was|are|who|how|many)\b",
    re.IGNORECASE,
)
_NEIGHBOURS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "svxfrdhgoklknmpowtayibecux")  # on the keyboard
_WORDS = frozenset((*YES_NO, *TRUE_FALSE))
_INVISIBLE = ("\u200b", "\u00ad", "\u200d", "\u2060", "\ufeff")
_LIST_COMMA = ", "  # between the values of an answer that is a list
_SPELLING_MATTERS = frozenset({"cola", "wikisql"})  # asked about, or needed to tell columns and their names
_LETTERS_MATTER = frozenset({"instruction_induction"})  # answers are letters and forms of the words of the text


class Edit(NamedTuple):
    """What replaces ``text[start:end]``; an insertion where both are the same."""

    start: int
    end: int
    new: str


@dataclass(slots=True)
class _Text:
    """A text, and the spans in it that have to be found again."""

    value: str
    spans: list[tuple[int, int]]
    kept: frozenset[str]  # words, in lower case, whose letters stay
    passages: list[tuple[int, int]] = field(default_factory=list)  # they are followed, but their words may change

    def edit(self, edits: Sequence[Edit], *, within: bool) -> None:
        """Apply edits that do not overlap; those across the edge of a span are left out, those within at will."""
        kept: list[Edit] = []
        parts, place = [], 0
        for edit in sorted(edit for edit in edits if self.allows(edit, within)):
            if not kept or edit.start >= place:
                kept.append(edit)
                parts += [self.value[place : edit.start], edit.new]
                place = edit.end
        self.value = "".join([*parts, self.value[place:]])
        self.spans, moved = (
            [(_moved(start, kept, after=True), _moved(end, kept, after=False)) for start, end in some]
            for some in (self.spans, self.passages)
        )
        self.passages = [(min(start, end), end) for start, end in moved]

    def allows(self, edit: Edit, within: bool) -> bool:
        return all(
            edit.end <= start or edit.start >= end or (within and start < edit.start and edit.end < end)
            for start, end in self.spans
        )

    def words(self, shortest: int) -> list[re.Match[str]]:
        found = (word for word in _WORD.finditer(self.value) if len(word[0]) >= shortest)
        return [word for word in found if word[0].lower() not in self.kept]


def _moved(place: int, edits: Sequence[Edit], *, after: bool) -> int:
    """Return where a place is after edits; ``after`` says whether it is behind what is inserted right there."""
    shift = 0
    for start, end, new in edits:
        if end < place or (end == place and (after or start < end)):
            shift += len(new) - (end - start)
    return place + shift


def add_noise(example: Example, rng: np.random.Generator) -> Example:
    """Return an example with one to three kinds of noise in its text, its question, or both; its answer stays right."""
    where = rng.random()
    question = _noisy_question(example, rng) if where > 0.5 else example.question
    if where > 0.75 or example.task in _LETTERS_MATTER:
        return replace(example, question=question)
    quoted = _quotations(example)
    listed = [] if 0 in quoted else _listed(example)
    kept = frozenset() if example.choices or example.answer_start is not None else _words_of(example.answers)
    text = _Text(example.context, [*quoted.values(), *listed], kept, list(example.evidence or ()))
    kinds = list(_KINDS if example.task not in _SPELLING_MATTERS else _HARMLESS)
    for place in rng.permutation(len(kinds))[: int(rng.choice((1, 1, 2, 3)))]:
        kinds[place](text, rng)
    answers = list(example.answers)
    start = example.answer_start
    for number, (first, last) in zip(quoted, text.spans[: len(quoted)], strict=True):
        answers[number] = text.value[first:last]
        start = first if number == 0 and start is not None else start
    if listed:
        answers[0] = _LIST_COMMA.join(text.value[first:last] for first, last in text.spans[len(quoted) :])
    evidence = example.evidence and tuple(text.passages)
    return replace(
        example, context=text.value, question=question, answers=tuple(answers), answer_start=start, evidence=evidence
    )


def _listed(example: Example) -> list[tuple[int, int]]:
    """Return where each value of an answer that is a list stands; nothing for any other answer."""
    if example.choices or not example.answers:
        return []
    answer = example.answers[0]
    values = answer.split(_LIST_COMMA)
    if len(values) < 2 or answer.lower() in example.question.lower():
        return []
    starts = [_first(value, example.context) for value in values]
    return [] if -1 in starts else [(s, s + len(value)) for s, value in zip(starts, values, strict=True)]


def _quotations(example: Example) -> dict[int, tuple[int, int]]:
    """Return where answers that are quotations of the text stand, by number: nearest to where the first is known to."""
    context, known = example.context, example.answer_start
    is_named = any(answer.lower() in example.question.lower() for answer in example.answers)
    if example.choices or (known is None and is_named):  # one of the choices that the question names
        return {}
    spans = {}
    for number, answer in enumerate(example.answers):
        if known is None:
            found = None if answer.lower() in _WORDS else _alone(answer).search(context)
            starts = [found.start()] if found else []
        elif number == 0:
            starts = [known] if answer and answer in context else []
        else:
            places = context.rfind(answer, 0, known + len(answer)), context.find(answer, known)
            near = sorted((abs(place - known), place) for place in places if answer and place >= 0)
            starts = [place for _, place in near]
        if starts:
            spans[number] = (starts[0], starts[0] + len(answer))
    return spans


def _alone(answer: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")


def _first(answer: str, text: str) -> int:
    found = _alone(answer).search(text)
    return found.start() if found else text.find(answer)


def _words_of(answers: Sequence[str]) -> frozenset[str]:
    return frozenset(word.lower() for answer in answers for word in _WORD.findall(answer))


def _noisy_question(example: Example, rng: np.random.Generator) -> str:
    kept = _words_of(example.answers)
    question = _Text(example.question, [], kept)
    style = rng.random()
    if style < 0.55:
        in_question = any(answer.lower() in example.question.lower() for answer in example.answers)
        pattern = _FUNCTION_WORD if in_question or example.choices else _WORD
        words = [word for word in pattern.finditer(question.value) if len(word[0]) > 2 and word[0].lower() not in kept]
        chosen = rng.permutation(len(words))[: int(rng.integers(1, 4))]
        question.edit([_typo(words[place], rng) for place in chosen], within=True)
    if style > 0.4:
        change: Callable[[str], str] = one_of(rng, (str.upper, str.lower, str.lower, str.title))
        question.value = change(question.value)
    if style > 0.7:
        question.value = question.value.rstrip("?.: ").replace("'", "") or question.value
    if rng.random() < 0.1:
        question.value = one_of(rng, (f" {question.value} ", question.value.replace(" ", "  "), question.value + "??"))
    return question.value


def _typo(word: re.Match[str], rng: np.random.Generator) -> Edit:
    place = int(rng.integers(1, len(word[0]) - 1))
    letter, following = word[0][place], word[0][place + 1]
    mistyped = letter.translate(_NEIGHBOURS)
    new = one_of(rng, (following + letter, following, letter * 2 + following, mistyped + following))
    return Edit(word.start() + place, word.start() + place + 2, new)


def _cased(text: _Text, rng: np.random.Generator) -> None:
    change = str.upper if rng.random() < 0.5 else str.lower
    changed = (change(character) for character in text.value)
    text.value = "".join(n if len(n) == 1 else o for n, o in zip(changed, text.value, strict=True))


def _typos(text: _Text, rng: np.random.Generator) -> None:
    words = text.words(4)
    number = max(1, round(len(words) * rng.uniform(0.02, 0.12)))
    text.edit([_typo(words[place], rng) for place in rng.permutation(len(words))[:number]], within=True)


def _wrapped(text: _Text, rng: np.random.Generator) -> None:
    """Break lines as PDFs do, now and then within a word."""
    width, hyphenated = int(rng.integers(30, 90)), rng.random() < 0.6
    edits, line, last = [], 0, -1
    breakable = {word.start(): word for word in text.words(7)} if hyphenated else {}
    for space in _SPACE.finditer(text.value):
        place = space.start()
        line = max(line, text.value.rfind("\n", line, place) + 1)
        if place - line > width and last > line:
            word = breakable.get(last + 1)
            if word is not None and rng.random() < 0.5:
                middle = word.start() + len(word[0]) // 2
                edits.append(Edit(middle, middle, "-\n"))
                line = middle
            else:
                edits.append(Edit(last, last + 1, "\n"))
                line = last + 1
        last = place
    text.edit([edit for edit in edits if edit.new == "\n" or text.allows(edit, within=False)], within=True)


def _html(text: _Text, rng: np.random.Generator) -> None:
    tag = one_of(rng, ("b", "i", "em", "strong", "span", 'span class="hl"', "u"))
    edits = [Edit(m.start(), m.end(), f"<{tag}>{m[0]}</{tag.split()[0]}>") for m in _some(text.words(4), rng, 4)]
    edits += [Edit(m.start(), m.end(), "&nbsp;") for m in _some(list(_SPACE.finditer(text.value)), rng, 5)]
    edits += [
        Edit(m.start(), m.end(), one_of(rng, ("<br>\n", "<br/>", "</p>\n<p>"))) for m in re.finditer(r"\n+", text.value)
    ]
    edits += [Edit(m.start(), m.end(), "&amp;") for m in re.finditer("&", text.value)]
    if rng.random() < 0.7:
        outer = one_of(rng, ("p", "div", "body", "td"))
        edits += [Edit(0, 0, f"<{outer}>"), Edit(len(text.value), len(text.value), f"</{outer}>")]
    text.edit(edits, within=False)


def _markdown(text: _Text, rng: np.random.Generator) -> None:
    mark = one_of(rng, ("**", "*", "_", "`", "~~"))
    edits = [Edit(m.start(), m.end(), f"{mark}{m[0]}{mark}") for m in _some(text.words(4), rng, 4)]
    if rng.random() < 0.6:
        prefix = one_of(rng, ("> ", "- ", "* ", ">> ", "    "))
        edits += [Edit(m.start(), m.start(), prefix) for m in _LINE_START.finditer(text.value)]
    elif rng.random() < 0.5:
        edits.append(Edit(0, 0, one_of(rng, ("# ", "## ", "---\n", "```\n"))))
    text.edit(edits, within=False)


def _hidden(text: _Text, rng: np.random.Generator) -> None:
    character = one_of(rng, _INVISIBLE)
    edits = [Edit(m.start() + 2, m.start() + 2, character) for m in _some(text.words(4), rng, 12)]
    text.edit(edits, within=True)


def _unpunctuated(text: _Text, rng: np.random.Generator) -> None:
    share = rng.uniform(0.3, 1.0)
    text.edit([Edit(m.start(), m.end(), "") for m in _SIGN.finditer(text.value) if rng.random() < share], within=False)


def _spaced(text: _Text, rng: np.random.Generator) -> None:
    new = one_of(rng, ("  ", "\u00a0", "\t", "   ", " \n"))
    edits = [Edit(m.start(), m.end(), new) for m in _SPACE.finditer(text.value) if rng.random() < 0.15]
    text.edit(edits, within=False)


def _some(matches: Sequence[re.Match[str]], rng: np.random.Generator, most: int) -> list[re.Match[str]]:
    return [matches[place] for place in rng.permutation(len(matches))[: int(rng.integers(1, most + 1))]]


_HARMLESS: tuple[Callable[[_Text, np.random.Generator], None], ...] = (_cased, _wrapped, _hidden, _spaced)
_KINDS = (*_HARMLESS, _typos, _html, _markdown, _unpunctuated)
