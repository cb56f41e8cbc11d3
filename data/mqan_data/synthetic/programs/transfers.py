"""Who sold what to whom, who beat whom: one to three events whose sides are asked for, in either order of words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np

from mqan_core.example import Example
from mqan_data.synthetic.programs.told import Span, Told, load, part_of, usable, worded

_HELD_BACK = 7  # each so many of the verbs is for validation only
_OF_FIRMS = ("goods", "land", "money", "prizes", "rights")


def _file() -> Any:
    return load("transfers")


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of two sides: its forms, what changes hands (empty for nothing), and whether it excludes the reverse."""

    forms: Mapping[str, str]
    things: str
    once: bool = True

    @property
    def templates(self) -> Any:
        return _file()["of_given" if self.things else "of_done"]

    @property
    def is_state(self) -> bool:  # what somebody is, which has no time
        return self.forms["base"].startswith("be ")


@cache
def verbs(*, held_back: bool) -> tuple[Verb, ...]:
    """Return the verbs to train on, or those that are for validation only."""
    found = []
    for base, past, participle, to, other, other_past, other_participle, of, things in _file()["given"]:
        forms = _forms(base, past, participle, other, other_past, other_participle)
        found.append(Verb({**forms, "to": to, "of": of, "what": "How much" if things == "money" else "What"}, things))
    for base, past, participle, other, other_past, once in _file()["done"]:
        found.append(Verb(_forms(base, past, participle, other, other_past, ""), "", bool(once)))
    return tuple(part_of(found, _HELD_BACK, held_back=held_back))


def _forms(*words: str) -> dict[str, str]:
    """Return the forms of a verb; "alone" are those that tell the sides apart by themselves."""
    forms = dict(zip(("base", "past", "participle", "other", "other_past", "other_participle"), words, strict=True))
    for name, other in (("past", "other_past"), ("other_past", "past"), ("participle", "other_participle")):
        forms[f"{name}_alone"] = forms[name] if forms[name] != forms[other] else ""
    for side, base in (("", forms["base"]), ("other_", forms["other"])):
        forms[f"{side}did"] = base and ("was" if base.startswith("be ") else "did")
        forms[f"{side}do"] = base.removeprefix("be ")
    return forms


@dataclass(frozen=True, slots=True)
class Event:
    """One event: the verb, both sides, and the thing."""

    verb: Verb
    a: str
    b: str
    x: str = ""

    def values(self) -> dict[str, str]:
        is_plural = self.verb.things == "money" or self.x in _file()["plural"]
        return {**self.verb.forms, "a": self.a, "b": self.b, "x": self.x, "was": "were" if is_plural else "was"}


@dataclass(frozen=True, slots=True)
class _Cast:
    """Names of a text, the last of whom it does not name, with pronouns in the nominative and in another case."""

    names: tuple[str, ...]
    pronouns: dict[str, tuple[str, str]] = field(default_factory=dict)


def ask_transfers(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a text about one to three events, and ask about one of them."""
    cast, known = _cast(chance), verbs(held_back=held_back)
    if not cast.pronouns:
        known = tuple(verb for verb in known if verb.things in _OF_FIRMS or verb.forms["base"] in _file()["of_firms"])
    given = chance.random() < 0.6
    events = _events(chance, [verb for verb in known if bool(verb.things) == given] or known, cast)
    told = Told(chance, rng)
    spans = _tell(told, events, cast)
    place = chance.randrange(len(events))
    if chance.random() < 0.42:
        return _ask_yes_no(told, events, place, spans[place], cast.names[5])
    return _ask_who_or_what(told, events, place, spans[place], cast)


def _cast(chance: Random) -> _Cast:
    file, style = _file(), chance.random()
    if style < 0.2:
        return _Cast(tuple(chance.sample(file["firms"], 6)))
    women, men = chance.sample(file["women"], 3), chance.sample(file["men"], 3)
    if style < 0.45:
        surnames = iter(chance.sample(file["surnames"], 6))
        women, men = ([n if " " in n else f"{n} {next(surnames)}" for n in some] for some in (women, men))
    pronouns = {**dict.fromkeys(women, ("she", "her")), **dict.fromkeys(men, ("he", "him"))}
    return _Cast(tuple(chance.sample([*women, *men], 6)), pronouns)


def _events(chance: Random, kinds: Sequence[Verb], cast: _Cast) -> list[Event]:
    """Draw events; nobody is on the same side twice, and each thing changes hands once."""
    number = chance.choice((1, 2, 2, 2, 3))
    order = chance.sample(cast.names[:5], 5)
    gap = 1 if chance.random() < 0.5 else 2  # 1 is a chain: the second side of one event is the first of the next
    sides = [(order[n], order[(n + gap) % 5]) for n in range(number)]
    verb = chance.choice(kinds)
    events: list[Event] = []
    for a, b in sides:
        things = _things_left(verb, events)
        events.append(Event(verb, a, b, chance.choice(things) if things else ""))
        if chance.random() < 0.4:
            verb = chance.choice([kind for kind in kinds if bool(kind.things) == bool(verb.things)])
    chance.shuffle(events)
    return events


def _things_left(verb: Verb, events: Sequence[Event]) -> list[str]:
    return [thing for thing in _file()["things"].get(verb.things, ()) if thing not in {event.x for event in events}]


def _tell(told: Told, events: Sequence[Event], cast: _Cast) -> list[list[Span]]:
    """Write the events among remarks; return where each is told."""
    chance, style = told.chance, told.chance.random()
    remarks = chance.sample(_file()["remarks"], 4)
    gap, mark = "\n" if style < 0.25 else " ", "- " if style < 0.12 else ""
    speaks = not mark and style < 0.25 and bool(cast.pronouns)
    spans = []
    for event in events:
        if not mark and chance.random() < 0.45:
            told.add((gap if told.text else "") + remarks.pop())
        told.add((gap if told.text else "") + mark)
        spans.append([_speak(told, event)] if speaks else _tell_event(told, event, cast))
    if not mark and chance.random() < 0.4:
        told.add(gap + remarks.pop())
    return spans


def _tell_event(told: Told, event: Event, cast: _Cast) -> list[Span]:
    chance, verb, templates = told.chance, event.verb, event.verb.templates
    values = {**event.values(), "when": chance.choice(_file()["when"])}
    first, second, passive = (usable(templates[form], values) for form in ("first", "second", "passive"))
    a_words, b_words = cast.pronouns.get(event.a), cast.pronouns.get(event.b)
    separable = not event.x and verb.forms["base"].split()[-1] in _file()["particles"]  # "knocked him out"
    if a_words and b_words and a_words != b_words and not separable and chance.random() < 0.3:
        met = told.add(chance.choice(_file()["met"]), values, capital=True)
        told.add(" ")
        is_second = bool(second) and chance.random() < 0.5
        template = chance.choice(second) if is_second else first[0]
        pronouns = {"a": a_words[is_second], "b": b_words[not is_second]}
        return [met, told.add(f"{template}.", {**values, **pronouns}, capital=True)]
    template = chance.choice(chance.choice([form for form in (first, second, passive) if form]))
    where = 1.0 if verb.is_state else chance.random()
    if where < 0.7:
        template = f"{{when}}, {template}" if where < 0.3 else f"{template} {{when}}"
    return [told.add(f"{template}.", values, capital=True)]


def _speak(told: Told, event: Event) -> Span:
    """Write what one of both sides says of it."""
    chance, templates = told.chance, event.verb.templates
    values = {**event.values(), "when": chance.choice(_file()["when"])}
    second = usable(templates["second"], values)
    side, text = ("b", second[0]) if second and chance.random() < 0.5 else ("a", templates["first"][0])
    after = "" if event.verb.is_state else chance.choice(("", " {when}", ", believe it or not"))
    return told.add(f"{{{side}}}: {text.replace(f'{{{side}}}', 'I', 1)}{after}", values)


def _ask_who_or_what(told: Told, events: Sequence[Event], place: int, spans: list[Span], cast: _Cast) -> Example:
    chance, event, stranger = told.chance, events[place], cast.names[5]
    wanted = chance.choice("aabbx" if event.x else "ab")
    right, unknown, about = getattr(event, wanted), chance.random() < 0.155, event
    if unknown and event.x and wanted != "x":
        about = replace(event, x=chance.choice(_things_left(event.verb, events)))
    elif unknown:
        side = {"a": "b", "b": "a"}.get(wanted) or chance.choice("ab")
        about = replace(event, a=stranger) if side == "a" else replace(event, b=stranger)
    question = worded(chance, event.verb.templates[wanted], about.values())
    people = [name for name in cast.names[:5] if told.holds(name)]
    if wanted != "x" and chance.random() < 0.4 and len(people) > 2:
        named = about.b if wanted == "a" else about.a
        missing = chance.random() < 0.12
        offered = [n for n in people if (n != named or chance.random() < 0.5) and not (missing and n == right)]
        if chance.random() < 0.3:
            offered.append(stranger if stranger != named else cast.names[4])
        answers = () if unknown or missing else (right,)
        return told.offer(question, answers, chance.sample(offered, len(offered)), [] if unknown else spans)
    return told.unknown(question) if unknown else told.quote(question, right, spans, spans[::-1])


def _ask_yes_no(told: Told, events: Sequence[Event], place: int, spans: list[Span], stranger: str) -> Example:
    chance, event, style = told.chance, events[place], told.chance.random()
    swapped = replace(event, a=event.b, b=event.a)
    if style < 0.4 or (style < 0.8 and event.verb.once):
        about = event if style < 0.4 else swapped
        return told.whether(worded(chance, event.verb.templates["whether"], about.values()), about is event, spans)
    if event.x:
        other = replace(event, x=chance.choice(_things_left(event.verb, events)))
        if chance.random() < 0.3:
            other = replace(other, a=stranger)
    else:
        other = replace(event, b=stranger) if event.verb.once else swapped
    choices = ("yes", "no") if chance.random() < 0.8 else ()
    return told.unknown(worded(chance, event.verb.templates["whether"], other.values()), choices)
