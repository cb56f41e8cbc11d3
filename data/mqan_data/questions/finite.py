"""The place of the finite verb in a sentence, by closed lists; none where several words could be it."""

import re

from mqan_data.questions import words as w

_OF_CLAUSES = w.listed("of_clauses")
_OF_STATES = w.listed("of_states")
_NO_VERBS = ("k", "w", "r", "th", "spr", "build", "morn", "even")  # before "ing"


def bare_of(word: str) -> str:
    """Return a word in small letters without marks around it."""
    return word.lower().strip(",()")


def number_of(subject: list[str]) -> str:
    """Return singular, plural or an empty text for a subject."""
    bare = [bare_of(word) for word in subject if not (word.endswith("ly") and word.islower())]
    while len(bare) > 1 and bare[-1] in w.ADVERBS - {"both", "all"}:
        bare.pop()
    if not bare:
        return ""
    place = next((n for n, word in enumerate(bare) if n and word in w.PREPOSITIONS), len(bare))
    if "and" in bare[:place]:
        return "plural"
    if bare[0].endswith("ing") and len(bare[0]) > 4 and bare[0][:-3] not in _NO_VERBS:
        return "singular"
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


def finite_place(words: list[str]) -> int | None:
    """Return the place of the verb that the sentence hangs on; None where it is not sure."""
    first, second = bare_of(words[0]), words[1] if len(words) > 1 else ""
    if first in w.NOMINATIVES | {"everyone", "everybody", "someone", "somebody", "nobody"}:
        return _finite_after_pronoun(words)
    if words[0].endswith(",") and (first in w.COMMON or not words[0][0].isupper()):
        return None
    if first in w.verbs() and (
        second.endswith("ing") or bare_of(second) in w.DETERMINERS | w.NOMINATIVES | {"me", "him", "them"}
    ):
        return None  # "Continue talking", said to somebody
    weak: list[int] = []
    for place, word in enumerate(words[1:], start=1):
        bare, before = bare_of(word), words[place - 1]
        clean_before = bare_of(before)
        after_preposition = bare in ("it", "you") and clean_before in w.PREPOSITIONS
        boundary = bare in w.SUBORDINATORS or (bare in w.NOMINATIVES and not after_preposition)
        if boundary or (weak and (before.endswith(",") or bare in w.CONJUNCTIONS)):
            break
        known = w.DETERMINERS | w.CONJUNCTIONS | w.COMMON | w.BE
        if before.endswith(",") and not word[0].isupper() and bare not in known:
            return None
        if word != bare and bare in w.BE | w.HAVE | w.MODALS:
            return None
        if _is_auxiliary(word, clean_before):
            return _first_or_auxiliary(words, weak, place)
        if _can_be_finite(words, place, clean_before, weak):
            if w.only_past(word) and not weak:
                return place
            weak.append(place)
    return weak[0] if weak and _is_clear(words, weak) else None


def _finite_after_pronoun(words: list[str]) -> int | None:
    for place, bare in enumerate(words[1:5], start=1):
        if bare in w.AUXILIARIES | w.verbs() or w.base_of_past(bare) is not None or w.base_of_third(bare) is not None:
            return place
        if bare not in w.ADVERBS and not bare.endswith("ly"):
            return None
    return None


def _is_auxiliary(word: str, before: str) -> bool:
    if word in w.BE | w.HAVE | w.DO:
        return before not in w.MODALS | {"to"}
    return word in w.MODALS and before not in w.DETERMINERS - {"this", "that", "these", "those", "both", "all", "each"}


def _first_or_auxiliary(words: list[str], weak: list[int], place: int) -> int | None:
    """Return the place of an auxiliary, unless a verb before it is the finite one: then that, or None."""
    if not weak:
        return None if _hides_clause(words[:place]) else place
    first = weak[0]
    word, following = words[first], bare_of(words[first + 1])
    if place - first == 1:
        return place if w.base_of_past(word) is None else None
    is_past = w.base_of_past(word) is not None and not w.only_past(word)
    if base_of(word) in _OF_CLAUSES:
        return first if following not in w.PREPOSITIONS and len(weak) == 1 and not is_past else None
    opens = following in (w.PREPOSITIONS | w.ADVERBS) - {"to"} or following.endswith("ly")
    return place if is_past and opens else None


def base_of(word: str) -> str:
    """Return the first form of a verb; other words as they are."""
    return w.base_of_past(word) or w.base_of_third(word) or word


def _can_be_finite(words: list[str], place: int, before: str, weak: list[int]) -> bool:
    word = words[place]
    if before in w.DETERMINERS | w.PREPOSITIONS | w.MODALS | w.DO | w.CONJUNCTIONS | {"very", "more", "most", "not"}:
        return False
    if w.base_of_past(word) is not None:
        return True
    if re.search(r"\d|'s$", before):
        return False
    if re.fullmatch(r"[a-z]{2,}[^e]ed", word):
        return True
    number = number_of(words[: weak[0] if weak else place])
    if w.base_of_third(word) is not None:
        return number == "singular" and (not before.endswith("ing") or word not in w.NOUN_VERBS)
    is_plural = before.endswith("s") or before in w.PLURAL_NOUNS or before in w.ADVERBS
    return word in w.verbs() and number == "plural" and is_plural


def _is_clear(words: list[str], weak: list[int]) -> bool:
    """Return whether the first of the words that may be the verb is it."""
    place = weak[0]
    word = words[place]
    if base_of(word) not in w.verbs():
        return False
    following = bare_of(words[place + 1]) if place + 1 < len(words) else ""
    if any(part.endswith("ing") and bare_of(part)[:-3] in w.verbs() for part in words[1:place]):
        return False  # a man walking his dog ... without a finite verb
    past, third = w.base_of_past(word), w.base_of_third(word)
    if past is not None:
        if w.only_past(word):
            return True
        if past == word:
            return number_of(words[:place]) == "singular" and following in w.DETERMINERS
        has_object = following in w.DETERMINERS | w.OBJECTS or words[place + 1 : place + 2] != [following]
        opens_clause = following in w.SUBORDINATORS and base_of(word) not in _OF_CLAUSES
        if following == "by" or opens_clause or (word in _OF_STATES and not has_object):
            return False
        return len(weak) == 1 or following in w.DETERMINERS
    if len(weak) > 1 and words[weak[1]] != word and weak[1] == place + 1:
        return False
    if third is None:
        return len(weak) == 1 and (word not in w.NOUN_VERBS or following not in ("", "and"))
    if third not in w.NOUN_VERBS:
        return True
    pairs = zip(words[place:], words[place + 1 :], strict=False)
    if len(weak) > 1 or any(
        later in w.verbs() - w.NOUN_VERBS and before not in w.MODALS | w.DO | {"to"} for before, later in pairs
    ):
        return False
    subject = [bare_of(part) for part in words[:place]]
    is_plain = subject[0] in w.SINGULAR or (subject[0] == "the" and place == 2)
    opens = following in w.DETERMINERS | w.PREPOSITIONS | w.ADVERBS | w.SUBORDINATORS | {""}
    opens = opens or following.endswith(("ly", "ing"))
    return opens or (is_plain and w.PREPOSITIONS.isdisjoint(subject))


def _hides_clause(subject: list[str]) -> bool:
    """Return whether a subject seems to hold a verb such as "say", and so the beginning of another clause."""
    has_participle = any(word.endswith("ing") for word in subject[1:])
    return any(
        word.islower()
        and base_of(word) in _OF_CLAUSES
        and (has_participle or (base_of(word) not in w.NOUN_VERBS and word == base_of(word)))
        and before not in w.DETERMINERS
        for before, word in zip(subject, subject[1:], strict=False)
    )
