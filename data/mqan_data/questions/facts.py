"""Yes/no questions on texts: answered by yes or no, or by nothing where the text does not say."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.formats.rows import FactRow, Verdict
from mqan_data.questions.asked import TRUE_FALSE, YES_NO, ask, one_of, shuffled, word_sets, worded, wordings
from mqan_data.questions.clauses import question_of, question_without_denial
from mqan_data.questions.words import lowered

_FREE, _THREE, _TRUE_FALSE = 0.1, 0.2, 0.1  # shares of the questions without choices, with three, with true and false
_NATURAL = 0.55  # share of the statements that are turned into a question, where that can be done
_NEGATED = 0.15  # of the others, share that is asked the other way round
_LONG = 200  # characters of a statement that is not put into a sentence

_MEANINGS: Final = ("the text says so", "the text says otherwise", "the text does not say whether it is so")

OTHER_WAY: Final[Mapping[str, Verdict]] = {"yes": "no", "no": "yes", "unknown": "unknown"}

_SEVERAL = re.compile(r"[.!?;][\"')\]]*\s")
_VERB = re.compile(r"\b(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|must|\w+ed|\w+[^s\W]s)\b")
_NO_VERB = re.compile(r"\w{2}ing\b")  # of captions: "a man reading"
_NEGATION = re.compile(r"\b(?:not|never|no|nobody|nothing|none|neither|nor|cannot)\b|n't\b", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|might|must|shall)\b", re.IGNORECASE
)


def draw(row: FactRow, _part: object, rng: np.random.Generator) -> Example:
    """Draw a question: with yes and no to choose from, with three choices, with true and false, or without any."""
    return _drawn(row.text, row, row.verdict, rng)


def draw_of_another(row: FactRow, other: FactRow, _part: object, rng: np.random.Generator) -> Example | None:
    """Ask the question of the text of another row, which does not say; None where the two have the same text."""
    return None if other.text == row.text else _drawn(other.text, row, "unknown", rng)


def canonical(row: FactRow, _part: object, _rng: object) -> Example:
    asked = _as_question(row.asked) if row.is_question else _said("is_true", "is_true_quoted", row)[0]
    answers = () if row.verdict == "unknown" else (row.verdict,)
    return ask(row.text, asked, answers, choices=YES_NO, evidence=row.evidence)


def _drawn(text: str, row: FactRow, verdict: Verdict, rng: np.random.Generator) -> Example:
    evidence = row.evidence if verdict == row.verdict else None
    style = rng.random()
    words: Sequence[str] = YES_NO
    if style < _TRUE_FALSE and not row.is_question:
        asked, words = one_of(rng, _said("true_or_false", "true_or_false", row)), TRUE_FALSE
    elif style < _TRUE_FALSE + _THREE and not row.is_question and rng.random() < 0.5:
        asked, words = one_of(rng, _said("check", "check", row)), one_of(rng, word_sets("three_words"))
    else:
        asked, verdict = _asked(row, verdict, rng)
        if style < _TRUE_FALSE + _THREE:
            words = (*YES_NO, one_of(rng, wordings("not_stated")))
        elif style < _TRUE_FALSE + _THREE + _FREE:
            asked += one_of(rng, ("", "", "", " Yes or no?", " Answer yes or no."))
            return ask(text, asked, _answer(words, verdict), evidence=evidence)
    described = len(words) == len(_MEANINGS) and rng.random() < 0.15
    choices = [Choice(word, meaning if described else "") for word, meaning in zip(words, _MEANINGS, strict=False)]
    choices = choices if rng.random() < 0.5 else shuffled(rng, choices)
    return ask(text, asked, _answer(words, verdict), choices=choices, evidence=evidence)


def _answer(words: Sequence[str], verdict: Verdict) -> tuple[str, ...]:
    """Return the word for a verdict; none where no word means that the text does not say."""
    return tuple(words[("yes", "no", "unknown").index(verdict) :][:1])


def _asked(row: FactRow, verdict: Verdict, rng: np.random.Generator) -> tuple[str, Verdict]:
    """Return a wording, and what the text makes of that."""
    if row.is_question:
        return _question(row.asked, rng), verdict
    if rng.random() < _NATURAL:
        if (question := question_without_denial(row.asked)) is not None:
            return _question(question, rng), OTHER_WAY[verdict]
        if not _NEGATION.search(row.asked) and (question := question_of(row.asked)) is not None:
            return _question(question, rng), verdict
    if rng.random() < _NEGATED:
        return one_of(rng, _said("is_false", "is_false_quoted", row)), OTHER_WAY[verdict]
    templates = "is_true" if _NEGATION.search(row.asked) else "is_true_spoken"
    return one_of(rng, _said(templates, "is_true_quoted", row)), verdict


def _question(question: str, rng: np.random.Generator) -> str:
    """Return a question as it is, or in words around it."""
    asked = _as_question(question)
    style = rng.random()
    if style < 0.75 or not _ASKS.match(asked):
        return asked
    low = asked[:1].lower() + asked[1:]
    return low.rstrip("?") if style < 0.8 else worded(rng, "about_the_text", question=low, Question=asked)


def _as_question(question: str) -> str:
    question = question.strip()
    return f"{question[:1].upper()}{question[1:].rstrip(' ?.')}?"


def _said(templates: str, quoted: str, row: FactRow) -> list[str]:
    """Return wordings with a statement in them: within a sentence only where it is a short clause."""
    bare = row.asked.strip().rstrip(" .")
    asks = bare.endswith(("?", "!"))
    alone = asks or len(bare) > _LONG or _SEVERAL.search(bare) or (_NO_VERB.search(bare) and not _VERB.search(bare))
    first, *others = bare.split(" ")
    first = first.lower() if f" {first.lower()} " in row.text else lowered([first, *others])
    inside, high = " ".join([first, *others]), bare[:1].upper() + bare[1:]
    full = high if asks else f"{high}."
    some = wordings(quoted) if alone else wordings(templates) + wordings(quoted)
    return [template.format(s=inside, S=high, full=full) for template in some]
