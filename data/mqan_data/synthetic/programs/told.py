"""A text while it is told, sentence by sentence, with the places of names and sentences in it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np

from mqan_core.example import Example
from mqan_data.questions.asked import ask, ask_yes_no
from mqan_data.settings import read_yaml

T = TypeVar("T")
Span = tuple[int, int]

_SLOT = re.compile(r"\{(\w+)\}")


@cache
def load(name: str) -> Any:
    return read_yaml(Path(__file__).with_name(f"{name}.yaml"))


def part_of(items: Iterable[T], each: int, *, held_back: bool) -> list[T]:
    """Return the items that are for validation only, each so many of them, or all others."""
    return [item for n, item in enumerate(items) if (n % each == each - 1) == held_back]


def usable(templates: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Return the templates that name nothing empty."""
    return [template for template in templates if all(values[slot] for slot in _SLOT.findall(template))]


def worded(chance: Random, templates: Iterable[str], values: Mapping[str, str]) -> str:
    """Return one of the templates that name nothing empty, filled, with a capital first."""
    text = chance.choice(usable(templates, values)).format_map(values)
    return text[:1].upper() + text[1:]


@dataclass(slots=True)
class Told:
    """What is told so far, and where each value stands in it."""

    chance: Random
    rng: np.random.Generator
    text: str = ""
    places: list[tuple[str, int]] = field(default_factory=list)

    def add(self, template: str, values: Mapping[str, str] | None = None, *, capital: bool = False) -> Span:
        """Write a template such as "{a} met {b}" filled with values; return where it begins and ends."""
        begin, end = len(self.text), 0
        for slot in _SLOT.finditer(template):
            self.text += template[end : slot.start()]
            self.places.append(((values or {})[slot[1]], len(self.text)))
            self.text += self.places[-1][0]
            end = slot.end()
        self.text += template[end:]
        if capital:
            self.text = self.text[:begin] + self.text[begin : begin + 1].upper() + self.text[begin + 1 :]
        return begin, len(self.text)

    def holds(self, value: str) -> bool:
        return any(written == value for written, _ in self.places)

    def quote(self, question: str, value: str, spans: Sequence[Span], within: Sequence[Span] = ()) -> Example:
        """Ask for a value that stands in the text: ``within`` some spans or those that decide it, or anywhere."""
        for first, last in (*(within or spans), (0, len(self.text))):
            for written, start in self.places:
                if written == value and first <= start < last:
                    quoted = self.text[start : start + len(value)]
                    return ask(self.text, question, (quoted,), start, evidence=tuple(spans))
        return ask(self.text, question, (value,), evidence=tuple(spans))

    def offer(self, question: str, answers: Sequence[str], choices: Iterable[str], spans: Sequence[Span]) -> Example:
        """Ask with values to choose from, each once."""
        evidence = tuple(spans) or None
        return ask(self.text, question, answers, choices=dict.fromkeys(choices), evidence=evidence)

    def whether(self, question: str, says_yes: bool, spans: Sequence[Span]) -> Example:
        return ask_yes_no(self.rng, self.text, question, says_yes, evidence=tuple(spans))

    def unknown(self, question: str, choices: Sequence[str] = ()) -> Example:
        return ask(self.text, question, (), choices=choices)
