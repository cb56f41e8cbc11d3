"""What a question and its answer say together, word by word; none where the rules are not sure."""

import re
from dataclasses import dataclass
from typing import Final

from mqan_data.questions import words as w
from mqan_data.questions.finite import bare_of

_ASKED = re.compile(
    r"^(?:(?P<preposition>In|On|At|By|For|To|From|With|Under|During|Of|Into|Through) )?"
    r"(?P<word>who|whom|what|which|when|where|how many|how much|how long|how old|how tall|how high|how deep|how wide)\b"
    r" (?P<rest>.+)$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"^(?:(?:about|around|over|more than|nearly|approximately|at least|almost|up to|roughly) )?"
    r"(?:[\d.,]+(?: (?:hundred|thousand|million|billion))?|one|two|three|four|five|six|seven|eight|nine|ten|"
    r"eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    r"ninety|dozens|hundreds|thousands)$",
    re.IGNORECASE,
)
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_IN_TIME = re.compile(
    rf"^(?:the )?(?:early |late |mid-|mid )?(?:{_MONTH},? )?(?:\d{{3,4}}s?(?: (?:AD|BC|CE|BCE))?|"
    rf"\d\d?(?:st|nd|rd|th) century|{_MONTH}|spring|summer|autumn|winter)(?: of \d{{4}})?$"
)
_ON_TIME = re.compile(rf"^(?:\d\d? {_MONTH}|{_MONTH} \d\d?(?!\d))|^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
_AT_TIME = re.compile(r"^\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\.?|:\d\d| o'clock)$|^(?:noon|midnight)$", re.IGNORECASE)
_KEPT: Final = re.compile(
    r"^(?:in|on|at|by|from|near|during|after|before|since|until|under|between|around|within|across|through|behind|"
    r"outside|inside|along|throughout|over|above|below|beside|to|into|onto|when|while) ",
    re.IGNORECASE,
)
_GOING = w.listed("going")
_NAMING = w.listed("naming")
_NAMED = w.listed("named")
_GIVING = w.listed("giving")
_PARTICLES = w.listed("particles")
_WILLING = w.listed("willing")
_BROUGHT = w.listed("brought")
_STRANDED = w.PREPOSITIONS - {"than", "per", "past", "next", "before", "since", "inside", "outside", "near", "above"}
_NOT_NOUNS = w.listed("of_kinds")


@dataclass(frozen=True, slots=True)
class _Verbal:
    """What a question says around its verb: subject, verb in the form of a statement, its first form, and the rest."""

    subject: list[str]
    verb: str
    base: str
    rest: list[str]


def said(asked: str, answer: str) -> list[str] | None:
    """Return the words of the statement that a question makes with its answer; None where no rule fits."""
    match = _ASKED.match(asked)
    if match is None:
        return None
    word, rest = match["word"].lower(), match["rest"].split()
    if any(bare_of(part) in ("that", "who", "which", "whose", "why", "how") or part.endswith(",") for part in rest):
        return None
    if match["preposition"]:
        place = _after_noun(rest) if word in ("what", "which") else 0
        return None if place is None else _with_adjunct(rest[place:], _headed(match["preposition"].lower(), answer))
    if word == "when" or (word in ("what", "which") and rest[0] in ("year", "century", "month", "day", "date")):
        rest = rest if word == "when" else rest[1:]
        return _with_adjunct(rest, when(answer))
    if word == "where":
        return _with_adjunct(rest, answer, is_place=True)
    if word.startswith("how"):
        return _counted(word, rest, answer)
    if word in ("who", "whom") or rest[0] in w.BE | w.HAVE | w.DO | w.MODALS or _is_finite(rest[0]):
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
        if rest[place] in w.BE | w.HAVE | w.DO | w.MODALS:
            return place
        if _is_finite(rest[place]) and rest[place - 1] not in w.PREPOSITIONS | w.DETERMINERS:
            following = rest[place + 1] if place + 1 < len(rest) else ""
            if following in w.DETERMINERS | w.PREPOSITIONS | {""} or following[:1].isupper() or following[:1].isdigit():
                return place
            return None
    return None


def _is_finite(word: str) -> bool:
    return word.islower() and (w.base_of_past(word) or w.base_of_third(word)) is not None


def _is_verbal(rest: list[str]) -> bool:
    return bool(rest) and (rest[0] in w.participles() or (rest[0].endswith("ing") and len(rest[0]) > 5))


def _subject_or_object(word: str, rest: list[str], answer: str) -> list[str] | None:
    """Return the statement of a question whose answer is the subject or an object of its verb."""
    verb, behind = rest[0], rest[1:]
    if _KEPT.match(answer) or not behind or _is_no_noun(answer) or "happen" in " ".join(rest):
        return None
    if verb in w.DO or (verb in w.MODALS | w.HAVE and not _follows_verb(verb, behind[0])):
        found = _verbal(rest)
        return None if found is None else _with_object(found, answer)
    if verb in w.BE:
        stranded = bare_of(behind[-1]) in _STRANDED
        if _is_verbal(behind) and not stranded:
            return None if _disagree(verb, answer) else [answer, verb, *behind]
        split = _participle(behind)
        if stranded or (split is not None and behind[split] in _NAMING):
            if split is None:
                return None
            subject, rest = behind[:split], behind[split:]
            if stranded:
                return [*subject, verb, *rest, _within(answer)]
            return [*subject, verb, rest[0], _within(answer), *rest[1:]]
        if word == "what":
            is_noun = behind[0] in w.DETERMINERS or not behind[0].islower() or behind[0].endswith(("s", "'s"))
            if not is_noun or len(behind) < 2 or (split is None and _may_hide_participle(behind)):
                return None
            if split is not None and behind[split].endswith("ing"):
                return [*behind[:split], verb, behind[split], _within(answer), *behind[split + 1 :]]
            return [*behind, verb, _within(answer)]
        return [answer, verb, *behind] if behind[0] in w.DETERMINERS or behind[0].endswith("'s") else None
    if _is_finite(verb) or verb in w.MODALS | w.HAVE:
        return None if bare_of(behind[-1]) in _STRANDED or _disagree(verb, answer) else [answer, verb, *behind]
    return None


def _is_no_noun(answer: str) -> bool:
    """Return whether an answer begins with a verb or is a clause of its own."""
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
    if verb in w.HAVE:
        return word in w.participles() or word in w.DETERMINERS
    return word in w.verbs() | {"be", "have", "do", "not"}


def _participle(words: list[str]) -> int | None:
    """Return where a participle follows a subject."""
    for place in range(1, len(words)):
        word, before = words[place], words[place - 1]
        if before in w.DETERMINERS | w.PREPOSITIONS | {"most", "very", "and", "or"}:
            continue
        is_present = word.endswith("ing") and word[:-3] in w.verbs() - w.NOUN_VERBS
        if word in w.participles() or is_present:
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
    if subject[-1] in ("not", "never"):
        return None
    if any(
        one == "and" and not {two, three}.isdisjoint(w.verbs())
        for one, two, three in zip(rest, rest[1:], rest[2:] + [""], strict=False)
    ):
        return None
    verb = {"did": w.past_of, "does": w.third_of}.get(helper, str)(base)
    return _Verbal(subject, verb, base, rest)


def _base_place(words: list[str]) -> int | None:
    places = [
        place
        for place in range(1, len(words))
        if (words[place] in w.verbs() or words[place] in ("have", "do"))
        and words[place - 1] not in w.DETERMINERS | w.PREPOSITIONS | {"and", "or"}
    ]
    if not places:
        return None
    first = places[0]
    if words[0] in w.NOMINATIVES or words[first] not in w.NOUN_VERBS:
        return first
    if words[first - 1][:1].isupper() and len(places) == 1:
        return first
    following = places[1] if len(places) > 1 else None
    if following == first + 1:
        return following if words[following] not in w.NOUN_VERBS else None
    after = words[first + 1] if first + 1 < len(words) else ""
    return first if following is None or after in w.DETERMINERS else None


def _with_object(said: _Verbal, answer: str) -> list[str] | None:
    subject, verb, base, rest = said.subject, said.verb, said.base, said.rest
    answer = _within(answer)
    begin = [*subject, verb]
    while len(rest) > 1 and rest[0] == "to" and rest[1] in w.verbs() | {"be", "have"}:
        if base not in _WILLING:
            return None
        begin, base, rest = [*begin, *rest[:2]], rest[1], rest[2:]
    if base in ("do", "be", "happen"):
        return None
    if not rest:
        return [*begin, answer]
    if bare_of(rest[-1]) in _STRANDED:
        return [*begin, *rest, answer]
    for place, (one, other) in enumerate(zip(rest, rest[1:], strict=False)):
        if one in _STRANDED and other in _STRANDED:
            return [*begin, *rest[: place + 1], answer, *rest[place + 1 :]]
    if rest[0] in _PARTICLES:
        begin, rest = [*begin, rest[0]], rest[1:]
        if not rest:
            return [*begin, answer]
    has_preposition = any(part in w.PREPOSITIONS for part in rest)
    if rest[0] in w.PREPOSITIONS | {"when", "while", "because", "together"} or rest[0].endswith("ly"):
        return [*begin, answer, *rest]
    if base in _NAMED | _GIVING and not has_preposition:
        return [*begin, *rest, answer]
    return None


def _with_adjunct(words: list[str], adjunct: str, *, is_place: bool = False) -> list[str] | None:
    """Return the statement of a question for a time, a place, or what a preposition stands before."""
    if not adjunct or len(words) < 2 or words[0] not in w.BE | w.HAVE | w.DO | w.MODALS:
        return None
    found = _verbal(words)
    if found is None or found.subject[0] in ("there", "it") or found.base == "do":
        return None
    if any(word in w.BE | w.HAVE for word in found.subject):
        return None
    if is_place:
        is_vague = not adjunct[:1].isupper() or "to" in found.rest or not _BROUGHT.isdisjoint(found.rest)
        if not _KEPT.match(adjunct) and is_vague:
            return None
        if not _KEPT.match(adjunct):
            adjunct = f"{'to' if found.base in _GOING else 'in'} {_within(adjunct)}"
    rest = list(found.rest)
    if rest and bare_of(rest[-1]) in _STRANDED:
        rest, adjunct = rest[:-1], f"{rest[-1]} {re.sub(_KEPT, '', adjunct)}"
    return [*found.subject, found.verb, *rest, adjunct[:1].lower() + adjunct[1:] if _KEPT.match(adjunct) else adjunct]


def _counted(word: str, rest: list[str], answer: str) -> list[str] | None:
    if word != "how many":
        if word == "how much":
            found = _verbal(rest) if rest[0] in w.DO else None
            return None if found is None or not re.search(r"\d", answer) else _with_object(found, answer)
        quality = word.removeprefix("how ")
        if rest[0] not in w.BE or not re.match(r"\S*\d\S* \w+", answer) or _participle(rest[1:]) or len(rest) < 3:
            return None
        return [*rest[1:], rest[0], answer if answer.endswith(quality) else f"{answer} {quality}"]
    place = next((n for n in range(1, min(len(rest), 7)) if rest[n] in w.BE | w.HAVE | w.DO | w.MODALS), None)
    if place is None:
        place = _verb_of_many(rest)
    if place is None:
        return None
    noun, behind = rest[:place], rest[place:]
    if answer.split()[-1].casefold() == noun[-1].casefold():
        counted = [_within(answer)]
    elif _NUMBER.match(answer) and answer.casefold() not in ("one", "1"):
        counted = [answer, *noun]
    else:
        return None
    if behind[0] in w.BE and behind[1:2] == ["there"]:
        return ["there", behind[0], *counted, *behind[2:]]
    if behind[0] in w.DO | w.HAVE | w.MODALS and not _follows_verb(behind[0], behind[1] if behind[1:] else ""):
        found = _verbal(behind)
        return None if found is None else _with_object(found, " ".join(counted))
    if behind[0] in w.BE and len(behind) > 1 and not _is_verbal(behind[1:]) and behind[1] not in w.PREPOSITIONS:
        return None
    return [*counted, *behind] if len(behind) > 1 and bare_of(behind[-1]) not in _STRANDED else None


def _verb_of_many(rest: list[str]) -> int | None:
    for place in range(1, min(len(rest) - 1, 5)):
        word, before, after = rest[place], rest[place - 1], rest[place + 1]
        is_verb = word in w.verbs() or w.base_of_past(word) is not None
        if is_verb and (before.endswith("s") or before in w.PLURAL_NOUNS):
            opens = after in w.DETERMINERS | w.PREPOSITIONS or after[:1].isupper()
            return place if opens and word not in w.listed("of_states") else None
    return None


def _within(answer: str) -> str:
    """Return an answer as it is written within a sentence."""
    first, _, more = answer.partition(" ")
    return f"{first.lower()} {more}" if more and first in ("The", "A", "An", "His", "Her", "Its", "Their") else answer


def _headed(preposition: str, answer: str) -> str:
    return answer if answer.casefold().startswith(f"{preposition} ") else f"{preposition} {_within(answer)}"


def when(answer: str) -> str:
    """Return an answer with the preposition that a time has; empty where it is no time that is known."""
    if _KEPT.match(answer):
        return answer
    for preposition, times in (("at", _AT_TIME), ("on", _ON_TIME), ("in", _IN_TIME)):
        if times.match(answer):
            in_capitals = answer.startswith(("The ", "Early ", "Late "))
            return f"{preposition} {answer[:1].lower() + answer[1:] if in_capitals else answer}"
    return ""
