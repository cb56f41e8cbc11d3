"""What was moved, changed or corrected: the value that holds now, the former one, and whether one still holds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.questions.asked import ask, ask_yes_no
from mqan_data.settings import parse, read_yaml
from mqan_data.synthetic.programs.told import Span, Told

_PATH = Path(__file__).resolve().with_suffix(".yaml")
_HELD_BACK = 4  # each so many of the things is for validation only
_LAYOUTS = ("sentence", "mail", "quoted", "arrow", "list")


@dataclass(frozen=True, slots=True)
class Fact:
    """What can change.

    Attributes:
        values: of one type; in order where ``ordered``.
        phrase: a value as it stands in a sentence.
        things: that have such a value.
        told, same, plain: sentences for what changed, what did not, and the value alone.
        now, before: questions for the value that holds, and for the former one.
        whether, still, was, changed, more, less: questions answered by yes or no.
    """

    values: tuple[str, ...]
    things: tuple[str, ...]
    told: tuple[str, ...]
    same: tuple[str, ...]
    plain: tuple[str, ...]
    now: tuple[str, ...]
    before: tuple[str, ...]
    whether: tuple[str, ...]
    still: tuple[str, ...]
    was: tuple[str, ...]
    changed: tuple[str, ...]
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    ordered: bool = False
    phrase: str = "{v}"


@dataclass(frozen=True, slots=True)
class _File:
    facts: dict[str, Fact]
    greetings: tuple[str, ...]
    partings: tuple[str, ...]
    reasons: tuple[str, ...]
    quoted: tuple[str, ...]


@dataclass(slots=True)
class _State:
    """A thing with its values, and where the text tells them.

    Attributes:
        old: the former value; that which holds where nothing changed.
        new_spans, old_spans: sentences that tell the value that holds, and the former one.
    """

    fact: Fact
    thing: str
    old: str
    new: str
    new_spans: list[Span]
    old_spans: list[Span]

    def values(self) -> dict[str, str]:
        """Return what fills templates."""
        old_w, new_w = (self.fact.phrase.replace("{v}", value) for value in (self.old, self.new))
        return {
            "t": self.thing,
            "old": self.old,
            "new": self.new,
            "old_w": old_w,
            "new_w": new_w,
            "v": self.new,
            "w": new_w,
        }


@cache
def _file() -> _File:
    return parse(_File, read_yaml(_PATH), str(_PATH))


def ask_corrections(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a text about a thing that changed and perhaps one that did not, and ask about one of them."""
    fact = chance.choice(list(_file().facts.values()))
    things = [t for n, t in enumerate(fact.things) if (n % _HELD_BACK == _HELD_BACK - 1) == held_back]
    chance.shuffle(things)
    old, new, third = chance.sample(fact.values, 3)
    states = [_State(fact, things[0], old, new, [], [])]
    if chance.random() < 0.55 and len(things) > 1:
        states.append(_State(fact, things[1], third, third, [], []))
    told = _tell(chance, states)
    stranger = chance.choice([t for t in fact.things if t not in things[:2]])
    return _ask(chance, rng, told, states, stranger)


def _tell(chance: Random, states: list[_State]) -> Told:
    told, layout = Told(), chance.choice(_LAYOUTS)
    name = chance.choice(("Anna", "Karl", "Mei", "Omar", "P. Lund", "Reception", "R. Kaya"))
    order = list(states)
    chance.shuffle(order)
    if layout in ("arrow", "list"):
        _tell_list(chance, told, order, arrow=layout == "arrow")
        return told
    if layout != "sentence":
        told.add(f"{chance.choice(_file().greetings)}\n")
    quoted: list[_State] = []
    for place, state in enumerate(order):
        if place and chance.random() < 0.3:
            told.add(f" {chance.choice(_file().reasons)}")
        told.add(" " if place else "")
        if state.old == state.new:
            state.new_spans.append(_say(told, chance.choice(state.fact.same), state))
            state.old_spans = state.new_spans
        elif layout == "quoted":
            told.add(
                chance.choice(("Update: ", "Correction to my last message: ", "New plan: ", "Please note the change: "))
            )
            state.new_spans.append(_say(told, chance.choice(state.fact.plain), state))
            quoted.append(state)
        else:
            state.new_spans.append(_say(told, chance.choice(state.fact.told), state))
            state.old_spans = state.new_spans
    if chance.random() < 0.4:
        told.add(f" {chance.choice(_file().reasons)}")
    if layout != "sentence":
        told.add(f"\n{chance.choice(_file().partings)}\n{name}")
    for state in quoted:
        before, _, after = chance.choice(_file().quoted).partition("{before}")
        told.add("\n\n" + before.replace("{name}", name))
        plain = chance.choice(state.fact.plain).replace("{v}", "{old}").replace("{w}", "{old_w}")
        state.old_spans.append(_say(told, plain, state))
        told.add(after)
    return told


def _say(told: Told, template: str, state: _State) -> Span:
    """Write a sentence, each of them capitalised; values are found again where a phrase holds them."""
    values = state.values()
    for slot in ("old", "new"):
        template = template.replace(f"{{{slot}_w}}", state.fact.phrase.replace("{v}", f"{{{slot}}}"))
    template = template.replace("{w}", state.fact.phrase)
    for end in (". {", "? {"):
        template = template.replace(f"{end}t}}", f"{end}T}}")
    values["T"] = values["t"][:1].upper() + values["t"][1:]
    return told.add(template, values, capital=True)


def _tell_list(chance: Random, told: Told, states: list[_State], *, arrow: bool) -> None:
    if arrow:
        sign = chance.choice((" -> ", " => ", " (old) / ", " \u2192 "))
        after = " (new)" if "old" in sign else ""
        told.add(chance.choice(("", "Changes:\n", "What is new\n", "Corrections to the list\n")))
        for place, state in enumerate(states):
            told.add("\n" if place else "")
            if state.old == state.new:
                span = told.add(
                    "{t}: {v}" + chance.choice((" (unchanged)", " (as before)")), state.values(), capital=True
                )
            else:
                span = told.add(f"{{t}}: {{old}}{sign}{{new}}{after}", state.values(), capital=True)
            state.new_spans.append(span)
            state.old_spans.append(span)
        return
    old, new = chance.choice(
        (("Old", "New"), ("Before", "Now"), ("Until now", "From now on"), ("Plan in May", "Plan as of today"))
    )
    parts = [(old, "old"), (new, "new")]
    if chance.random() < 0.35:
        parts.reverse()
    for number, (head, slot) in enumerate(parts):
        told.add(("\n\n" if number else "") + head)
        for state in states:
            told.add("\n- ")
            span = told.add(f"{{t}}: {{{slot}}}", state.values(), capital=True)
            (state.old_spans if slot == "old" else state.new_spans).append(span)


def _ask(chance: Random, rng: np.random.Generator, told: Told, states: Sequence[_State], stranger: str) -> Example:
    state = states[0] if chance.random() < 0.65 else states[-1]
    fact, changed = state.fact, state.old != state.new
    style = chance.random()

    def filled(templates: Sequence[str], value: str = "", thing: str = state.thing) -> str:
        phrase = fact.phrase.replace("{v}", value)
        text = chance.choice(templates).replace("{t}", thing).replace("{v}", value).replace("{w}", phrase)
        return text[:1].upper() + text[1:]

    both = tuple(dict.fromkeys((*state.old_spans, *state.new_spans)))
    if style < 0.1:  # of what the text does not speak
        if chance.random() < 0.5:
            return ask(told.text, filled((*fact.now, *fact.before), thing=stranger), ())
        question = filled((*fact.whether, *fact.still), state.new, stranger)
        return ask(told.text, question, (), choices=(Choice("yes"), Choice("no")))
    if style < 0.5:
        is_former = changed and chance.random() < 0.45
        value, spans = (state.old, state.old_spans) if is_former else (state.new, state.new_spans)
        question = filled(fact.before if is_former else fact.now)
        if chance.random() < 0.3:
            offered = list(dict.fromkeys((state.old, state.new, *(s.new for s in states), chance.choice(fact.values))))
            chance.shuffle(offered)
            return ask(told.text, question, (value,), choices=tuple(map(Choice, offered)), evidence=tuple(spans))
        place = told.quoted(value, spans[0])
        if place is None:
            return ask(told.text, question, (value,), evidence=tuple(spans))
        return ask(told.text, question, (place[0],), place[1], evidence=tuple(spans))
    kind = chance.choice(("whether", "whether", "still", "was", "changed", "order"))
    if kind == "order" and changed and fact.more:
        rises = fact.values.index(state.new) > fact.values.index(state.old)
        asks_more = chance.random() < 0.5 or not fact.less
        return _yes_no(rng, told, filled(fact.more if asks_more else fact.less), rises == asks_more, both)
    if kind == "was" and changed:
        value = chance.choice((state.old, state.old, state.new))
        return _yes_no(rng, told, filled(fact.was, value), value == state.old, tuple(state.old_spans))
    if kind == "changed" or kind == "order":
        return _yes_no(rng, told, filled(fact.changed), changed, both)
    others = [value for value in fact.values if value not in (state.old, state.new)]
    wrong = state.old if changed and chance.random() < 0.75 else chance.choice(others)
    value = state.new if chance.random() < 0.38 else wrong
    question = filled(
        fact.still
        if kind == "still" and value in (state.old, state.new) and not (changed and value == state.new)
        else fact.whether,
        value,
    )
    return _yes_no(rng, told, question, value == state.new, tuple(state.new_spans))


def _yes_no(rng: np.random.Generator, told: Told, question: str, says_yes: bool, spans: tuple[Span, ...]) -> Example:
    return replace(ask_yes_no(rng, told.text, question, says_yes), evidence=spans)
