"""Statements as questions, and questions with their answers as statements, by rules that prefer none to a wrong one."""

import re

from mqan_data.questions import words as w
from mqan_data.questions.answered import said, when
from mqan_data.questions.clauses import clause_of, looks_finite
from mqan_data.questions.finite import bare_of

_FRONT = re.compile(r"^(?:In|On|At|During|By|Since|After|Before) [^,]{1,40}$")
_QUANTIFIED = w.listed("quantified")
_NOT_DENIED = frozenset({"may", "might", "must", "should", "shall"})  # "may not" does not deny "may"
_FRONTED = re.compile(r"^(?P<front>(?:In|On|At|During|After|Before|Since|By) [^,?]{1,40}), (?P<question>.+)$")
_LIMIT = 40  # words


def question_of(statement: str) -> str | None:
    """Return a statement as a question that is answered by yes or no; None where the rules are not sure.

    >>> question_of("The two dogs ran home.")
    'Did the two dogs run home?'
    """
    front, _, behind = re.sub(r" ([,.])", r"\1", statement.strip()).partition(", ")
    if _FRONT.match(front) and behind and "," not in behind and not any(map(looks_finite, front.split())):
        question = question_of(
            behind[:1].upper() + behind[1:] if behind.split()[0].lower() in w.DETERMINERS else behind
        )
        return None if question is None else f"{question.rstrip('?')} {front[:1].lower()}{front[1:]}?"
    clause = clause_of(statement)
    if clause is None:
        return None
    subject = [w.lowered(clause.subject), *clause.subject[1:]]
    if clause.auxiliary:
        found = [clause.auxiliary, *subject, *clause.rest]
    else:
        found = [clause.helper, *subject, clause.base, *clause.rest]
    return _written(found, "?")


def negated(statement: str) -> str | None:
    """Return what is true if and only if a statement is not; None where the rules are not sure.

    >>> negated("He owns a shop.")
    'He does not own a shop.'
    """
    clause = clause_of(statement)
    if clause is None or any(bare_of(word) in _QUANTIFIED for word in (*clause.subject, *clause.rest)):
        return None
    if clause.auxiliary in _NOT_DENIED or any(
        bare_of(word) in {"and", "or", "but", "because", "if", "unless"} for word in clause.rest
    ):
        return None
    if not clause.auxiliary:
        return _written([*clause.subject, clause.helper, "not", clause.base, *clause.rest], ".")
    rest = ["not", *clause.rest]
    if clause.subject == ["There"] and clause.auxiliary in w.BE and clause.rest:
        if clause.rest[0] in ("a", "an"):
            rest = ["no", *clause.rest[1:]]
        elif clause.rest[0] not in w.DETERMINERS and not clause.rest[0][:1].isdigit():
            rest = ["no", *clause.rest]
    return _written([*clause.subject, clause.auxiliary, *rest], ".").replace(" can not ", " cannot ")


def statement_of(question: str, answer: str) -> str | None:
    """Return a question and its answer as one statement; None where the rules are not sure.

    >>> statement_of("When did the train leave?", "at 9")
    'The train left at 9.'
    """
    asked, answer = " ".join(question.split()).rstrip("?. "), " ".join(answer.split()).rstrip("., ")
    if not answer or len(answer.split()) > 12 or asked.count(" ") > _LIMIT or re.search(r'["“”;:?!()]', asked + answer):
        return None
    fronted = _FRONTED.match(asked)
    if fronted:
        behind = fronted["question"]
        text = statement_of(behind[:1].upper() + behind[1:], answer)
        front = fronted["front"]
        return None if text is None or " " in when(answer)[:3] else f"{text[:-1]} {front[:1].lower()}{front[1:]}."
    words = said(asked, answer)
    if words is None:
        return None
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:]}."


def _written(words: list[str], mark: str) -> str:
    text = " ".join(word for word in words if word).rstrip(",. ")
    return f"{text[:1].upper()}{text[1:]}{mark}"
