"""Questions changed in their names and numbers, so that they ask something else of which the same text speaks.

Texts with a sentence that looks like the answer and is not, after AddSent (Jia and Liang 2017): the changed question is
turned into a statement with a false answer of the same type, which is put between two others of the text, or at its
end. Rules take the place of the paper's parser and of its crowd workers: questions that no rule turns into a statement
stay as they are.

Questions that a text does not answer, after SQuAD 2.0 (Rajpurkar et al. 2018): half of them are changed, also in words
of the opposite sense, and their answer is that there is none. A reader must compare the facts and not only the words.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from mqan_core.example import Example
from mqan_data.questions.asked import one_of
from mqan_data.source import DerivedSource

SENTENCE_GAP: Final = re.compile(r"(?<=[a-z0-9)\"'][.!?]) +(?=[A-Z\"'(])")
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w.-]*\w(?: (?:of |the |de )?[A-Z][\w-]*\w)*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*")
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_WORDS_ASKED = frozenset({"Who", "What", "When", "Where", "Which", "Why", "How", "In", "On", "At", "The", "I"})
_OPPOSITES = dict(
    pair
    for one, other in (
        ("first", "last"), ("largest", "smallest"), ("highest", "lowest"), ("oldest", "newest"),
        ("longest", "shortest"), ("best", "worst"), ("northern", "southern"), ("eastern", "western"), ("early", "late"),
        ("before", "after"), ("north", "south"), ("east", "west"), ("maximum", "minimum"), ("male", "female"),
        ("major", "minor"), ("public", "private"), ("old", "new"), ("high", "low"), ("upper", "lower"),
    )
    for pair in ((one, other), (other, one))
)  # fmt: skip
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b")

_BE = "was|were|is|are"
_HAVE = "has|had|have|can|could|will|would|did|does|do"
_SUBJECT = r"(?:the |The |a |an )?[A-Z0-9][\w'’.-]*(?: (?:(?:of|the|de|and) )*[A-Z0-9][\w'’.-]*)*"
_VERB = "(?P<rest>(?:(?:also|currently|first|have|originally) )*[a-z]+)"
_AS_SUBJECT = re.compile(rf"^(?:Who|What|Which(?: [a-z]+){{1,3}}|What(?: [a-z]+){{1,3}}) (?P<rest>(?:{_BE}) .+)$")
_COUNTED = re.compile(rf"^How many (?P<noun>[a-z]+(?: [a-z]+)?) (?P<rest>(?:{_BE}|{_HAVE}) (?!{_SUBJECT} ).+)$")
_COUNTED_OBJECT = re.compile(
    rf"^How many (?P<noun>[a-z]+(?: [a-z]+)?) (?P<verb>{_HAVE}) (?P<subject>{_SUBJECT}) "
    rf"{_VERB}(?P<more>.*)$"
)
_OBJECT = re.compile(
    rf"^(?:What|Who|Whom|Which)(?: [a-z]+){{0,3}} (?P<verb>{_HAVE}) (?P<subject>{_SUBJECT}) "
    rf"{_VERB}(?P<more>.*)$"
)
_WHERE_OR_WHEN = (
    r"^(?:(?P<preposition>In|On|At|By|For|To|From|With|Under|During|Of) (?:what|which|whom)(?: [a-z]+){0,3}|When|Where|"
    r"What year|What day) "
)
_PLACE_OR_TIME = re.compile(rf"{_WHERE_OR_WHEN}(?P<verb>{_BE}|{_HAVE}) (?P<subject>{_SUBJECT}) (?P<rest>[a-z].*)$")
_PARTICIPLE = r"[a-z]+(?:ed|en|wn|ght|ade|orn|ld|id|ung|uilt|ound|ost) ?"
_PASSIVE = re.compile(
    rf"{_WHERE_OR_WHEN}(?P<verb>{_BE}) (?P<subject>(?:the|a|an|this|these|most|many)(?: [\w'’.-]+){{1,4}}?) "
    rf"(?P<rest>{_PARTICIPLE}.*)$"
)
_WITHIN = re.compile(
    r"^(?P<before>[A-Z].* )(?:what|which)(?: (?:kind|type|sort) of)?(?P<noun> [a-z]+)?"
    r"(?P<behind>(?: (?:in|on|of|at|for|from|during|by|to) .*)?)$"
)
_FRONTED = re.compile(
    r"^(?P<front>[A-Z][^,]+), (?P<question>(?:what|who|when|where|which|how many|in what|in which) .+)$"
)
_PAST_VERB = re.compile(
    r"^(?:Who|What|Which(?: [a-z]+){1,2}) (?P<rest>[a-z]+(?:ed|s|ught|ent|ook|ote|ave|ade|eld|on) .+)$"
)
_YEARS_OFF = (-31, -17, -8, -4, -2, 3, 5, 9, 14, 26)
_TRIES = 4  # other rows that are asked for names and answers
_CHANGED = 0.6  # share of rows that are tried; some hold nothing that could be changed
_OWN_NAMES = 0.25  # share of those that take names of the same text
_IN_BRACKETS = re.compile(r"([^.,;:!?()\n]*)\(([^()\n]*)\)")  # with what stands before them


class AdversarialSource(DerivedSource):
    """The rows of a source, each with a sentence that looks like the answer and is not, where one can be made."""

    suffix = "_adversarial"

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        example = replace(self._source.draw(index, rng), task=self.name)
        others = [self._source.draw(int(rng.integers(len(self._source))), rng) for _ in range(_TRIES)]
        return with_distractor(example, others, rng) or example


def with_distractor(example: Example, others: Sequence[Example], rng: np.random.Generator) -> Example | None:
    """Return an example with a misleading sentence in its text, made of names and answers of others.

    None where no rule turns the question into a statement, nothing in it can be changed, or no false answer of the type
    is found.
    """
    if not example.answers or example.answer_start is None or example.choices:
        return None
    question = changed_question(example.question, [other.context for other in others], rng)
    false = false_answer(example, [other.answers[0] for other in others if other.answers], rng)
    if question is None or false is None:
        return None
    sentence = statement(question, false.rstrip("."))
    if sentence is None or any(_holds(sentence, answer) for answer in example.answers):
        return None
    gaps = [gap for gap in SENTENCE_GAP.finditer(example.context) if not _cuts(gap.start(), example)]
    place = len(example.context)
    if gaps and rng.random() < 0.6:
        place = one_of(rng, gaps).start()
    start, added = example.answer_start, f" {sentence}"
    if rng.random() < 0.15:
        place, added = 0, f"{sentence} "
    context = example.context[:place] + added + example.context[place:]
    return replace(example, context=context, answer_start=start + len(added) if place <= start else start)


def changed_question(question: str, texts: Sequence[str], rng: np.random.Generator, *, known: str = "") -> str | None:
    """Return a question that asks something else: with other names, numbers and words of the opposite sense.

    Names come from ``texts``, those that the question has not and that share no word with the names of ``known``; None
    where there is nothing to change.
    """
    taken = words_of_names(known)
    names: list[str] = [
        name
        for text in texts
        for name in _NAME.findall(text)
        if name not in question and taken.isdisjoint(words_of_names(name))
    ]
    changed = _NUMBER.sub(lambda match: _other_number(match[0], rng), question)
    changed = _OPPOSITE.sub(lambda match: _OPPOSITES[match[0]], changed)

    def other_name(match: re.Match[str]) -> str:
        if not names or match[0] in _WORDS_ASKED:
            return match[0]
        alike = [name for name in names if name.count(" ") == match[0].count(" ")]
        return one_of(rng, alike or names)

    changed = _NAME.sub(other_name, changed)
    return None if changed == question else changed


def words_of_names(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text) if word[0].isupper()} - _WORDS_ASKED


def false_answer(example: Example, answers: Sequence[str], rng: np.random.Generator) -> str | None:
    """Return a false answer of the type of the right one: another number, or an answer of another question."""
    right = example.answers[0]
    if _NUMBER.search(right):
        return _NUMBER.sub(lambda match: _other_number(match[0], rng), right)
    alike = [
        answer
        for answer in answers
        if answer[:1].isupper() == right[:1].isupper()
        and not _NUMBER.search(answer)
        and len(answer.split()) <= 6
        and not any(_holds(answer, gold) or _holds(gold, answer) for gold in example.answers)
    ]
    return one_of(rng, alike) if alike else None


def statement(question: str, answer: str) -> str | None:
    """Return a question and its answer as one sentence; None where no rule fits.

    >>> statement("When did Kepler move to Graz?", "1620")
    'Kepler did move to Graz in 1620.'
    >>> statement("Who was the mayor of Turin?", "Anna Bell")
    'Anna Bell was the mayor of Turin.'
    """
    text = _sentence(question.strip().rstrip("?. "), answer)
    if text is None:
        return None
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _sentence(asked: str, answer: str) -> str | None:
    if (found := _FRONTED.match(asked)) is not None:
        rest = found["question"]
        text = _sentence(rest[:1].upper() + rest[1:], answer)
        return None if text is None else f"{found['front']}, {text}"
    if (found := _COUNTED_OBJECT.match(asked)) is not None:
        return f"{found['subject']} {found['verb']} {found['rest']} {answer} {found['noun']}{found['more']}"
    if (found := _COUNTED.match(asked)) is not None:
        return f"{answer} {found['noun']} {found['rest']}"
    if (found := _PLACE_OR_TIME.match(asked) or _PASSIVE.match(asked)) is not None:
        has_preposition = re.match(r"(?:in|on|at|by|from|near|during|after|before) ", answer.lower())
        preposition = "" if has_preposition else (found["preposition"] or "in").lower()
        return f"{found['subject']} {found['verb']} {found['rest']} {preposition} {answer}"
    if (found := _OBJECT.match(asked)) is not None:
        return f"{found['subject']} {found['verb']} {found['rest']} {answer}{found['more']}"
    if (found := _AS_SUBJECT.match(asked) or _PAST_VERB.match(asked)) is not None:
        return f"{answer} {found['rest']}"
    if (found := _WITHIN.match(asked)) is not None:
        return f"{found['before']}{answer}{found['behind']}"
    return None


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


def _cuts(place: int, example: Example) -> bool:
    start = example.answer_start or 0
    return start < place < start + len(example.answers[0])


def _holds(text: str, part: str) -> bool:
    return bool(part) and re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text, re.IGNORECASE) is not None


class ChangedSource(DerivedSource):
    """The rows of a source, some asked for what their texts do not say."""

    suffix = "_changed"

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        example = replace(self._source.draw(index, rng), task=self.name)
        if not example.answers or example.choices or rng.random() >= _CHANGED:
            return example
        names_from = example.context
        if rng.random() >= _OWN_NAMES:
            names_from = self._source.draw(int(rng.integers(len(self))), rng).context
        return without_answer(example, names_from, rng) or example


def without_answer(example: Example, names_from: str, rng: np.random.Generator) -> Example | None:
    """Return an example whose question is changed so that its text does not answer it; None where nothing can be.

    Names of the text ``names_from`` take the place of the question's. Those that are known to fit the answer are not
    used: of the answer, of a sentence that holds it, and other names for what the question names.
    """
    holding = [
        part for part in SENTENCE_GAP.split(example.context) if any(answer in part for answer in example.answers)
    ]
    known = " ".join((*example.answers, *holding, *_other_names(example)))
    question = changed_question(example.question, [names_from], rng, known=known)
    if question is None:
        return None
    return replace(example, question=question, answers=(), answer_start=None)


def _other_names(example: Example) -> list[str]:
    """Return the question, and what its text puts in brackets beside a name of it, or before brackets that hold one."""
    asked = words_of_names(example.question)
    beside = (f"{before} {within}" for before, within in _IN_BRACKETS.findall(example.context))
    return [example.question, *(names for names in beside if not asked.isdisjoint(words_of_names(names)))]
