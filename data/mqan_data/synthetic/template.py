"""Templates of texts, and what is written by them.

    {{total}}                  the value of a field
    {{item.price}}             that of a column, within its rows
    {{#item}} ... {{/item}}    once for each row; what follows {{;}} only between two of them
    {{=mood}}                  a phrase for the label of a set that the text has
    [[Phone: {{phone}}]]       written or left out
    <<Dear||Hello||Hi>>        one of these

An optional part, a choice or a mark of rows that fills lines of its own takes its line break along.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

_TOKEN = re.compile(r"\{\{#\w+\}\}\n?|\{\{/\w+\}\}\n?|\{\{;\}\}|\{\{=?\w+(?:\.\w+)?\}\}|\[\[|\]\]|<<|>>|\|\|")
_WRITTEN = 0.62  # share of the optional parts that are written


@dataclass(frozen=True, slots=True)
class Slot:
    """Place of a value."""

    key: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Place of a phrase for a label."""

    labels: str


@dataclass(frozen=True, slots=True)
class Either:
    """Parts of which one is written; the first of two is optional where the other is empty."""

    parts: tuple["Nodes", ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """What is written for each row, and between two."""

    name: str
    body: "Nodes"
    between: "Nodes"


Nodes = tuple[str | Slot | Phrase | Either | Rows, ...]


class Facts(Protocol):
    """Where a template gets values from."""

    @property
    def random(self) -> random.Random:
        """Return where chance comes from."""

    def value(self, key: str, row: int | None) -> str:
        """Return the value of a field, or of a column in a row."""

    def phrase(self, labels: str) -> Nodes:
        """Return a phrase for the label that the text has."""

    def number_of_rows(self, name: str) -> int:
        """Return how many rows there are."""


@dataclass(slots=True)
class Written:
    """A text while it is written.

    Attributes:
        places: key, row and start of each value.
    """

    facts: Facts
    chunks: list[str] = field(default_factory=list)
    length: int = 0
    places: list[tuple[str, int | None, int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return what is written so far."""
        return "".join(self.chunks)

    def add(self, text: str) -> None:
        """Write text of the template."""
        self.chunks.append(text)
        self.length += len(text)

    def write(self, nodes: Nodes, row: int | None = None) -> None:
        """Write a template."""
        for node in nodes:
            match node:
                case str():
                    self.add(node)
                case Slot(key):
                    value = self.facts.value(key, row)
                    self.places.append((key, row if "." in key else None, self.length, value))
                    self.add(value)
                case Phrase(labels):
                    self.write(self.facts.phrase(labels), row)
                case Either(parts):
                    self.write(self._one(parts), row)
                case Rows(name, body, between):
                    number = self.facts.number_of_rows(name)
                    for place in range(number):
                        self.write(body, place)
                        if place < number - 1:
                            self.write(between, place)

    def _one(self, parts: Sequence[Nodes]) -> Nodes:
        chance = self.facts.random
        if len(parts) == 2 and not parts[1]:
            return parts[0] if chance.random() < _WRITTEN else ()
        return chance.choice(parts)


def compile_template(template: str) -> Nodes:
    """Read a template.

    Raises:
        ValueError: brackets are not closed, or closed without being opened.
    """
    return _Compiler(template).all()


class _Compiler:
    def __init__(self, template: str) -> None:
        self._text = template
        self._tokens = [*_TOKEN.finditer(template)]
        self._next = 0
        self._place = 0

    def all(self) -> Nodes:
        nodes, end = self._until(())
        if end:
            raise ValueError(f"{end} closes nothing in the template {self._text[:60]!r}")
        return nodes

    def _until(self, ends: tuple[str, ...]) -> tuple[Nodes, str]:
        nodes: list[str | Slot | Phrase | Either | Rows] = []
        while self._next < len(self._tokens):
            token = self._tokens[self._next]
            if token.start() > self._place:
                nodes.append(self._text[self._place : token.start()])
            mark, starts_line = token[0], self._starts_line(token.start())
            self._next, self._place = self._next + 1, token.end()
            if mark.strip() in ends:
                return tuple(nodes), mark.strip()
            if mark == "||" and not ends:
                nodes.append(mark)
            else:
                node = self._node(mark, starts_line)
                if isinstance(node, Either) and node.parts[0][-1:] == ("\n",):
                    node = _indented(node, nodes)
                nodes.append(node)
        if ends:
            raise ValueError(f"{ends[-1]} is missing in the template {self._text[:60]!r}")
        nodes.append(self._text[self._place :])
        return tuple(node for node in nodes if node != ""), ""

    def _node(self, mark: str, starts_line: bool) -> str | Slot | Phrase | Either | Rows:
        if mark == "[[":
            body, _ = self._until(("]]",))
            return Either((body + self._line_break(starts_line), ()))
        if mark == "<<":
            parts, end = [], "||"
            while end == "||":
                body, end = self._until(("||", ">>"))
                parts.append(body)
            line_break = self._line_break(starts_line)
            return Either(tuple(part + line_break if part else part for part in parts))
        if mark.startswith("{{#"):
            name = mark.strip()[3:-2]
            if mark.endswith("\n") and not starts_line:
                raise ValueError(f"{mark.strip()} must start its line, or not end it, in {self._text[:60]!r}")
            closing = f"{{{{/{name}}}}}"
            body, end = self._until(("{{;}}", closing))
            between: Nodes = ()
            if end == "{{;}}":
                between, _ = self._until((closing,))
            if self._text[self._place - 1] == "\n" and not self._starts_line(self._tokens[self._next - 1].start()):
                self._place -= 1  # the line break behind rows within a line stays
            return Rows(name, body, between)
        if mark.startswith("{{="):
            return Phrase(mark[3:-2])
        if mark.startswith("{{") and mark[2] not in "/;":
            return Slot(mark[2:-2])
        raise ValueError(f"{mark.strip()} closes nothing in the template {self._text[:60]!r}")

    def _starts_line(self, place: int) -> bool:
        return not self._text[self._text.rfind("\n", 0, place) + 1 : place].strip(" ")

    def _line_break(self, starts_line: bool) -> Nodes:
        """Take the line break behind a part that fills lines of its own."""
        if starts_line and self._text.startswith("\n", self._place):
            self._place += 1
            return ("\n",)
        return ()


def _indented(node: Either, before: list[str | Slot | Phrase | Either | Rows]) -> Either:
    """Take the spaces in front of a part that fills lines of its own into it."""
    last = before[-1] if before else ""
    if not isinstance(last, str) or not last.endswith(" "):
        return node
    text = last.rstrip(" ")
    before[-1] = text
    indent = last[len(text) :]
    return Either(tuple((indent, *part) if part else part for part in node.parts))


def slots_of(nodes: Nodes, phrases: Mapping[str, Sequence[Nodes]]) -> set[str]:
    """Return the keys of all fields and columns that a template can write."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case Slot(key):
                found.add(key)
            case Phrase(labels):
                found.update(*(slots_of(phrase, phrases) for phrase in phrases[labels]))
            case Either(parts):
                found.update(*(slots_of(part, phrases) for part in parts))
            case Rows(_, body, between):
                found |= slots_of(body, phrases) | slots_of(between, phrases)
    return found
