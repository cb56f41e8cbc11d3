"""Questions made of people's questions, whose answers follow from theirs.

A question and its opposite, several at once, one label and all others, labels that are put together, a scale and its
steps: who answers the one ought to answer the other alike, with probabilities that agree.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from mqan_core.example import Choice
from mqan_data.formats.rows import EverydayRow, Verdict
from mqan_data.questions.asked import YES_NO, Asked, one_of, shuffled, some_of

_YES_NO = (Choice("yes"), Choice("no"))
_OPPOSITE: Final = (
    "Is the answer to this question no? {q}",
    'Would "no" be the right answer to this? {q}',
    "Is no the right answer here: {q}",
    "Is it wrong to answer this with yes? {q}",
    "Say yes if the following is to be answered with no, and no if it is to be answered with yes. {q}",
    "Reply with the opposite: {q}",
    "Is this not the case? {q}",
)
_CLEAR: Final = (
    "Does the text say clearly that this is to be answered with yes? {q}",
    "Is a yes to this question stated in the text beyond doubt? {q}",
    "Can one be certain, from the text alone, that the answer is yes? {q}",
)
_POSSIBLE: Final = (
    "Could the answer be yes, for all that the text says? {q}",
    "Does the text leave room for a yes to this? {q}",
    "Is a yes not ruled out by the text? {q}",
)
_ALL: Final = (
    "Is the answer yes to all of these? {list}",
    "Do all of these hold? {list}",
    "Is every one of these to be answered with yes? {list}",
)
_ANY: Final = (
    "Is the answer yes to at least one of these? {list}",
    "Does any of these hold? {list}",
    "Is one or more of these to be answered with yes? {list}",
)
_NOT_ALL: Final = (
    "Is the answer no to at least one of these? {list}",
    "Does one or more of these fail to hold? {list}",
    "Is it wrong that all of these hold? {list}",
)
_NONE: Final = ("Is the answer no to all of these? {list}", "Does none of these hold? {list}")
_TWO: Final = ("Is the answer yes to two or more of these? {list}", "Do at least two of these hold? {list}")
_WHICH: Final = {
    "yes": ("Which of these are to be answered with yes?", "To which of these questions does the text say yes?"),
    "no": ("Which of these are to be answered with no?", "To which of these questions does the text say no?"),
    "unknown": (
        "Which of these does the text leave open?",
        "To which of these questions does the text give no answer?",
    ),
}
_MOST_AT_ONCE = 6  # questions that are asked as the labels of one
_OTHER: Final = (
    'Is the answer something other than "{label}"? {q}',
    '{q} Is it anything but "{label}"?',
    '{q} Does an answer other than "{label}" fit?',
)
_AT_LEAST: Final = (
    '{q} The steps, from low to high, are: {levels}. Is it "{level}" or more?',
    "{q} ({levels}) Is the right step {level} or a higher one?",
)
_AT_MOST: Final = (
    '{q} The steps, from low to high, are: {levels}. Is it "{level}" or less?',
    "{q} ({levels}) Is the right step {level} or a lower one?",
)
_TWO_WORDS: Final = (
    *(("it is so", "it is not so"), ("true", "false"), ("right", "wrong"), ("correct", "incorrect"), ("y", "n")),
    *(("applies", "does not apply"), ("given", "not given"), ("A", "B"), ("0", "1")),
)


def ask_derived(row: EverydayRow, rng: np.random.Generator) -> Asked | None:
    """Draw a question that is made of a person's; None where nothing follows from that."""
    if row.kind == "yes_no":
        draws = (_opposite, _opposite, _certain, _together, _together, _in_two_words, _which, _which, _which)
        return one_of(rng, draws)(row, rng)
    if row.kind not in ("choice", "scale") or not row.answers or len(row.choices) < 3:
        return None
    if row.kind == "scale" and rng.random() < 0.5:
        return _step(row, rng)
    return one_of(rng, (_other, _merged, _coded, _each))(row, rng)


def _fact(row: EverydayRow, asked: str, verdict: Verdict | str, *, keeps_evidence: bool = True) -> Asked:
    answers = () if verdict == "unknown" else (str(verdict),)
    evidence = row.evidence if answers and keeps_evidence and row.answers else None
    return Asked(row.text, asked, answers, choices=_YES_NO, evidence=evidence or None)


def _verdict(row: EverydayRow) -> str:
    return row.answers[0] if row.answers else "unknown"


def _opposite(row: EverydayRow, rng: np.random.Generator) -> Asked:
    verdict = {"yes": "no", "no": "yes"}.get(_verdict(row), "unknown")
    return _fact(row, one_of(rng, _OPPOSITE).format(q=row.question), verdict)


def _certain(row: EverydayRow, rng: np.random.Generator) -> Asked:
    verdict = _verdict(row)
    if rng.random() < 0.5:
        return _fact(row, one_of(rng, _CLEAR).format(q=row.question), "yes" if verdict == "yes" else "no")
    return _fact(row, one_of(rng, _POSSIBLE).format(q=row.question), "no" if verdict == "no" else "yes")


def _together(row: EverydayRow, rng: np.random.Generator) -> Asked | None:
    others = [fact for fact in row.facts if fact[0] != row.question]
    if not others:
        return None
    facts = shuffled(rng, [(row.question, _verdict(row)), *some_of(rng, others, int(rng.integers(1, 3)))])
    verdicts = [verdict for _, verdict in facts]
    listed = " ".join(f"({number}) {question}" for number, (question, _) in enumerate(facts, start=1))
    forms: list[tuple[Sequence[str], str]] = [
        (_ALL, _all(verdicts)),
        (_ANY, _some(verdicts, 1)),
        (_NOT_ALL, _flipped(_all(verdicts))),
        (_NONE, _flipped(_some(verdicts, 1))),
        *([(_TWO, _some(verdicts, 2))] if len(facts) > 2 else []),
    ]
    templates, verdict = one_of(rng, forms)
    return _fact(row, one_of(rng, templates).format(list=listed), verdict, keeps_evidence=False)


def _which(row: EverydayRow, rng: np.random.Generator) -> Asked | None:
    """Ask which of several questions have an answer; each is a label of its own."""
    others = [fact for fact in row.facts if fact[0] != row.question]
    if not others:
        return None
    facts = shuffled(rng, [(row.question, _verdict(row)), *some_of(rng, others, min(len(others), _MOST_AT_ONCE - 1))])
    wanted = one_of(rng, ("yes", "yes", "no", "unknown"))
    answers = tuple(question for question, verdict in facts if verdict == wanted)
    choices = tuple(Choice(question) for question, _ in facts)
    return Asked(row.text, one_of(rng, _WHICH[wanted]), answers, choices=choices, multiple=True)


def _all(verdicts: Sequence[str]) -> str:
    return "no" if "no" in verdicts else "unknown" if "unknown" in verdicts else "yes"


def _some(verdicts: Sequence[str], least: int) -> str:
    """Return whether at least so many are yes."""
    if verdicts.count("yes") >= least:
        return "yes"
    return "unknown" if len(verdicts) - verdicts.count("no") >= least else "no"


def _flipped(verdict: str) -> str:
    return {"yes": "no", "no": "yes"}.get(verdict, verdict)


def _in_two_words(row: EverydayRow, rng: np.random.Generator) -> Asked:
    """Ask for yes or no in other words, with and without what they stand for."""
    yes, no = one_of(rng, _TWO_WORDS)
    is_code = len(yes) == 1
    meanings = ("yes", "no") if rng.random() < 0.5 else ("the answer is yes", "the answer is no")
    described = is_code or rng.random() < 0.4
    choices = [Choice(yes, meanings[0] if described else ""), Choice(no, meanings[1] if described else "")]
    answers = tuple((yes, no)[YES_NO.index(answer)] for answer in row.answers)
    return Asked(row.text, row.question, answers, choices=tuple(shuffled(rng, choices)), evidence=row.evidence or None)


def _step(row: EverydayRow, rng: np.random.Generator) -> Asked:
    labels = [choice.label for choice in row.choices]
    right = labels.index(row.answers[0])
    upwards = rng.random() < 0.5
    place = int(rng.integers(1, len(labels))) if upwards else int(rng.integers(0, len(labels) - 1))
    template = one_of(rng, _AT_LEAST if upwards else _AT_MOST)
    asked = template.format(q=row.question, levels="; ".join(labels), level=labels[place])
    return _fact(row, asked, "yes" if (right >= place if upwards else right <= place) else "no")


def _other(row: EverydayRow, rng: np.random.Generator) -> Asked:
    wrong = [choice.label for choice in row.choices if choice.label not in row.answers]
    label = row.answers[0] if rng.random() < 0.5 else one_of(rng, wrong)
    asked = one_of(rng, _OTHER).format(q=row.question, label=label)
    return _fact(row, asked, "no" if label == row.answers[0] else "yes", keeps_evidence=label == row.answers[0])


def _merged(row: EverydayRow, rng: np.random.Generator) -> Asked:
    """Put two labels together as one; of a scale two neighbours."""
    place = int(rng.integers(len(row.choices) - 1))
    order = list(row.choices) if row.kind == "scale" else shuffled(rng, row.choices)
    left, right = order[place], order[place + 1]
    joined = f"{left.label} or {right.label}"
    meaning = f"{left.description}, or {right.description}" if left.description else ""
    choices = [*order[:place], Choice(joined, meaning), *order[place + 2 :]]
    answers = (joined,) if row.answers[0] in (left.label, right.label) else row.answers
    return Asked(row.text, row.question, answers, choices=tuple(choices), evidence=row.evidence or None)


def _coded(row: EverydayRow, rng: np.random.Generator) -> Asked:
    """Give labels codes for names, whose meaning the descriptions alone tell."""
    style = one_of(rng, ("option_{n}", "{n}", "class {n}", "L{n}", "{letter}"))
    order = shuffled(rng, row.choices)
    codes = [style.format(n=n + 1, letter=chr(ord("A") + n)) for n in range(len(order))]
    choices = [Choice(code, choice.description or choice.label) for code, choice in zip(codes, order, strict=True)]
    answer = codes[[choice.label for choice in order].index(row.answers[0])]
    return Asked(row.text, row.question, (answer,), choices=tuple(choices), evidence=row.evidence or None)


def _each(row: EverydayRow, rng: np.random.Generator) -> Asked:
    """Judge each label by itself, though one alone is right."""
    offered = tuple(shuffled(rng, row.choices))
    return Asked(row.text, row.question, row.answers, choices=offered, multiple=True, evidence=row.evidence or None)
