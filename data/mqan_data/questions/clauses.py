"""Statements as questions and as their opposite, by rules that prefer none to a wrong one.

A statement is taken apart at its finite verb: the first auxiliary, or the one word that can be no other than a verb in
the past or the present. Where several words could be it, there is none.
"""

import re
from typing import Final, NamedTuple

from mqan_data.questions import words as w
from mqan_data.questions.finite import bare_of, base_of, finite_place, number_of

_REFUSED = re.compile(r'["“”?;:\n\t\[\]{}<>|*#_]|\.\.|-LRB-|``|\'\'| - | -- |—|(?<![A-Z])[.!] +\S')
_ABBREVIATED = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Gen|Col|Sen|Gov|Rev|Jan|Feb|Aug|Sept|Oct|Nov|Dec|Jr|Sr|Inc|Ltd|Co|Mt|No)\. "
)
_CONTRACTED = re.compile(r"^(\w+)n['’]t$")
_SUFFIXES: Final = {"re": "are", "ve": "have", "ll": "will", "m": "am"}
_TAKES_S = w.NOMINATIVES | {"there", "that", "everyone", "everybody", "nobody", "someone"}
_NOT_FIRST = w.listed("not_first") | w.CONJUNCTIONS | w.SUBORDINATORS | w.AUXILIARIES
_NOT_FIRST -= {"that", "may", "will"}
_OF_CLAUSES, _OF_STATES = w.listed("of_clauses"), w.listed("of_states")
_COUNTED, _LINKING = w.listed("counted"), w.listed("linking")
_OPENS_CLAUSE = w.SUBORDINATORS | w.NOMINATIVES | w.CONJUNCTIONS
_OPENS_CLAUSE |= {"than", "as", "before", "after", "since", "until"}
_MOST_WORDS = 80
_PARTICIPLE = re.compile(r"\w+(?:ed|en|wn|ght|ung|elt)$")
_FRONT = re.compile(r"^(?:In|On|At|During|By|Since|After|Before) [^,]{1,40}$")
_QUANTIFIED = w.listed("quantified")
_JOINING = {"and", "or", "but", "because", "if", "unless"}
_NOT_DENIED = {"may", "might", "must", "should", "shall"}  # "may not" does not deny "may"


class Clause(NamedTuple):
    """A statement around its finite verb."""

    subject: list[str]  # words before it
    auxiliary: str  # the verb where it can move to the front; else empty
    base: str  # else its first form, and the form of "do" that takes its place
    helper: str
    rest: list[str]  # words after it


def question_of(statement: str) -> str | None:
    """Return a statement as a question that is answered by yes or no; None where the rules are not sure.

    >>> question_of("The two dogs ran home.")
    'Did the two dogs run home?'
    """
    front, _, behind = re.sub(r" ([,.])", r"\1", statement.strip()).partition(", ")
    if _FRONT.match(front) and behind and "," not in behind and not any(map(_looks_finite, front.split())):
        is_name = behind.split()[0].lower() not in w.DETERMINERS
        question = question_of(behind if is_name else behind[:1].upper() + behind[1:])
        return None if question is None else f"{question.rstrip('?')} {front[:1].lower()}{front[1:]}?"
    clause = _clause_of(statement)
    return None if clause is None else _asked(clause)


def question_without_denial(statement: str) -> str | None:
    """Return the question to which a statement with "not" says no; None where the rules are not sure.

    >>> question_without_denial("The dogs did not run home.")
    'Did the dogs run home?'
    """
    clause = _clause_of(statement)
    if clause is None or clause.rest[:1] != ["not"]:
        return None
    clause = clause._replace(rest=clause.rest[1:])
    return None if _is_quantified(clause) else _asked(clause)


def _asked(clause: Clause) -> str:
    subject = [w.lowered(clause.subject), *clause.subject[1:]]
    return _written([clause.auxiliary or clause.helper, *subject, clause.base, *clause.rest], "?")


def _is_quantified(clause: Clause) -> bool:
    """Return whether words beside the verb take part in what "not" denies."""
    rest = {bare_of(word) for word in clause.rest}
    return not (_QUANTIFIED.isdisjoint({*map(bare_of, clause.subject), *rest}) and _JOINING.isdisjoint(rest))


def negated(statement: str) -> str | None:
    """Return what is true if and only if a statement is not; None where the rules are not sure.

    >>> negated("He owns a shop.")
    'He does not own a shop.'
    """
    clause = _clause_of(statement)
    if clause is None or clause.auxiliary in _NOT_DENIED:
        return None
    subject, auxiliary, base, helper, rest = clause
    if _is_quantified(clause):
        return None
    rest = ["not", base, *rest]
    if subject == ["There"] and auxiliary in w.BE and clause.rest:
        first = clause.rest[0]
        if first in ("a", "an"):
            rest = ["no", *clause.rest[1:]]
        elif first not in w.DETERMINERS and not first[:1].isdigit():
            rest = ["no", *clause.rest]
    return _written([*subject, auxiliary or helper, *rest], ".").replace(" can not ", " cannot ")


def _written(words: list[str], mark: str) -> str:
    text = " ".join(word for word in words if word).rstrip(",. ")
    return f"{text[:1].upper()}{text[1:]}{mark}"


def _words_of(statement: str) -> list[str] | None:
    """Return the words of a statement with contractions in full; None where it is more than one plain sentence."""
    text = " ".join(statement.split()).replace("’", "'")
    text = re.sub(r" ([,.!])", r"\1", re.sub(r" ('s|n't)\b", r"\1", text))
    if re.search(r"[A-Z]\.$", text) is None or text.count(".") == 1:
        text = text.rstrip(".! ")
    odd_marks = re.search(r"(?:^| )['‘]\S", text) is not None and re.search(r"\S'(?: |$)", text) is None
    odd_marks = odd_marks or (text.endswith("'") and " '" not in text)
    if not text or odd_marks or _REFUSED.search(_ABBREVIATED.sub(" ", text)):
        return None
    words: list[str] = []
    for word in text.split():
        contracted = _CONTRACTED.match(word)
        stem, mark, suffix = word.partition("'")
        if contracted:
            full = {"ca": "can", "wo": "will", "ai": "", "sha": "shall"}.get(contracted[1].lower(), contracted[1])
            words += [full, "not"]
        elif mark and suffix in _SUFFIXES:
            words += [stem, _SUFFIXES[suffix]]
        elif mark and suffix == "s" and stem.lower() in _TAKES_S:
            words += [stem, "'s"]
        else:
            words += ["can", "not"] if word.lower() == "cannot" else [word]
    if any(not word or word.endswith("'d") for word in words):
        return None
    for place in (place for place, word in enumerate(words) if word == "'s"):
        following = _after_adverbs(words, place + 1)
        is_has = following in ("been", "got", "had")
        if not is_has and place != 1 and following in w.participles() and w.base_of_past(following) is not None:
            return None
        words[place] = "has" if is_has else "is"
    return words


def _after_adverbs(words: list[str], place: int) -> str:
    while place < len(words) - 1 and (bare_of(words[place]) in w.ADVERBS or words[place].endswith("ly")):
        place += 1
    return bare_of(words[place]) if place < len(words) else ""


def _looks_finite(word: str) -> bool:
    word = bare_of(word)
    return word in w.AUXILIARIES or w.base_of_past(word) is not None


def _clause_of(statement: str) -> Clause | None:
    """Return a statement as its clause; None where the rules are not sure of it."""
    words = _words_of(statement)
    first = bare_of(words[0]) if words else ""
    if words is None or not 1 < len(words) <= _MOST_WORDS or first in _NOT_FIRST or words[0].endswith("ly,"):
        return None
    if not (words[0][0].isupper() or words[0][0].isdigit() or words[0][0] in "$€£"):
        words = [words[0][:1].upper() + words[0][1:], *words[1:]]
    is_attributed = "," in statement and base_of(bare_of(words[-1])) in _OF_CLAUSES  # ..., officials say
    place = None if is_attributed else finite_place(words)
    if place is None or "being" in words[:place]:
        return None
    commas = sum(word.endswith(",") for word in words[:place])
    if commas == 1 and words[place - 1].endswith(",") or commas and first.endswith(("ing", "ed")):
        return None  # Ann, do not; Following the talks, he
    if first in _COUNTED and words[1].islower():
        return None
    if words[0] == "That" and sum(word in w.BE | w.MODALS | w.HAVE | w.DO for word in words) != 1:
        return None
    return _around(words, place)


def _around(words: list[str], place: int) -> Clause | None:
    """Return the clause whose finite verb stands at a place; None where another clause is joined to it."""
    verb, subject, rest = words[place], words[:place], words[place + 1 :]
    following, is_denied = _after_adverbs(words, place + 1), rest[:1] == ["not"]
    is_auxiliary = verb in w.BE | w.MODALS or (verb in w.DO and is_denied)
    if verb in w.HAVE:
        ends_so = _PARTICIPLE.match(following) and rest[0] not in w.DETERMINERS
        is_auxiliary = following in w.participles() or bool(ends_so)
        if (is_denied and not is_auxiliary) or (is_auxiliary and following == "better"):
            return None
    if is_auxiliary:
        return None if _joined(rest) or _again(verb, rest) else Clause(subject, verb, "", "", rest)
    if bare_of(subject[0]) == "there" or following == "yet" or (verb == "used" and following == "to"):
        return None
    if verb in w.HAVE | w.DO:
        base = "have" if verb in w.HAVE else "do"
        helper = {"has": "does", "have": "do", "had": "did"}.get(verb, verb)
    elif (past := w.base_of_past(verb)) is not None and not (past == verb and number_of(subject) != "singular"):
        base, helper = past, "did"
    else:
        third = w.base_of_third(verb)
        base, helper = (verb, "do") if third is None else (third, "does")
    second = None if verb in w.DO and not rest else _second_verbs(rest, helper, base)
    return None if second is None or _joined(second) else Clause(subject, "", base, helper, second)


def _second_verbs(rest: list[str], helper: str, first: str) -> list[str] | None:
    """Return the words after a verb, where a second verb that "and" joins to it takes its first form, too."""
    changed = list(rest)
    for place, word in enumerate(rest):
        bare, following = bare_of(word), rest[place + 1] if place + 1 < len(rest) else ""
        if bare in w.SUBORDINATORS or bare in w.NOMINATIVES - {"it", "you"}:
            return changed
        if _before(rest, place) not in ("and", "or", "but", "then") or word != bare:
            continue
        if helper == "did" and (base := w.base_of_past(bare)) is not None:
            has_object = following in w.DETERMINERS | w.PREPOSITIONS | w.OBJECTS
            if not w.only_past(bare) and (first in _LINKING or bare in _OF_STATES or not has_object):
                return None
            changed[place] = base
        elif helper == "does" and (base := w.base_of_third(bare)) is not None:
            if base in w.NOUN_VERBS and following not in w.DETERMINERS:
                return None
            changed[place] = base
    return changed


def _before(words: list[str], place: int) -> str:
    """Return the word before a place, or the one before that where it is an adverb."""
    before = words[place - 1] if place else ""
    return words[place - 2] if before.endswith("ly") and place > 1 else before


def _joined(rest: list[str]) -> bool:
    """Return whether a second finite verb stands after "and" or a comma, in no clause of its own."""
    armed = False
    for place, word in enumerate(rest):
        bare, following = bare_of(word), rest[place + 1] if place + 1 < len(rest) else ""
        if bare in w.SUBORDINATORS:
            if not armed:
                return False
            armed = False
            continue
        if bare == "but" and not {"not", "also", *w.PREPOSITIONS} & set(rest[max(place - 9, 0) : place + 2]):
            return True
        if armed and word == bare:
            before, third = _before(rest, place), w.base_of_third(bare)
            is_past = w.base_of_past(bare) is not None or bare.endswith("ed")
            if before in w.CONJUNCTIONS or before.endswith(","):
                joins = is_past and following in w.DETERMINERS | w.OBJECTS
                joins = joins or (third is not None and third not in w.NOUN_VERBS)
                if joins or bare in w.NOMINATIVES - {"it", "you"}:
                    return True
            if bare in w.AUXILIARIES or w.only_past(bare):
                return True
        armed = armed or bare in w.CONJUNCTIONS or word.endswith(",")
    return False


def _again(verb: str, rest: list[str]) -> bool:
    """Return whether a second auxiliary follows that no word opens a clause for, or a whole clause after ", and"."""
    for place, word in enumerate(rest):
        bare, before = bare_of(word), rest[place - 1] if place else ""
        if bare in w.CONJUNCTIONS and before.endswith(",") and len(rest) - place > 3:
            return any(
                later in w.verbs() - w.NOUN_VERBS and previous not in w.MODALS | {"to"}
                for previous, later in zip(rest[place + 1 :], rest[place + 2 :], strict=False)
            )
        if bare in _OPENS_CLAUSE or before.endswith(","):
            return False
        of_first = word == "have" and verb in w.MODALS | w.DO
        if word in w.BE | w.HAVE | w.MODALS and before != "to" and not of_first:
            return True
    return False
