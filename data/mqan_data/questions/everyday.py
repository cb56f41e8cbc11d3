"""Questions of every kind that people wrote about a text, and questions whose answers follow from theirs.

A question and its opposite, several at once, one label and all others, labels that are put together, a scale and its
steps: who answers the one ought to answer the other alike, with probabilities that agree.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.formats.rows import EverydayRow, FactRow, Verdict
from mqan_data.questions import asked as q
from mqan_data.questions import facts

_DERIVED = 0.3  # share of the questions from which another one is made
_PAIRED = 0.5  # share of these that have the question itself as a twin, where its answer decides theirs
_ABOUT_ONE, _IN_TEXT, _DROPPED = 0.15, 0.1, 0.25  # shares of the questions with labels
_NONE_NAMED = 0.35  # share of the questions of which no label is right that offer "none of these"
_NAME = re.compile(r"[a-z][a-z0-9' -]*")
_MOST_AT_ONCE = 6  # questions that are asked as the labels of one


def draw(row: EverydayRow, _part: object, rng: np.random.Generator) -> Example:
    """Draw a wording of a question, and of its labels: all or some of them, in any order; or a question made of it."""
    if rng.random() < _DERIVED and (derived := ask_derived(row, rng)) is not None:
        return derived
    match row.kind:
        case "yes_no":
            evidence = row.evidence if row.answers else None
            return facts.draw(FactRow(row.text, row.question, _verdict(row), evidence, is_question=True), None, rng)
        case "free" | "field":
            return _quoted(row, row.question if row.kind == "free" else _of_field(row, rng))
        case "several":
            return _several(row, rng)
        case _:
            return _one(row, rng)


def _paired(
    row: EverydayRow, made: Example, outcomes: Sequence[int], of: Sequence[int], rng: np.random.Generator
) -> Example:
    """Give a question made of another one the other as its twin, if it is drawn.

    ``outcomes`` and ``of`` say which outcome each choice of the one and of the other stands for.
    """
    if rng.random() >= _PAIRED:
        return made
    choices = q.YES_NO if row.kind == "yes_no" else row.choices
    order = q.shuffled(rng, range(len(choices)))
    evidence = row.evidence if row.answers else None
    itself = q.ask(row.text, row.question, row.answers, choices=[choices[i] for i in order], evidence=evidence)
    twin = replace(itself, outcomes=tuple(of[i] for i in order))
    return replace(made, outcomes=tuple(outcomes), twin=twin)


def canonical(row: EverydayRow, _part: object = None, _rng: object = None) -> Example:
    if row.kind in ("free", "field"):
        return _quoted(row, row.question if row.kind == "free" else f"What is the {row.question}?")
    choices = q.YES_NO if row.kind == "yes_no" else row.choices
    return q.ask(row.text, row.question, row.answers, None, choices, row.kind == "several", row.evidence or None)


def _quoted(row: EverydayRow, question: str) -> Example:
    is_clear = bool(row.answers) and row.text.count(row.answers[0]) == 1
    return q.ask(row.text, question, row.answers, row.text.find(row.answers[0]) if is_clear else None)


def _of_field(row: EverydayRow, rng: np.random.Generator) -> str:
    name, style = row.question, rng.random()
    if style < 0.2 and (of_type := q.wordings(f"of_{row.type}")):
        return of_type[0].format(name=name)
    return f"{name} ({row.type})" if style < 0.35 else q.worded(rng, "field", name=name, a=q.article(name))


def _one(row: EverydayRow, rng: np.random.Generator) -> Example:
    """Ask for one label: among choices, among those that the question names, or by yes and no about one of them."""
    style = rng.random()
    if style < _ABOUT_ONE and len(row.choices) > 1:
        return _about_one(row, rng, row.answers[:1])
    kept = list(row.choices)
    wrong = [choice for choice in kept if choice.label not in row.answers]
    if len(wrong) > 2 and rng.random() < _DROPPED:
        wrong = q.some_of(rng, wrong, int(rng.integers(2, len(wrong))))
        kept = [choice for choice in kept if choice in wrong or choice.label in row.answers]
    is_ordered = row.kind == "scale" or rng.random() < 0.1
    offered = kept if is_ordered else q.shuffled(rng, kept)
    if rng.random() < 0.5 and _tell(offered):
        offered = [Choice(choice.label) for choice in offered]
    answers = row.answers
    if row.kind == "choice" and rng.random() < (0.04 if answers else _NONE_NAMED):
        none = q.one_of(rng, (*q.NONE_OF_THESE, "not stated", "the text does not say"))
        if none not in [choice.label for choice in row.choices]:
            offered = [*offered, Choice(none)]
            answers = answers or (none,)
    if style < _ABOUT_ONE + _IN_TEXT and not any(choice.description or len(choice.label) > 60 for choice in offered):
        return q.ask(row.text, q.with_options(rng, row.question, [choice.label for choice in offered]), answers)
    return q.ask(row.text, row.question, answers, choices=offered, evidence=row.evidence if row.answers else None)


def _tell(choices: Sequence[Choice]) -> bool:
    """Return whether labels say by themselves what they stand for, and not by their descriptions alone."""
    return all(_NAME.fullmatch(choice.label.lower()) and len(choice.label) > 3 for choice in choices)


def _about_one(row: EverydayRow, rng: np.random.Generator, right: Sequence[str]) -> Example:
    wrong = [choice.label for choice in row.choices if choice.label not in row.answers]
    truth = bool(right) and (not wrong or rng.random() < 0.5)
    label = q.one_of(rng, right if truth else wrong)
    asked = q.worded(rng, "is_answer", question=row.question, answer=label)
    evidence = row.evidence if truth and len(row.answers) == 1 else None
    made = q.ask(row.text, asked, ("yes" if truth else "no",), choices=q.YES_NO, evidence=evidence)
    if row.kind == "several" or not row.answers:
        return made
    return _paired(row, made, (0, 1), [int(choice.label != label) for choice in row.choices], rng)


def _several(row: EverydayRow, rng: np.random.Generator) -> Example:
    if rng.random() < _ABOUT_ONE and len(row.choices) > 1:
        return _about_one(row, rng, row.answers)
    number = len(row.choices)
    if number > 3 and rng.random() < _DROPPED:
        number = int(rng.integers(3, number))
    offered = q.some_of(rng, row.choices, number)
    answers = [choice.label for choice in offered if choice.label in row.answers]
    evidence = row.evidence if len(row.answers) == 1 and answers else None  # of several nobody says which is whose
    return q.ask(row.text, row.question, answers, choices=offered, multiple=True, evidence=evidence)


def ask_derived(row: EverydayRow, rng: np.random.Generator) -> Example | None:
    if row.kind == "yes_no":
        draws = (_opposite, _opposite, _certain, _together, _together, _in_two_words, _which, _which, _which)
        return q.one_of(rng, draws)(row, rng)
    if row.kind not in ("choice", "scale") or not row.answers or len(row.choices) < 3:
        return None
    if row.kind == "scale" and rng.random() < 0.5:
        return _step(row, rng)
    return q.one_of(rng, (_other, _merged, _coded, _each))(row, rng)


def _fact(row: EverydayRow, asked: str, verdict: str, *, keeps_evidence: bool = True) -> Example:
    evidence = row.evidence if verdict != "unknown" and keeps_evidence and row.answers else None
    answers = () if verdict == "unknown" else (verdict,)
    return q.ask(row.text, asked, answers, choices=q.YES_NO, evidence=evidence or None)


def _verdict(row: EverydayRow) -> Verdict:
    return row.answers[0] if row.answers else "unknown"  # type: ignore[return-value]


def _opposite(row: EverydayRow, rng: np.random.Generator) -> Example:
    made = _fact(row, q.worded(rng, "opposite", q=row.question), facts.OTHER_WAY[_verdict(row)])
    return _paired(row, made, (1, 0), (0, 1), rng)


def _certain(row: EverydayRow, rng: np.random.Generator) -> Example:
    verdict = _verdict(row)
    if rng.random() < 0.5:
        return _fact(row, q.worded(rng, "clear", q=row.question), "yes" if verdict == "yes" else "no")
    return _fact(row, q.worded(rng, "possible", q=row.question), "no" if verdict == "no" else "yes")


def _among_others(row: EverydayRow, rng: np.random.Generator, most: int) -> list[tuple[str, str]]:
    """Return the question with one to so many others about its text, and their verdicts; nothing if it is the only."""
    others = [fact for fact in row.facts if fact[0] != row.question]
    drawn = q.some_of(rng, others, int(rng.integers(1, most + 1)))
    return q.shuffled(rng, [(row.question, _verdict(row)), *drawn]) if others else []


def _together(row: EverydayRow, rng: np.random.Generator) -> Example | None:
    asked = _among_others(row, rng, 2)
    if not asked:
        return None
    verdicts = [verdict for _, verdict in asked]

    def at_least(number: int) -> str:
        if verdicts.count("yes") >= number:
            return "yes"
        return "unknown" if len(verdicts) - verdicts.count("no") >= number else "no"

    every, some = at_least(len(asked)), at_least(1)
    forms = [("all", every), ("any", some), ("not_all", facts.OTHER_WAY[every]), ("none", facts.OTHER_WAY[some])]
    name, verdict = q.one_of(rng, [*forms, ("two", at_least(2))] if len(asked) > 2 else forms)
    listed = " ".join(f"({number}) {question}" for number, (question, _) in enumerate(asked, start=1))
    return _fact(row, q.worded(rng, name, list=listed), verdict, keeps_evidence=False)


def _which(row: EverydayRow, rng: np.random.Generator) -> Example | None:
    """Ask which of several questions have an answer; each is a label of its own."""
    asked = _among_others(row, rng, _MOST_AT_ONCE - 1)
    if not asked:
        return None
    wanted = q.one_of(rng, ("yes", "yes", "no", "unknown"))
    answers = [question for question, verdict in asked if verdict == wanted]
    choices = [question for question, _ in asked]
    return q.ask(row.text, q.worded(rng, f"which_{wanted}"), answers, choices=choices, multiple=True)


def _in_two_words(row: EverydayRow, rng: np.random.Generator) -> Example:
    """Ask for yes or no in other words, with and without what they stand for."""
    words = q.one_of(rng, q.word_sets("two_words"))
    meanings = q.YES_NO if rng.random() < 0.5 else ("the answer is yes", "the answer is no")
    if len(words[0]) > 1 and rng.random() >= 0.4:  # no codes, so they need not be described
        meanings = ("", "")
    answers = [words[q.YES_NO.index(answer)] for answer in row.answers]
    order = q.shuffled(rng, range(len(words)))
    choices = [Choice(words[i], meanings[i]) for i in order]
    made = q.ask(row.text, row.question, answers, choices=choices, evidence=row.evidence or None)
    return _paired(row, made, order, (0, 1), rng)


def _step(row: EverydayRow, rng: np.random.Generator) -> Example:
    labels = [choice.label for choice in row.choices]
    right = labels.index(row.answers[0])
    upwards = rng.random() < 0.5
    place = int(rng.integers(1, len(labels))) if upwards else int(rng.integers(0, len(labels) - 1))
    name = "at_least" if upwards else "at_most"
    asked = q.worded(rng, name, q=row.question, levels="; ".join(labels), level=labels[place])
    fits = [i >= place if upwards else i <= place for i in range(len(labels))]
    made = _fact(row, asked, "yes" if fits[right] else "no")
    return _paired(row, made, (0, 1), [int(not fit) for fit in fits], rng)


def _other(row: EverydayRow, rng: np.random.Generator) -> Example:
    wrong = [choice.label for choice in row.choices if choice.label not in row.answers]
    is_right = rng.random() < 0.5
    label = row.answers[0] if is_right else q.one_of(rng, wrong)
    asked = q.worded(rng, "other", q=row.question, label=label)
    made = _fact(row, asked, "no" if is_right else "yes", keeps_evidence=is_right)
    return _paired(row, made, (0, 1), [int(choice.label == label) for choice in row.choices], rng)


def _merged(row: EverydayRow, rng: np.random.Generator) -> Example:
    """Put two labels together as one; of a scale two neighbours."""
    place = int(rng.integers(len(row.choices) - 1))
    order = list(row.choices) if row.kind == "scale" else q.shuffled(rng, row.choices)
    left, right = order[place], order[place + 1]
    joined = f"{left.label} or {right.label}"
    meaning = f"{left.description}, or {right.description}" if left.description else ""
    outcome = {choice: i - (i > place) for i, choice in enumerate(order)}
    order[place : place + 2] = [Choice(joined, meaning)]
    answers = (joined,) if row.answers[0] in (left.label, right.label) else row.answers
    made = q.ask(row.text, row.question, answers, choices=order, evidence=row.evidence or None)
    return _paired(row, made, range(len(order)), [outcome[choice] for choice in row.choices], rng)


def _coded(row: EverydayRow, rng: np.random.Generator) -> Example:
    """Give labels codes for names, whose meaning the descriptions alone tell."""
    style = q.one_of(rng, ("option_{n}", "{n}", "class {n}", "L{n}", "{letter}"))
    order = q.shuffled(rng, row.choices)
    codes = [style.format(n=n + 1, letter=chr(ord("A") + n)) for n in range(len(order))]
    choices = [Choice(code, choice.description or choice.label) for code, choice in zip(codes, order, strict=True)]
    answer = codes[[choice.label for choice in order].index(row.answers[0])]
    made = q.ask(row.text, row.question, (answer,), choices=choices, evidence=row.evidence or None)
    return _paired(row, made, range(len(order)), [order.index(choice) for choice in row.choices], rng)


def _each(row: EverydayRow, rng: np.random.Generator) -> Example:
    """Judge each label by itself, though one alone is right."""
    offered = q.shuffled(rng, row.choices)
    return q.ask(row.text, row.question, row.answers, choices=offered, multiple=True, evidence=row.evidence or None)
