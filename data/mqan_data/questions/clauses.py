"""The finite verb of a statement, found by closed lists: what stands before it and behind it.

It is the first auxiliary, or the one word that can be no other than a verb in the past or the present. Where several
words could be it, there is none.
"""

import re
from dataclasses import dataclass
from typing import Final

from mqan_data.questions import words as w
from mqan_data.questions.finite import bare_of, base_of, finite_place, number_of

_REFUSED = re.compile(r'["“”?;:\n\t\[\]{}<>|*#_]|\.\.|-LRB-|``|\'\'| - | -- |—|(?<![A-Z])[.!] +\S')
_ABBREVIATED = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Gen|Col|Sen|Gov|Rev|Jan|Feb|Aug|Sept|Oct|Nov|Dec|Jr|Sr|Inc|Ltd|Co|Mt|No)\. "
)
_CONTRACTED = re.compile(r"^(\w+)n['’]t$")
_SUFFIXES: Final = {"re": "are", "ve": "have", "ll": "will", "m": "am"}
_TAKES_S = w.NOMINATIVES | {"there", "that", "everyone", "everybody", "nobody", "someone"}
_NOT_FIRST = (
    w.listed("not_first") | w.CONJUNCTIONS | (w.SUBORDINATORS - {"that"}) | (w.MODALS - {"may", "will"}) | w.BE | w.HAVE
    | w.DO
)  # fmt: skip
_OF_CLAUSES = w.listed("of_clauses")
_OF_STATES = w.listed("of_states")
_COUNTED = w.listed("counted")
_LINKING = w.listed("linking")
_MOST_WORDS = 80
_PARTICIPLE = re.compile(r"\w+(?:ed|en|wn|ght|ung|elt)$")


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement around its finite verb.

    Attributes:
        subject: words before it.
        auxiliary: the verb where it can move to the front; else empty.
        base, helper: else its first form, and the form of "do" that takes its place.
        rest: words behind it.
    """

    subject: list[str]
    auxiliary: str
    base: str
    helper: str
    rest: list[str]


def _words_of(statement: str) -> list[str] | None:
    """Return the words of a statement with contractions in full; None where it is more than one plain sentence."""
    text = " ".join(statement.split()).replace("’", "'")
    text = re.sub(r" ([,.!])", r"\1", re.sub(r" ('s|n't)\b", r"\1", text))
    if re.search(r"[A-Z]\.$", text) is None or text.count(".") == 1:
        text = text.rstrip(".! ")
    odd_marks = re.search(r"(?:^| )['‘]\S", text) is not None and re.search(r"\S'(?: |$)", text) is None
    if (
        not text
        or odd_marks
        or (text.endswith("'") and " '" not in text)
        or _REFUSED.search(_ABBREVIATED.sub(" ", text))
    ):
        return None
    words: list[str] = []
    for word in text.split():
        contracted = _CONTRACTED.match(word)
        stem, mark, suffix = word.partition("'")
        if contracted:
            full = {"ca": "can", "wo": "will", "ai": "", "sha": "shall"}.get(contracted[1].lower(), contracted[1])
            if not full:
                return None
            words += [full, "not"]
        elif mark and suffix in _SUFFIXES:
            words += [stem, _SUFFIXES[suffix]]
        elif mark and suffix == "s" and stem.lower() in _TAKES_S:
            words += [stem, "'s"]
        elif word.lower() == "cannot":
            words += ["can", "not"]
        elif mark and suffix == "d":
            return None
        else:
            words.append(word)
    for place, word in enumerate(words):
        if word == "'s":
            following = _after_adverbs(words, place + 1)
            if following in ("been", "got", "had"):
                words[place] = "has"
            elif following in w.participles() and w.base_of_past(following) is not None and place != 1:
                return None
            else:
                words[place] = "is"
    return words


def _after_adverbs(words: list[str], place: int) -> str:
    while place < len(words) - 1 and (bare_of(words[place]) in w.ADVERBS or words[place].endswith("ly")):
        place += 1
    return bare_of(words[place]) if place < len(words) else ""


def looks_finite(word: str) -> bool:
    """Return whether a word can be a finite verb."""
    word = bare_of(word)
    return word in w.BE | w.HAVE | w.DO | w.MODALS or w.base_of_past(word) is not None or w.only_past(word)


def clause_of(statement: str) -> Clause | None:
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
    following = _after_adverbs(words, place + 1)
    if verb in w.BE | w.MODALS or (verb in w.DO and rest[:1] == ["not"]):
        return None if _joined(rest) or _again(verb, rest) else Clause(subject, verb, "", "", rest)
    if verb in w.HAVE:
        is_auxiliary = following in w.participles() or (_PARTICIPLE.match(following) and rest[0] not in w.DETERMINERS)
        if is_auxiliary or rest[:1] == ["not"]:
            if not is_auxiliary or following == "better":
                return None
            return None if _joined(rest) or _again(verb, rest) else Clause(subject, verb, "", "", rest)
    if bare_of(subject[0]) == "there":
        return None
    if following == "yet":
        return None
    if verb in w.DO and not rest:
        return None
    if verb in w.HAVE | w.DO:
        base = "have" if verb in w.HAVE else "do"
        helper = {"has": "does", "have": "do", "had": "did"}.get(verb, verb)
    elif (past := w.base_of_past(verb)) is not None and not (past == verb and number_of(subject) != "singular"):
        base, helper = past, "did"
    elif (third := w.base_of_third(verb)) is not None:
        base, helper = third, "does"
    else:
        base, helper = verb, "do"
    if verb == "used" and following == "to":
        return None
    second = _second_verbs(rest, helper, base)
    return None if second is None or _joined(second) else Clause(subject, "", base, helper, second)


def _second_verbs(rest: list[str], helper: str, first: str) -> list[str] | None:
    """Return the words behind a verb, where a second verb that "and" joins to it takes its first form, too."""
    changed = list(rest)
    for place, word in enumerate(rest):
        bare = bare_of(word)
        if bare in w.SUBORDINATORS or bare in w.NOMINATIVES - {"it", "you"}:
            return changed
        before = rest[place - 1] if place else ""
        if before.endswith("ly") and place > 1:
            before = rest[place - 2]
        after_conjunction = before in ("and", "or", "but", "then")
        if not after_conjunction:
            continue
        if helper == "did" and (base := w.base_of_past(bare)) is not None and word == bare:
            is_clear = w.only_past(bare) or (
                first not in _LINKING and place + 1 < len(rest)
                and (rest[place + 1] in w.DETERMINERS | w.PREPOSITIONS or rest[place + 1] in ("him", "them", "it"))
                and bare not in _OF_STATES
            )  # fmt: skip
            if not is_clear:
                return None
            changed[place] = base
        elif helper == "does" and (base := w.base_of_third(bare)) is not None and word == bare:
            following = rest[place + 1] if place + 1 < len(rest) else ""
            if base in w.NOUN_VERBS and following not in w.DETERMINERS:
                return None
            changed[place] = base
    return changed


def _joined(rest: list[str]) -> bool:
    """Return whether a second finite verb stands behind "and" or a comma, in no clause of its own."""
    armed = False
    for place, word in enumerate(rest):
        bare = bare_of(word)
        if bare in w.SUBORDINATORS and not armed:
            return False
        if bare in w.SUBORDINATORS:
            armed = False
            continue
        before = rest[place - 1] if place else ""
        if bare == "but" and not {"not", "also", *w.PREPOSITIONS} & set(rest[max(place - 9, 0) : place + 2]):
            return True
        if armed and word == bare:
            if before.endswith("ly") and place > 1:
                before = rest[place - 2]
            joins = before in w.CONJUNCTIONS or before.endswith(",")
            following = rest[place + 1] if place + 1 < len(rest) else ""
            is_past = w.base_of_past(bare) is not None or bare.endswith("ed")
            if joins and is_past and following in w.DETERMINERS | {"him", "them", "it"}:
                return True
            if bare in w.BE | w.HAVE | w.MODALS | w.DO or w.only_past(bare):
                return True
            third = w.base_of_third(bare)
            if joins and third is not None and third not in w.NOUN_VERBS:
                return True
            if joins and bare in w.NOMINATIVES - {"it", "you"}:
                return True
        if bare in w.CONJUNCTIONS or word.endswith(","):
            armed = True
    return False


def _again(verb: str, rest: list[str]) -> bool:
    """Return whether a second auxiliary follows that no word opens a clause for, or a whole clause behind ", and"."""
    clauses = w.SUBORDINATORS | w.NOMINATIVES | w.CONJUNCTIONS | {"than", "as", "before", "after", "since", "until"}
    for place, word in enumerate(rest):
        bare, before = bare_of(word), rest[place - 1] if place else ""
        if bare in w.CONJUNCTIONS and before.endswith(",") and len(rest) - place > 3:
            return any(
                later in w.verbs() - w.NOUN_VERBS and previous not in w.MODALS | {"to"}
                for previous, later in zip(rest[place + 1 :], rest[place + 2 :], strict=False)
            )
        if bare in clauses or before.endswith(","):
            return False
        of_first = word == "have" and verb in w.MODALS | w.DO
        if word in w.BE | w.HAVE | w.MODALS and before != "to" and not of_first:
            return True
    return False
