"""The place of the finite verb in a sentence, by closed lists; none where several words could be it."""

import re

from mqan_data.questions import words as w

_OF_CLAUSES = w.listed("of_clauses")
_OF_STATES = w.listed("of_states")


def bare_of(word: str) -> str:
    """Return a word in small letters without marks around it."""
    return word.lower().strip(",()")


def number_of(subject: list[str]) -> str:
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


def finite_place(words: list[str]) -> int | None:
    """Return the place of the verb that the sentence hangs on; None where it is not sure."""
    first = bare_of(words[0])
    if first in w.NOMINATIVES | {"everyone", "everybody", "someone", "somebody", "nobody"}:
        return _finite_after_pronoun(words)
    if first in w.verbs() and words[1].endswith("ing"):
        return None  # "Continue talking", said to somebody
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
        return None if _hides_clause(words[:place]) else place
    first = weak[0]
    word, following = words[first], bare_of(words[first + 1])
    base = base_of(word)
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


def base_of(word: str) -> str:
    return w.base_of_past(word) or w.base_of_third(word) or word


def _can_be_finite(words: list[str], place: int, before: str, weak: list[int]) -> bool:
    word = words[place]
    if before in w.DETERMINERS | w.PREPOSITIONS | w.MODALS | w.DO | w.CONJUNCTIONS | {"very", "more", "most", "not"}:
        return False
    if re.search(r"\d|'s$", before) and w.base_of_past(word) is None:
        return False
    if w.base_of_past(word) is not None or re.fullmatch(r"[a-z]{2,}[^e]ed", word):
        return True
    number = number_of(words[:place] if not weak else words[: weak[0]])
    if w.base_of_third(word) is not None:
        return number == "singular" and (not before.endswith("ing") or word not in w.NOUN_VERBS)
    if word in w.verbs():
        return number == "plural" and (before.endswith("s") or before in w.PLURAL_NOUNS or before in w.ADVERBS)
    return False


def _is_clear(words: list[str], weak: list[int]) -> bool:
    """Return whether the first of the words that may be the verb is it."""
    place = weak[0]
    word = words[place]
    if base_of(word) not in w.verbs():
        return False
    following = bare_of(words[place + 1]) if place + 1 < len(words) else ""
    if any(part.endswith("ing") and bare_of(part)[:-3] in w.verbs() for part in words[1:place]):
        return False  # a man walking his dog ... without a finite verb
    past = w.base_of_past(word)
    if past is not None and w.only_past(word):
        return True
    if past is not None and past == word:
        return number_of(words[:place]) == "singular" and following in w.DETERMINERS
    if past is not None:
        has_object = following in w.DETERMINERS | {"him", "them", "it"} or words[place + 1 : place + 2] != [following]
        opens_clause = following in w.SUBORDINATORS and base_of(word) not in _OF_CLAUSES
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
