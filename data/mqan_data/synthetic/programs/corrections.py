"""What was moved, changed or corrected: the value that holds now, the former one, and whether one still holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.dataset_file import Texts
from mqan_data.synthetic.programs.told import Span, Told, load, part_of, worded

_HELD_BACK = 4  # each so many of the things is for validation only


@dataclass(slots=True)
class _State:
    """A thing with its former value and the one that holds, and the sentences that tell them."""

    fact: Any
    thing: str
    old: str
    new: str
    new_spans: list[Span] = field(default_factory=list)
    old_spans: list[Span] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return self.old != self.new

    def values(self, value: str = "", thing: str = "") -> dict[str, str]:
        """Return what fills questions about a value."""
        return {"t": thing or self.thing, "v": value, "w": self.fact.get("phrase", "{v}").replace("{v}", value)}

    def say(self, told: Told, template: str) -> Span:
        """Write a sentence, each of them capitalised; values are found again where a phrase holds them."""
        for slot, value in (("old_w", "{old}"), ("new_w", "{new}"), ("w", "{new}"), ("v", "{new}")):
            phrase = self.fact.get("phrase", "{v}") if slot.endswith("w") else "{v}"
            template = template.replace(f"{{{slot}}}", phrase.replace("{v}", value))
        for end in (". {", "? {"):
            template = template.replace(f"{end}t}}", f"{end}T}}")
        capital = self.thing[:1].upper() + self.thing[1:]
        values = {"t": self.thing, "T": capital, "old": self.old, "new": self.new}
        return told.add(template, values, capital=True)


def ask_corrections(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a text about a thing that changed and perhaps one that did not, and ask about one of them."""
    file = load("corrections")
    fact = chance.choice(list(file["facts"].values()))
    things = part_of(fact["things"], _HELD_BACK, held_back=held_back)
    chance.shuffle(things)
    old, new, third = chance.sample(fact["values"], 3)
    states = [_State(fact, things[0], old, new)]
    if chance.random() < 0.55 and len(things) > 1:
        states.append(_State(fact, things[1], third, third))
    told, layout = Told(chance, rng), chance.choice(("sentence", "mail", "quoted", "arrow", "list"))
    order = chance.sample(states, len(states))
    if layout == "arrow":
        _tell_with_arrows(told, order, file["around"])
    elif layout == "list":
        _tell_in_lists(told, order, chance.choice(file["heads"]))
    else:
        _tell_in_sentences(told, order, file["around"], layout)
    stranger = chance.choice([thing for thing in fact["things"] if thing not in things[:2]])
    return _ask(told, states, stranger)


def _tell_in_sentences(told: Told, states: Sequence[_State], around: Mapping[str, Texts], layout: str) -> None:
    chance = told.chance

    def one(name: str) -> str:
        return chance.choice(around[name])

    name = one("names")
    if layout != "sentence":
        told.add(f"{chance.choice(around['greetings'])}\n")
    quoted: list[_State] = []
    for place, state in enumerate(states):
        if place and chance.random() < 0.3:
            told.add(f" {chance.choice(around['reasons'])}")
        told.add(" " if place else "")
        if state.changed and layout == "quoted":
            told.add(one("updates"))
            state.new_spans = [state.say(told, chance.choice(state.fact["plain"]))]
            quoted.append(state)
        else:
            templates = state.fact["told"] if state.changed else state.fact["same"]
            state.new_spans = state.old_spans = [state.say(told, chance.choice(templates))]
    if chance.random() < 0.4:
        told.add(f" {chance.choice(around['reasons'])}")
    if layout != "sentence":
        told.add(f"\n{chance.choice(around['partings'])}\n{name}")
    for state in quoted:
        before, _, after = one("quoted").partition("{before}")
        told.add("\n\n" + before.replace("{name}", name))
        plain = chance.choice(state.fact["plain"]).replace("{v}", "{old}").replace("{w}", "{old_w}")
        state.old_spans = [state.say(told, plain)]
        told.add(after)


def _tell_with_arrows(told: Told, states: Sequence[_State], around: Mapping[str, Texts]) -> None:
    arrow = told.chance.choice(around["arrows"])
    told.add(told.chance.choice(around["titles"]))
    for place, state in enumerate(states):
        told.add("\n" if place else "")
        end = arrow if state.changed else f"{{new}}{told.chance.choice(around['unchanged'])}"
        state.new_spans = state.old_spans = [state.say(told, f"{{t}}: {end}")]


def _tell_in_lists(told: Told, states: Sequence[_State], heads: tuple[str, str]) -> None:
    """Write what was and what is, one list each, in either order."""
    parts = list(zip(heads, ("{old}", "{new}"), strict=True))
    if told.chance.random() < 0.35:
        parts.reverse()
    for number, (head, slot) in enumerate(parts):
        told.add(("\n\n" if number else "") + head)
        for state in states:
            told.add("\n- ")
            (state.old_spans if slot == "{old}" else state.new_spans).append(state.say(told, f"{{t}}: {slot}"))


def _ask(told: Told, states: Sequence[_State], stranger: str) -> Example:
    chance = told.chance
    state = states[0] if chance.random() < 0.65 else states[-1]
    fact, changed, style = state.fact, state.changed, chance.random()
    if style < 0.1:  # of what the text does not speak
        if chance.random() < 0.5:
            return told.unknown(worded(chance, (*fact["now"], *fact["before"]), state.values(thing=stranger)))
        question = worded(chance, (*fact["whether"], *fact["still"]), state.values(state.new, stranger))
        return told.unknown(question, ("yes", "no"))
    if style >= 0.5:
        return _ask_yes_no(told, state)
    is_former = changed and chance.random() < 0.45
    value, spans = (state.old, state.old_spans) if is_former else (state.new, state.new_spans)
    question = worded(chance, fact["before"] if is_former else fact["now"], state.values())
    if chance.random() >= 0.3:
        return told.quote(question, value, spans)
    offered = list(dict.fromkeys((state.old, state.new, *(s.new for s in states), chance.choice(fact["values"]))))
    return told.offer(question, (value,), chance.sample(offered, len(offered)), spans)


def _ask_yes_no(told: Told, state: _State) -> Example:
    chance, fact, changed = told.chance, state.fact, state.changed
    both = list(dict.fromkeys((*state.old_spans, *state.new_spans)))
    kind = chance.choice(("whether", "whether", "still", "was", "changed", "order"))
    if kind == "order" and changed and "more" in fact:
        rises = fact["values"].index(state.new) > fact["values"].index(state.old)
        asks_more = chance.random() < 0.5 or "less" not in fact
        question = worded(chance, fact["more" if asks_more else "less"], state.values())
        return told.whether(question, rises == asks_more, both)
    if kind == "was" and changed:
        value = chance.choice((state.old, state.old, state.new))
        question = worded(chance, fact["was"], state.values(value))
        return told.whether(question, value == state.old, state.old_spans)
    if kind in ("changed", "order"):
        return told.whether(worded(chance, fact["changed"], state.values()), changed, both)
    others = [value for value in fact["values"] if value not in (state.old, state.new)]
    wrong = state.old if changed and chance.random() < 0.75 else chance.choice(others)
    value = state.new if chance.random() < 0.38 else wrong
    fits_still = value == state.old  # "still" asks for what once was
    question = worded(chance, fact["still"] if kind == "still" and fits_still else fact["whether"], state.values(value))
    return told.whether(question, value == state.new, state.new_spans)
