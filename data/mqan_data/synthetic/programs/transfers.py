"""Who sold what to whom, who beat whom: one to three events whose sides are asked for, in either order of words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.questions.asked import YES_NO, ask, ask_yes_no
from mqan_data.settings import parse, read_yaml
from mqan_data.synthetic.programs.told import Span, Told

_PATH = Path(__file__).resolve().with_suffix(".yaml")
_HELD_BACK = 7  # each so many of the verbs is for validation only
_OF_FIRMS = ("goods", "land", "money", "prizes", "rights")


@dataclass(frozen=True, slots=True)
class _File:
    given: tuple[tuple[str, ...], ...]
    done: tuple[tuple[str, ...], ...]
    things: dict[str, tuple[str, ...]]
    women: tuple[str, ...]
    men: tuple[str, ...]
    surnames: tuple[str, ...]
    firms: tuple[str, ...]
    when: tuple[str, ...]
    remarks: tuple[str, ...]
    met: tuple[str, ...]
    of_firms: tuple[str, ...]
    particles: tuple[str, ...]
    plural: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of two sides; of three parts where a thing changes hands.

    Attributes:
        base, past, participle: its forms; no participle, no passive.
        to: preposition before the second side; empty where it follows at once.
        other, other_past, other_participle, of: the same for the verb that begins with the second side.
        things: what changes hands; empty for nothing.
        once: whether the one excludes the reverse.
    """

    base: str
    past: str
    participle: str
    to: str
    other: str
    other_past: str
    other_participle: str
    of: str
    things: str
    once: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """One event: the verb, both sides, and the thing."""

    verb: Verb
    a: str
    b: str
    x: str = ""

    def values(self) -> dict[str, str]:
        """Return what fills templates."""
        return {"a": self.a, "b": self.b, "x": self.x, "was": self.was}

    @property
    def was(self) -> str:
        """Return the verb that fits the thing."""
        return "were" if self.verb.things == "money" or self.x in _file().plural else "was"


@dataclass(frozen=True, slots=True)
class _Cast:
    """Names of a text, with what stands for them in the nominative and in another case."""

    names: tuple[str, ...]
    pronouns: dict[str, tuple[str, str]]


@cache
def _file() -> _File:
    return parse(_File, read_yaml(_PATH), str(_PATH))


@cache
def verbs(*, held_back: bool) -> tuple[Verb, ...]:
    """Return the verbs to train on, or those that are for validation only."""
    found = [
        Verb(base, past, participle, to, other, other_past, other_participle, of, things)
        for base, past, participle, to, other, other_past, other_participle, of, things in _file().given
    ]
    found += [
        Verb(base, past, participle, "", other, other_past, "", "", "", bool(once))
        for base, past, participle, other, other_past, once in _file().done
    ]
    return tuple(v for n, v in enumerate(found) if (n % _HELD_BACK == _HELD_BACK - 1) == held_back)


def ask_transfers(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a text about one to three events, and ask about one of them."""
    cast = _cast(chance)
    known = verbs(held_back=held_back)
    if not cast.pronouns:
        known = tuple(verb for verb in known if verb.things in _OF_FIRMS or verb.base in _file().of_firms)
    given = chance.random() < 0.6
    kinds = [verb for verb in known if bool(verb.things) == given] or list(known)
    events = _events(chance, kinds, cast)
    told, spans = _tell(chance, events, cast)
    place = chance.randrange(len(events))
    return _ask(chance, rng, told, events, place, spans[place], cast)


def _cast(chance: Random) -> _Cast:
    file = _file()
    style = chance.random()
    if style < 0.2:
        return _Cast(tuple(chance.sample(file.firms, 6)), {})
    women, men = chance.sample(file.women, 3), chance.sample(file.men, 3)
    if style < 0.45:
        surnames = iter(chance.sample(file.surnames, 6))
        women, men = ([n if " " in n else f"{n} {next(surnames)}" for n in some] for some in (women, men))
    names = [*women, *men]
    chance.shuffle(names)
    return _Cast(tuple(names), {**{n: ("she", "her") for n in women}, **{n: ("he", "him") for n in men}})


def _events(chance: Random, kinds: Sequence[Verb], cast: _Cast) -> list[Event]:
    """Draw events; nobody is on the same side twice, and each thing changes hands once."""
    number = chance.choice((1, 2, 2, 2, 3))
    first, others = chance.sample(cast.names[:5], number + 1), list(cast.names[:5])
    if chance.random() < 0.5:  # a chain: the second side of one event is the first of the next
        sides = list(zip(first, first[1:], strict=False))
    else:
        chance.shuffle(others)
        sides = [(others[n], others[(n + 2) % 5]) for n in range(number)]
    verb = chance.choice(kinds)
    events, taken = [], set[str]()
    for a, b in sides:
        things = [thing for thing in _file().things.get(verb.things, ()) if thing not in taken]
        x = chance.choice(things) if things else ""
        taken.add(x)
        events.append(Event(verb, a, b, x))
        if chance.random() < 0.4:
            alike = [kind for kind in kinds if bool(kind.things) == bool(verb.things)]
            verb = chance.choice(alike)
    chance.shuffle(events)
    return events


def _tell(chance: Random, events: Sequence[Event], cast: _Cast) -> tuple[Told, list[tuple[Span, ...]]]:
    """Write the events among remarks; return where each is told."""
    told = Told()
    spans: list[tuple[Span, ...]] = []
    style = chance.random()
    remarks = chance.sample(_file().remarks, 4)
    gap = "\n" if style < 0.25 else " "
    mark = "- " if style < 0.12 else ""
    for event in events:
        if remarks and chance.random() < 0.45 and not mark:
            told.add((gap if told.text else "") + remarks.pop())
        told.add((gap if told.text else "") + mark)
        spans.append(_tell_event(chance, told, event, cast, speaks=0.12 <= style < 0.25 and bool(cast.pronouns)))
    if chance.random() < 0.4 and not mark:
        told.add(gap + remarks.pop())
    return told, spans


def _tell_event(chance: Random, told: Told, event: Event, cast: _Cast, *, speaks: bool) -> tuple[Span, ...]:
    forms = _forms(event.verb)
    when = chance.choice(_file().when)
    if speaks:
        return (_spoken(chance, told, event, when),)
    a_words, b_words = cast.pronouns.get(event.a), cast.pronouns.get(event.b)
    separable = not event.x and event.verb.base.split()[-1] in _file().particles
    if a_words and b_words and a_words != b_words and not separable and chance.random() < 0.3:
        met = told.add(chance.choice(_file().met), {**event.values(), "when": when}, capital=True)
        told.add(" ")
        values = {**event.values(), "a": a_words[0], "b": b_words[1]}
        if forms.second and chance.random() < 0.5:
            values = {**event.values(), "a": a_words[1], "b": b_words[0]}
            return met, told.add(chance.choice(forms.second) + ".", values, capital=True)
        return met, told.add(forms.first[0] + ".", values, capital=True)
    form = chance.choice(
        (forms.first, *((forms.second,) if forms.second else ()), *((forms.passive,) if forms.passive else ()))
    )
    template = chance.choice(form)
    values = {**event.values(), "when": when}
    is_state = event.verb.base.startswith("be ")
    where = chance.random()
    if where < 0.3 and not is_state:
        template = f"{{when}}, {template}"
    elif where < 0.7 and not is_state:
        template = f"{template} {{when}}"
    return (told.add(f"{template}.", values, capital=True),)


def _spoken(chance: Random, told: Told, event: Event, when: str) -> Span:
    """Write what one of both sides says of it."""
    verb = event.verb
    forms = _forms(verb)
    values = {**event.values(), "when": when}
    if forms.second and chance.random() < 0.5:
        text = forms.second[0].replace("{b}", "I", 1)
        speaker = "{b}"
    else:
        text, speaker = forms.first[0].replace("{a}", "I", 1), "{a}"
    after = "" if verb.base.startswith("be ") else chance.choice(("", " {when}", ", believe it or not"))
    return told.add(f"{speaker}: {text}{after}", values)


@dataclass(frozen=True, slots=True)
class _Forms:
    """Sentences that begin with the first side, with the second, and in the passive."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    passive: tuple[str, ...]


@cache
def _forms(verb: Verb) -> _Forms:
    if verb.things:
        first = [f"{{a}} {verb.past} {{x}} {verb.to} {{b}}"]
        second = [f"{{b}} {verb.other_past} {{x}} {verb.of} {{a}}"] if verb.other else []
        passive = [f"{{x}} {{was}} {verb.participle} {verb.to} {{b}} by {{a}}"] if verb.participle else []
        if verb.participle:
            first.append(f"{{a}} had {verb.participle} {{x}} {verb.to} {{b}}")
        if verb.other_participle:
            passive.append(f"{{x}} {{was}} {verb.other_participle} by {{b}} from {{a}}")
            second.append(f"it was {{b}} who {verb.other_past} {{x}} {verb.of} {{a}}")
    else:
        first = [f"{{a}} {verb.past} {{b}}", f"it was {{a}} who {verb.past} {{b}}"]
        second = [f"{{b}} {verb.other_past} {{a}}"] if verb.other else []
        passive = [f"{{b}} was {verb.participle} by {{a}}"] if verb.participle else []
    return _Forms(tuple(first), tuple(second), tuple(passive))


def _ask(
    chance: Random,
    rng: np.random.Generator,
    told: Told,
    events: Sequence[Event],
    place: int,
    spans: tuple[Span, ...],
    cast: _Cast,
) -> Example:
    event = events[place]
    stranger = cast.names[5]
    style = chance.random()
    if style < 0.42:
        return _ask_yes_no(chance, rng, told, event, events, spans, stranger)
    wanted = chance.choice(("a", "a", "b", "b", "x") if event.x else ("a", "b"))
    unknown = style < 0.51
    about = event
    if unknown:
        things = [t for t in _file().things.get(event.verb.things, ()) if t not in {e.x for e in events}]
        side = {"a": "b", "b": "a"}.get(wanted, chance.choice("ab"))
        if event.x and wanted != "x":
            about = replace(event, x=chance.choice(things))
        else:
            about = replace(event, a=stranger) if side == "a" else replace(event, b=stranger)
    question = chance.choice(_wh(about, wanted))
    answer = told.quoted(getattr(event, wanted), spans[-1]) or told.quoted(getattr(event, wanted), spans[0])
    people = [name for name in cast.names[:5] if told.quoted(name)]
    chance.shuffle(people)
    if wanted != "x" and chance.random() < 0.4 and len(people) > 2:
        named = about.b if wanted == "a" else about.a
        offered = [name for name in people if name != named or chance.random() < 0.5]
        missing = chance.random() < 0.12
        right = getattr(event, wanted)
        offered = [name for name in offered if not (missing and name == right)]
        if chance.random() < 0.3:
            offered.insert(chance.randrange(len(offered) + 1), stranger if stranger != named else cast.names[4])
        offered = list(dict.fromkeys(offered))
        known = not unknown and not missing
        return ask(
            told.text,
            question,
            (right,) if known else (),
            choices=tuple(map(Choice, offered)),
            evidence=None if unknown else spans,
        )
    if unknown or answer is None:
        return ask(told.text, question, ())
    return ask(told.text, question, (answer[0],), answer[1], evidence=spans)


def _ask_yes_no(
    chance: Random,
    rng: np.random.Generator,
    told: Told,
    event: Event,
    events: Sequence[Event],
    spans: tuple[Span, ...],
    stranger: str,
) -> Example:
    style = chance.random()
    swapped = Event(event.verb, event.b, event.a, event.x)
    if style < 0.4:
        return replace(ask_yes_no(rng, told.text, chance.choice(_whether(event)), True), evidence=spans)
    if style < 0.8 and event.verb.once:
        return replace(ask_yes_no(rng, told.text, chance.choice(_whether(swapped)), False), evidence=spans)
    if event.x:
        things = [t for t in _file().things[event.verb.things] if t not in {e.x for e in events}]
        other = Event(event.verb, event.a, event.b, chance.choice(things))
    else:
        other = swapped if not event.verb.once else Event(event.verb, event.a, stranger)
    if chance.random() < 0.3 and event.x:
        other = Event(event.verb, stranger, other.b, other.x)
    question = chance.choice(_whether(other))
    choices = tuple(map(Choice, YES_NO)) if chance.random() < 0.8 else ()
    return ask(told.text, question, (), choices=choices)


def _do(base: str, side: str, more: str = "") -> str:
    """Return "did she buy", or "was she older than"."""
    if base.startswith("be "):
        return f"was {side} {base[3:]}{more}"
    return f"did {side} {base}{more}"


def _wh(event: Event, wanted: str) -> list[str]:
    """Return questions for a side or the thing."""
    verb, a, b, x = event.verb, event.a, event.b, event.x
    if not verb.things:
        if wanted == "a":
            found = [f"Who {verb.past} {b}?"]
            if verb.other:
                found += [f"Who {_do(verb.other, b)}?"]
            if verb.participle:
                found += [f"Who was {b} {verb.participle} by?", f"By whom was {b} {verb.participle}?"]
            return found
        found = [f"Who {_do(verb.base, a)}?", f"Whom {_do(verb.base, a)}?"]
        if verb.other:
            found += [f"Who {verb.other_past} {a}?"] * 2
        if verb.participle:
            found += [f"Who was {verb.participle} by {a}?"]
        return found
    was = event.was
    what = "How much" if verb.things == "money" else "What"
    if wanted == "x":
        found = [f"{what} did {a} {verb.base} {verb.to} {b}?"]
        if verb.other:
            found += [f"{what} did {b} {verb.other} {verb.of} {a}?"]
        return found
    if wanted == "a":
        found = [f"Who {verb.past} {x} {verb.to} {b}?"]
        if verb.past != verb.other_past:
            found.append(f"Who {verb.past} {x}?")
        if verb.other:
            found += [f"Who did {b} {verb.other} {x} {verb.of}?", f"From whom did {b} {verb.other} {x}?"]
        if verb.participle and verb.participle != verb.other_participle:
            found.append(f"By whom {was} {x} {verb.participle}?")
        return found
    found = [f"Who did {a} {verb.base} {x} {verb.to}?", f"{verb.to.capitalize()} whom did {a} {verb.base} {x}?"]
    if verb.other:
        found.append(f"Who {verb.other_past} {x} {verb.of} {a}?")
        if verb.past != verb.other_past:
            found.append(f"Who {verb.other_past} {x}?")
    if verb.participle:
        found += [f"Who {was} {x} {verb.participle} {verb.to}?"]
    return found


def _whether(event: Event) -> list[str]:
    """Return questions whether an event is so."""
    verb, a, b, x = event.verb, event.a, event.b, event.x
    if not verb.things:
        found = [_do(verb.base, a, f" {b}")]
        if verb.other:
            found.append(_do(verb.other, b, f" {a}"))
        if verb.participle:
            found.append(f"was {b} {verb.participle} by {a}")
        told = [f"{a} {verb.past} {b}"]
    else:
        was = event.was
        found = [f"did {a} {verb.base} {x} {verb.to} {b}"]
        if verb.other:
            found.append(f"did {b} {verb.other} {x} {verb.of} {a}")
        if verb.participle:
            found.append(f"{was} {x} {verb.participle} {verb.to} {b} by {a}")
        told = [f"{a} {verb.past} {x} {verb.to} {b}"]
    questions = [f"{text[:1].upper()}{text[1:]}?" for text in found]
    return [*questions, *questions, *(f"Is it true that {text}?" for text in told)]
