"""What a question and its answer say together, as a statement; none where the rules are not sure."""

import re
from typing import Final, NamedTuple

from mqan_data.questions import words as w
from mqan_data.questions.clauses import bare_of

_ASKED = re.compile(
    r"^(?:(?P<preposition>In|On|At|By|For|To|From|With|Under|During|Of|Into|Through) )?"
    r"(?P<word>who|whom|what|which|when|where|how many)\b"
    r" (?P<rest>.+)$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"^(?:(?:about|around|over|more than|nearly|approximately|at least|almost|up to|roughly) )?"
    rf"(?:[\d.,]+(?: (?:hundred|thousand|million|billion))?|{'|'.join(sorted(w.listed('numbers')))})$",
    re.IGNORECASE,
)
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_TIMES: Final = {  # by the preposition that they take
    "at": re.compile(r"^\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\.?|:\d\d| o'clock)$|^(?:noon|midnight)$", re.IGNORECASE),
    "on": re.compile(rf"^(?:\d\d? {_MONTH}|{_MONTH} \d\d?(?!\d))|^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"),
    "in": re.compile(
        rf"^(?:the )?(?:early |late |mid-|mid )?(?:{_MONTH},? )?(?:\d{{3,4}}s?(?: (?:AD|BC|CE|BCE))?|"
        rf"\d\d?(?:st|nd|rd|th) century|{_MONTH}|spring|summer|autumn|winter)(?: of \d{{4}})?$"
    ),
}
_KEPT: Final = re.compile(rf"^(?:{'|'.join(sorted(w.listed('of_places')))}) ", re.IGNORECASE)
_FRONTED = re.compile(r"^(?P<front>(?:In|On|At|During|After|Before|Since|By) [^,?]{1,40}), (?P<question>.+)$")
_GOING, _NAMING, _NAMED, _GIVING = (w.listed(name) for name in ("going", "naming", "named", "giving"))
_BROUGHT, _NOT_NOUNS = w.listed("brought"), w.listed("of_kinds")
_STRANDED = w.PREPOSITIONS - {"than", "per", "past", "next", "before", "since", "inside", "outside", "near", "above"}
_LIMIT = 40  # words


class _Verbal(NamedTuple):
    """A question around its verb: subject, verb in the form of a statement, its first form, and the rest."""

    subject: list[str]
    verb: str
    base: str
    rest: list[str]


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
        text, front = statement_of(_capital(fronted["question"]), answer), fronted["front"]
        return None if text is None or " " in _when(answer)[:3] else f"{text[:-1]} {front[:1].lower()}{front[1:]}."
    words = _said(asked, answer)
    return None if words is None else f"{_capital(' '.join(words))}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _said(asked: str, answer: str) -> list[str] | None:
    match = _ASKED.match(asked)
    if match is None:
        return None
    word, rest = match["word"].lower(), match["rest"].split()
    if any(bare_of(part) in ("that", "who", "which", "whose", "why", "how") or part.endswith(",") for part in rest):
        return None
    if match["preposition"]:
        place = _after_noun(rest) if word in ("what", "which") else 0
        head = f"{match['preposition'].lower()} "
        headed = answer if answer.casefold().startswith(head) else head + _within(answer)
        return None if place is None else _with_adjunct(rest[place:], headed)
    if word == "when":
        return _with_adjunct(rest, _when(answer))
    if word in ("what", "which") and rest[0] in ("year", "century", "month", "day", "date"):
        return _with_adjunct(rest[1:], _when(answer))
    if word == "where":
        return _with_adjunct(rest, answer, is_place=True)
    if word == "how many":
        return _counted(rest, answer)
    if word in ("who", "whom") or rest[0] in w.AUXILIARIES or _is_finite(rest[0]):
        return _subject_or_object(word, rest, answer)
    place = _after_noun(rest)
    if place is None or _NOT_NOUNS & set(rest[:place]) or any(part.endswith(("'s", "s'")) for part in rest[:place]):
        return None
    if rest[place] in w.DO and not (answer[:1].isupper() or answer[:1].isdigit() or answer.split()[0] in w.DETERMINERS):
        return None
    if rest[place] in w.BE and not _is_verbal(rest[place + 1 :]):
        return None  # which city is the capital: either way round
    return _subject_or_object("who", rest[place:], answer)


def _after_noun(rest: list[str]) -> int | None:
    """Return where the verb follows the noun that "which" asks about."""
    for place in range(1, min(len(rest), 7)):
        if rest[place] in w.AUXILIARIES:
            return place
        if _is_finite(rest[place]) and rest[place - 1] not in w.PREPOSITIONS | w.DETERMINERS:
            following = rest[place + 1] if place + 1 < len(rest) else ""
            opens = following in w.DETERMINERS | w.PREPOSITIONS | {""} or re.match(r"[A-Z\d]", following)
            return place if opens else None
    return None


def _is_finite(word: str) -> bool:
    return word.islower() and (w.base_of_past(word) or w.base_of_third(word)) is not None


def _is_verbal(rest: list[str]) -> bool:
    return bool(rest) and (rest[0] in w.participles() or (rest[0].endswith("ing") and len(rest[0]) > 5))


def _subject_or_object(word: str, rest: list[str], answer: str) -> list[str] | None:
    verb, behind = rest[0], rest[1:]
    if _KEPT.match(answer) or not behind or _is_no_noun(answer) or "happen" in " ".join(rest):
        return None
    if verb in w.DO or (verb in w.MODALS | w.HAVE and not _follows_verb(verb, behind[0])):
        return _with_object(_verbal(rest), answer)
    stranded = bare_of(behind[-1]) in _STRANDED
    if verb not in w.BE:
        fits = not stranded and not _disagree(verb, answer) and (_is_finite(verb) or verb in w.MODALS | w.HAVE)
        return [answer, *rest] if fits else None
    if _is_verbal(behind) and not stranded:
        return None if _disagree(verb, answer) else [answer, *rest]
    split = _participle(behind)
    if stranded:
        return None if split is None else [*behind[:split], verb, *behind[split:], _within(answer)]
    if split is not None and (behind[split] in _NAMING or (word == "what" and behind[split].endswith("ing"))):
        return [*behind[:split], verb, behind[split], _within(answer), *behind[split + 1 :]]
    if word == "what":
        is_noun = behind[0] in w.DETERMINERS or not behind[0].islower() or behind[0].endswith("s")
        is_sure = len(behind) > 1 and is_noun and (split is not None or not _may_hide_participle(behind))
        return [*behind, verb, _within(answer)] if is_sure else None
    return [answer, *rest] if behind[0] in w.DETERMINERS or behind[0].endswith("'s") else None


def _is_no_noun(answer: str) -> bool:
    first, *more = answer.split()
    clause = any(word in w.BE | w.HAVE | w.MODALS for word in more) or first.lower() in w.NOMINATIVES - {"it"}
    verbal = first.islower() and (first in w.participles() or first in w.verbs() - w.NOUN_VERBS or first == "to")
    return clause or verbal or first.lower() in ("because", "if", "that", "when", "these", "not", "yes", "no", "there")


def _disagree(verb: str, answer: str) -> bool:
    """Return whether a verb is singular and an answer plural, or the other way round, as far as can be seen."""
    last = answer.split()[-1]
    plural = " and " in answer or (answer.islower() and last.endswith("s") and not last.endswith(("ss", "us", "is")))
    if verb in ("is", "was", "has") or (verb not in w.BE and w.base_of_third(verb) is not None):
        return plural
    return verb in ("are", "were", "have") and not plural and not answer[:1].isupper() and not last.endswith("s")


def _follows_verb(verb: str, word: str) -> bool:
    """Return whether a word continues an auxiliary, so that the subject was asked for."""
    return word in (w.participles() | w.DETERMINERS if verb in w.HAVE else w.verbs() | {"be", "have", "do", "not"})


def _participle(words: list[str]) -> int | None:
    for place in range(1, len(words)):
        word = words[place]
        if words[place - 1] in w.DETERMINERS | w.PREPOSITIONS | {"most", "very", "and", "or"}:
            continue
        if word in w.participles() or (word.endswith("ing") and word[:-3] in w.verbs() - w.NOUN_VERBS):
            while place > 1 and (words[place - 1].endswith("ly") or words[place - 1] in w.ADVERBS | {"most"}):
                place -= 1
            return place
    return None


def _may_hide_participle(words: list[str]) -> bool:
    return any(word.endswith("ed") and word.islower() and word not in w.participles() for word in words[1:])


def _verbal(words: list[str]) -> _Verbal | None:
    """Return what follows "when" or "whom": auxiliary, subject, verb and the rest; None where the verb is not sure."""
    helper, behind = words[0], words[1:]
    if helper in w.BE | w.HAVE:
        place = _participle(behind)
        if place is None and (helper in w.HAVE or _may_hide_participle(behind)):
            return None
        place = len(behind) if place is None else place
        return _Verbal(behind[:place], helper, "be", behind[place:])
    place = _base_place(behind)
    if place is None:
        return None
    subject, base, rest = behind[:place], behind[place], behind[place + 1 :]
    if helper in w.MODALS:
        return _Verbal(subject, f"{helper} {base}", base, rest)
    joined = (rest[n + 1 : n + 3] for n, word in enumerate(rest) if word == "and")
    if subject[-1] in ("not", "never") or any(not w.verbs().isdisjoint(words) for words in joined):
        return None
    return _Verbal(subject, {"did": w.past_of, "does": w.third_of}.get(helper, str)(base), base, rest)


def _base_place(words: list[str]) -> int | None:
    places = [
        place
        for place in range(1, len(words))
        if (words[place] in w.verbs() or words[place] in ("have", "do"))
        and words[place - 1] not in w.DETERMINERS | w.PREPOSITIONS | {"and", "or"}
    ]
    if not places:
        return None
    first, following = places[0], places[1] if len(places) > 1 else None
    if words[0] in w.NOMINATIVES or words[first] not in w.NOUN_VERBS:
        return first
    after = words[first + 1] if first + 1 < len(words) else ""
    return first if following is None or after in w.DETERMINERS else None


def _with_object(said: _Verbal | None, answer: str) -> list[str] | None:
    if said is None:
        return None
    subject, verb, base, rest = said
    answer, begin = _within(answer), [*subject, verb]
    if base in ("do", "be", "happen") or rest[:1] == ["to"]:
        return None
    if rest and bare_of(rest[-1]) in _STRANDED:
        return [*begin, *rest, answer]
    for place, (one, other) in enumerate(zip(rest, rest[1:], strict=False)):
        if one in _STRANDED and other in _STRANDED:
            return [*begin, *rest[: place + 1], answer, *rest[place + 1 :]]
    if not rest or rest[0] in w.PREPOSITIONS | {"when", "while", "because", "together"} or rest[0].endswith("ly"):
        return [*begin, answer, *rest]
    takes_two = base in _NAMED | _GIVING and w.PREPOSITIONS.isdisjoint(rest)
    return [*begin, *rest, answer] if takes_two else None


def _with_adjunct(words: list[str], adjunct: str, *, is_place: bool = False) -> list[str] | None:
    found = _verbal(words) if adjunct and len(words) > 1 and words[0] in w.AUXILIARIES else None
    if found is None or found.subject[0] in ("there", "it") or found.base == "do":
        return None
    rest = list(found.rest)
    if is_place and not _KEPT.match(adjunct):
        if not adjunct[:1].isupper() or "to" in rest or not _BROUGHT.isdisjoint(rest):
            return None
        adjunct = f"{'to' if found.base in _GOING else 'in'} {_within(adjunct)}"
    if rest and bare_of(rest[-1]) in _STRANDED:
        return None
    return [*found.subject, found.verb, *rest, adjunct[:1].lower() + adjunct[1:] if _KEPT.match(adjunct) else adjunct]


def _counted(rest: list[str], answer: str) -> list[str] | None:
    place = next((n for n in range(1, min(len(rest), 7)) if rest[n] in w.AUXILIARIES), None)
    if place is None:
        return None
    noun, behind = rest[:place], rest[place:]
    if not _NUMBER.match(answer) or answer.casefold() in ("one", "1"):
        return None
    counted = [answer, *noun]
    if behind[0] in w.BE and behind[1:2] == ["there"]:
        return ["there", behind[0], *counted, *behind[2:]]
    if behind[0] in w.DO | w.HAVE | w.MODALS and not _follows_verb(behind[0], behind[1] if behind[1:] else ""):
        return _with_object(_verbal(behind), " ".join(counted))
    if behind[0] in w.BE and len(behind) > 1 and not _is_verbal(behind[1:]) and behind[1] not in w.PREPOSITIONS:
        return None
    return [*counted, *behind] if len(behind) > 1 and bare_of(behind[-1]) not in _STRANDED else None


def _within(answer: str) -> str:
    first, _, more = answer.partition(" ")
    return f"{first.lower()} {more}" if more and first in ("The", "A", "An", "His", "Her", "Its", "Their") else answer


def _when(answer: str) -> str:
    """Return an answer with the preposition that a time has; empty where it is no time that is known."""
    if _KEPT.match(answer):
        return answer
    preposition = next((word for word, times in _TIMES.items() if times.match(answer)), "")
    in_capitals = answer.startswith(("The ", "Early ", "Late "))
    return preposition and f"{preposition} {answer[:1].lower() + answer[1:] if in_capitals else answer}"
