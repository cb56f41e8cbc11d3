"""Statements as questions and as their opposite, by rules that prefer none to a wrong one.

A statement is taken apart at its finite verb: the first auxiliary, or the one word that can be no other than a verb in
the past or the present. Where several words could be it, there is none.
"""

import re
from typing import Final, NamedTuple

from mqan_data.questions import words as w

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
_MOST_WORDS = 80
_PARTICIPLE = re.compile(r"\w+(?:ed|en|wn|ght|ung|elt)$")
_FRONT = re.compile(r"^(?:In|On|At|During|By|Since|After|Before) [^,]{1,40}$")
_QUANTIFIED = w.listed("quantified")
_JOINING = {"and", "or", "but", "because", "if", "unless"}
_PRONOUNS = {"this", "that", "these", "those", "both", "all", "each"}  # among the determiners
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
    words = [bare_of(word) for word in front.split()]
    has_verb = not w.AUXILIARIES.isdisjoint(words) or any(w.base_of_past(word) is not None for word in words)
    if _FRONT.match(front) and behind and "," not in behind and not has_verb:
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
    if not text or _REFUSED.search(_ABBREVIATED.sub(" ", text)):
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
        words[place] = "has" if _after_adverbs(words, place + 1) in ("been", "got", "had") else "is"
    return words


def _after_adverbs(words: list[str], place: int) -> str:
    while place < len(words) - 1 and (bare_of(words[place]) in w.ADVERBS or words[place].endswith("ly")):
        place += 1
    return bare_of(words[place]) if place < len(words) else ""


def _clause_of(statement: str) -> Clause | None:
    words = _words_of(statement)
    first = bare_of(words[0]) if words else ""
    if words is None or not 1 < len(words) <= _MOST_WORDS or first in _NOT_FIRST or words[0].endswith("ly,"):
        return None
    if not (words[0][0].isupper() or words[0][0].isdigit() or words[0][0] in "$€£"):
        words = [words[0][:1].upper() + words[0][1:], *words[1:]]
    is_attributed = "," in statement and _base_of(bare_of(words[-1])) in _OF_CLAUSES  # ..., officials say
    place = None if is_attributed else _finite_place(words)
    if place is None or "being" in words[:place]:
        return None
    commas = sum(word.endswith(",") for word in words[:place])
    if commas == 1 and words[place - 1].endswith(",") or commas and first.endswith(("ing", "ed")):
        return None  # Ann, do not; Following the talks, he
    return _around(words, place)


def _around(words: list[str], place: int) -> Clause | None:
    """Return the clause whose finite verb stands at a place; None where another clause is joined to it."""
    verb, subject, rest = words[place], words[:place], words[place + 1 :]
    following, is_denied = _after_adverbs(words, place + 1), rest[:1] == ["not"]
    is_auxiliary = verb in w.BE | w.MODALS or (verb in w.DO and is_denied)
    if verb in w.HAVE:
        ends_so = _PARTICIPLE.match(following) and rest[0] not in w.DETERMINERS
        is_auxiliary = following in w.participles() or bool(ends_so)
    if is_auxiliary:
        return None if _joined(rest) else Clause(subject, verb, "", "", rest)
    if verb in w.HAVE | w.DO:
        base = "have" if verb in w.HAVE else "do"
        helper = {"has": "does", "have": "do", "had": "did"}.get(verb, verb)
    elif (past := w.base_of_past(verb)) is not None and not (past == verb and _number_of(subject) != "singular"):
        base, helper = past, "did"
    else:
        third = w.base_of_third(verb)
        base, helper = (verb, "do") if third is None else (third, "does")
    if (verb in w.DO and not rest) or _joined(rest, is_inflected=helper in ("did", "does")):
        return None
    return Clause(subject, "", base, helper, rest)


def _joined(rest: list[str], *, is_inflected: bool = False) -> bool:
    """Return whether a second finite verb, after an inflected one any such form, stands after "and" or a comma."""
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
            before, third = rest[place - 1] if place else "", w.base_of_third(bare)
            if before.endswith("ly") and place > 1:
                before = rest[place - 2]
            is_past = w.base_of_past(bare) is not None or bare.endswith("ed")
            if before in w.CONJUNCTIONS or before.endswith(","):
                joins = is_past and (is_inflected or following in w.DETERMINERS | w.OBJECTS)
                joins = joins or (third is not None and (is_inflected or third not in w.NOUN_VERBS))
                if joins or bare in w.NOMINATIVES - {"it", "you"}:
                    return True
            if bare in w.AUXILIARIES or w.only_past(bare):
                return True
        armed = armed or bare in w.CONJUNCTIONS or word.endswith(",")
    return False


def bare_of(word: str) -> str:
    return word.lower().strip(",()")


def _number_of(subject: list[str]) -> str:
    """Return singular, plural or an empty text for a subject."""
    bare = [bare_of(word) for word in subject if not (word.endswith("ly") and word.islower())]
    while len(bare) > 1 and bare[-1] in w.ADVERBS - {"both", "all"}:
        bare.pop()
    if not bare:
        return ""
    place = next((n for n, word in enumerate(bare) if n and word in w.PREPOSITIONS), len(bare))
    if "and" in bare[:place]:
        return "plural"
    if all(word[:1].isupper() for word in subject) and w.lowered([*subject, "x"]) == subject[0]:
        return "singular"
    if bare[0] in w.PLURAL or not (w.PLURAL - {"one"}).isdisjoint(bare[:2]):
        return "plural"
    if bare[0] in w.SINGULAR:
        return "singular"
    head = bare[place - 1]
    if head in w.PLURAL_NOUNS or (head.endswith("s") and not head.endswith(("ss", "us", "is", "'s"))):
        return "" if subject[place - 1][:1].isupper() and place > 0 and len(bare) > 1 else "plural"
    return "" if bare[0] in ("all", "some", "any", "more", "other") else "singular"


def _finite_place(words: list[str]) -> int | None:
    """Return the place of the verb that the sentence hangs on; None where it is not sure."""
    first = bare_of(words[0])
    if first in w.NOMINATIVES | {"everyone", "everybody", "someone", "somebody", "nobody"}:
        return _finite_after_pronoun(words)
    found: int | None = None
    for place, word in enumerate(words[1:], start=1):
        bare, before = bare_of(word), words[place - 1]
        clean_before = bare_of(before)
        after_preposition = bare in ("it", "you") and clean_before in w.PREPOSITIONS
        boundary = bare in w.SUBORDINATORS or (bare in w.NOMINATIVES and not after_preposition)
        if boundary or (found is not None and (before.endswith(",") or bare in w.CONJUNCTIONS)):
            break
        is_modal = word in w.MODALS and (clean_before in _PRONOUNS or clean_before not in w.DETERMINERS)
        if is_modal or (word in w.BE | w.HAVE | w.DO and clean_before not in w.MODALS | {"to"}):
            return place if found is None else None
        if _can_be_finite(words, place, clean_before):
            if found is not None:
                return None
            if w.only_past(word):
                return place
            found = place
    return found if found is not None and _is_clear(words, found) else None


def _finite_after_pronoun(words: list[str]) -> int | None:
    for place, bare in enumerate(words[1:5], start=1):
        if bare in w.AUXILIARIES | w.verbs() or w.base_of_past(bare) is not None or w.base_of_third(bare) is not None:
            return place
        if bare not in w.ADVERBS and not bare.endswith("ly"):
            return None
    return None


def _base_of(word: str) -> str:
    return w.base_of_past(word) or w.base_of_third(word) or word


def _can_be_finite(words: list[str], place: int, before: str) -> bool:
    word = words[place]
    if before in w.DETERMINERS | w.PREPOSITIONS | w.MODALS | w.DO | w.CONJUNCTIONS | {"very", "more", "most", "not"}:
        return False
    if w.base_of_past(word) is not None:
        return True
    if re.search(r"\d|'s$", before):
        return False
    number = _number_of(words[:place])
    if w.base_of_third(word) is not None:
        return number == "singular" and (not before.endswith("ing") or word not in w.NOUN_VERBS)
    is_plural = before.endswith("s") or before in w.PLURAL_NOUNS or before in w.ADVERBS
    return word in w.verbs() and number == "plural" and is_plural


def _is_clear(words: list[str], place: int) -> bool:
    word = words[place]
    following = bare_of(words[place + 1]) if place + 1 < len(words) else ""
    if any(part.endswith("ing") and bare_of(part)[:-3] in w.verbs() for part in words[1:place]):
        return False  # a man walking his dog ... without a finite verb
    past, third = w.base_of_past(word), w.base_of_third(word)
    if past is not None:
        if past == word:
            return _number_of(words[:place]) == "singular" and following in w.DETERMINERS
        has_object = following in w.DETERMINERS | w.OBJECTS or words[place + 1 : place + 2] != [following]
        opens_clause = following in w.SUBORDINATORS and _base_of(word) not in _OF_CLAUSES
        return not (following == "by" or opens_clause or (word in _OF_STATES and not has_object))
    if third is None:
        return word not in w.NOUN_VERBS or following not in ("", "and")
    if third not in w.NOUN_VERBS:
        return True
    subject = [bare_of(part) for part in words[:place]]
    is_plain = subject[0] in w.SINGULAR or (subject[0] == "the" and place == 2)
    opens = following in w.DETERMINERS | w.PREPOSITIONS | w.ADVERBS | w.SUBORDINATORS | {""}
    opens = opens or following.endswith(("ly", "ing"))
    return opens or (is_plain and w.PREPOSITIONS.isdisjoint(subject))
