"""The finite verb of a statement, found by closed lists: what stands before it and behind it.

It is the first auxiliary, or the one word that can be no other than a verb in the past or the present. Where several
words could be it, there is none.
"""

import re
from dataclasses import dataclass
from typing import Final

from mqan_training.data.questions import words as w

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


def bare_of(word: str) -> str:
    """Return a word in small letters without marks around it."""
    return word.lower().strip(",()")


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
    is_attributed = "," in statement and _base(bare_of(words[-1])) in _OF_CLAUSES  # ..., officials say
    place = None if is_attributed else _finite(words)
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
    elif (past := w.base_of_past(verb)) is not None and not (past == verb and _number(subject) != "singular"):
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


def _number(subject: list[str]) -> str:
    """Return singular, plural or an empty text for a subject."""
    bare = [bare_of(word) for word in subject if not (word.endswith("ly") and word.islower())]
    while bare and bare[-1] in w.ADVERBS - {"both", "all"} and len(bare) > 1:
        bare.pop()
    if not bare:
        return ""
    place = next((n for n, word in enumerate(bare) if n and word in w.PREPOSITIONS), len(bare))
    if "and" in bare[:place]:
        return "plural"
    if (
        bare[0].endswith("ing")
        and bare[0][:-3] not in ("k", "w", "r", "th", "spr", "build", "morn", "even")
        and len(bare[0]) > 4
    ):
        return "singular"
    if all(word[:1].isupper() for word in subject) and w.lowered([*subject, "x"]) == subject[0]:
        return "singular"
    if bare[0] in w.PLURAL or any(word in w.PLURAL for word in bare[:2] if word not in ("one",)):
        return "plural"
    if bare[0] in w.SINGULAR:
        return "singular"
    head = bare[place - 1]
    if head in w.PLURAL_NOUNS or (head.endswith("s") and not head.endswith(("ss", "us", "is", "'s"))):
        return "" if subject[place - 1][:1].isupper() and place > 0 and len(bare) > 1 else "plural"
    if bare[0] in ("all", "some", "any", "more", "other"):
        return ""
    return "singular"


def _finite(words: list[str]) -> int | None:
    """Return the place of the verb that the sentence hangs on; None where it is not sure."""
    first = bare_of(words[0])
    if first in w.NOMINATIVES | {"everyone", "everybody", "someone", "somebody", "nobody"}:
        return _finite_after_pronoun(words)
    if (
        first in w.verbs()
        and len(words) > 1
        and bare_of(words[1]) in w.DETERMINERS | w.NOMINATIVES | {"me", "him", "them"}
    ):
        return None
    weak: list[int] = []
    for place, word in enumerate(words):
        bare = bare_of(word)
        if place == 0:
            if word.endswith(",") and (bare in w.COMMON or not word[0].isupper()):
                return None
            continue
        before = words[place - 1]
        clean_before = bare_of(before)
        after_preposition = bare in ("it", "you") and clean_before in w.PREPOSITIONS
        boundary = bare in w.SUBORDINATORS or (bare in w.NOMINATIVES and not after_preposition)
        if boundary or (weak and (before.endswith(",") or bare in w.CONJUNCTIONS)):
            if not weak:
                return None
            break
        known = w.DETERMINERS | w.CONJUNCTIONS | w.COMMON | w.BE
        if before.endswith(",") and not word[0].isupper() and bare not in known:
            return None
        if word != bare and bare in w.BE | w.HAVE | w.MODALS:
            return None
        if _is_auxiliary(words, place):
            return _first_or_auxiliary(words, weak, place)
        if word != bare and not word.endswith(","):
            continue
        if _can_be_finite(words, place, clean_before, weak):
            if w.only_past(word) and not weak:
                return place
            weak.append(place)
    if len(weak) != 1:
        return weak[0] if len(weak) > 1 and _is_clear(words, weak) else None
    return weak[0] if _is_clear(words, weak) else None


def _finite_after_pronoun(words: list[str]) -> int | None:
    for place in range(1, min(len(words), 5)):
        bare = words[place]
        if bare in w.BE | w.HAVE | w.DO | w.MODALS or bare in w.verbs():
            return place
        if w.base_of_past(bare) is not None or w.base_of_third(bare) is not None:
            return place
        if bare not in w.ADVERBS and not bare.endswith("ly"):
            return None
    return None


def _is_auxiliary(words: list[str], place: int) -> bool:
    word, before = words[place], bare_of(words[place - 1])
    if word in w.BE | w.HAVE | w.DO:
        return before not in w.MODALS and before != "to"
    if word in w.MODALS:
        return before not in w.DETERMINERS - {"this", "that", "these", "those", "both", "all", "each"}
    return False


def _first_or_auxiliary(words: list[str], weak: list[int], place: int) -> int | None:
    """Return the place of an auxiliary, unless a verb before it is the finite one: then that, or None."""
    if not weak:
        return None if _hidesclause_of(words[:place]) else place
    first = weak[0]
    word, following = words[first], bare_of(words[first + 1])
    base = _base(word)
    if place - first == 1:
        return place if w.base_of_past(word) is None else None
    is_past = w.base_of_past(word) is not None and not w.only_past(word)
    if base in _OF_CLAUSES:
        return first if following not in w.PREPOSITIONS and len(weak) == 1 and not is_past else None
    if (
        is_past
        and following != "to"
        and (following in w.PREPOSITIONS or following.endswith("ly") or following in w.ADVERBS)
    ):
        return place
    return None


def _hidesclause_of(subject: list[str]) -> bool:
    """Return whether a subject seems to hold a verb such as "say", and so the beginning of another clause."""
    has_participle = any(word.endswith("ing") for word in subject[1:])
    return any(
        word.islower()
        and _base(word) in _OF_CLAUSES
        and (has_participle or (_base(word) not in w.NOUN_VERBS and word == _base(word)))
        and before not in w.DETERMINERS
        for before, word in zip(subject, subject[1:], strict=False)
    )


def _base(word: str) -> str:
    return w.base_of_past(word) or w.base_of_third(word) or word


def _can_be_finite(words: list[str], place: int, before: str, weak: list[int]) -> bool:
    word = words[place]
    if before in w.DETERMINERS | w.PREPOSITIONS | w.MODALS | w.DO | w.CONJUNCTIONS | {"very", "more", "most", "not"}:
        return False
    if re.search(r"\d|'s$", before) and w.base_of_past(word) is None:
        return False
    if w.base_of_past(word) is not None or re.fullmatch(r"[a-z]{2,}[^e]ed", word):
        return True
    number = _number(words[:place] if not weak else words[: weak[0]])
    if w.base_of_third(word) is not None:
        return number == "singular" and (not before.endswith("ing") or word not in w.NOUN_VERBS)
    if word in w.verbs():
        return number == "plural" and (before.endswith("s") or before in w.PLURAL_NOUNS or before in w.ADVERBS)
    return False


def _is_clear(words: list[str], weak: list[int]) -> bool:
    """Return whether the first of the words that may be the verb is it."""
    place = weak[0]
    word = words[place]
    if _base(word) not in w.verbs():
        return False
    following = bare_of(words[place + 1]) if place + 1 < len(words) else ""
    if any(part.endswith("ing") and bare_of(part)[:-3] in w.verbs() for part in words[1:place]):
        return False  # a man walking his dog ... without a finite verb
    past = w.base_of_past(word)
    if past is not None and w.only_past(word):
        return True
    if past is not None and past == word:
        return _number(words[:place]) == "singular" and following in w.DETERMINERS
    if past is not None:
        has_object = following in w.DETERMINERS | {"him", "them", "it"} or words[place + 1 : place + 2] != [following]
        opens_clause = following in w.SUBORDINATORS and _base(word) not in _OF_CLAUSES
        if following == "by" or opens_clause or (word in _OF_STATES and not has_object):
            return False
        return len(weak) == 1 or following in w.DETERMINERS
    third = w.base_of_third(word)
    if len(weak) > 1 and words[weak[1]] != word and weak[1] == place + 1:
        return False
    if third is None:
        return len(weak) == 1 and (word not in w.NOUN_VERBS or following not in ("", "and"))
    bare_subject = [bare_of(part) for part in words[:place]]
    has_preposition = any(part in w.PREPOSITIONS for part in bare_subject)
    if third not in w.NOUN_VERBS:
        return True
    if any(
        later in w.verbs() - w.NOUN_VERBS and before not in w.MODALS | w.DO | {"to"}
        for before, later in zip(words[place:], words[place + 1 :], strict=False)
    ):
        return False
    certain = not has_preposition and (bare_subject[0] in w.SINGULAR or (bare_subject[0] == "the" and place == 2))
    opens = following in w.DETERMINERS | w.PREPOSITIONS | w.ADVERBS | w.SUBORDINATORS | {""} or following.endswith(
        ("ly", "ing")
    )
    return len(weak) == 1 and (certain or opens)
