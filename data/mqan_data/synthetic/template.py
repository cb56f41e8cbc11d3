"""Templates of texts, and what is written by them.

    {{total}}                  the value of a field
    {{item.price}}             that of a column, within its rows
    {{#item}} ... {{/item}}    once for each row; what follows {{;}} only between two of them
    {{=mood}}                  a phrase for the label of a set that the text has
    [[Phone: {{phone}}]]       written or left out
    <<Dear||Hello||Hi>>        one of these

An optional part, a choice or a mark of rows that fills lines of its own takes its line break along.
"""

import re
from collections.abc import Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mqan_data.synthetic.document import Facts

_ROWS = re.compile(r"\{\{#(\w+)\}\}(\n?)(.*?)\{\{/\1\}\}(\n?)", re.DOTALL)
_PLAIN = r"(?:(?!\[\[|\]\]|<<|>>).)*"  # holds neither an optional part nor a choice
_CHOICE = re.compile(
    rf"(?P<indent>(?m:^) *)?(?:\[\[(?P<optional>{_PLAIN})\]\]|<<(?P<parts>{_PLAIN})>>)(?P<end>\n)?", re.DOTALL
)
_PHRASE = re.compile(r"\{\{=(\w+)\}\}")
_SLOT = re.compile(r"\{\{(\w+(?:\.\w+)?)(?:#(\d+))?\}\}")
_UNFIT = re.compile(r"\[\[|\]\]|<<|>>|\{\{[#/;][^}]*\}\}")
_WRITTEN = 0.62  # share of the optional parts that are written


class Place(NamedTuple):
    """Where a value of a field, or of a column in a row, begins."""

    key: str
    row: int | None
    start: int
    value: str


def write(template: str, facts: "Facts") -> tuple[str, list[Place]]:
    """Write a template; return the text, and where its values stand."""

    def rows(match: re.Match[str]) -> str:
        body, _, between = match[3].partition("{{;}}")
        fills_lines = match[2] and not match[3].rpartition("\n")[2].strip(" ")
        slots = re.compile(rf"(\{{\{{{match[1]}\.\w+)(\}}\}})")
        each = [slots.sub(rf"\1#{row}\2", body) for row in range(facts.number_of_rows(match[1]))]
        return between.join(each) + ("" if fills_lines else match[4])

    text = _ROWS.sub(rows, template)
    while "{{=" in (text := choose(text, facts.random)):
        text = _PHRASE.sub(lambda match: facts.phrase(match[1]), text)
    places: list[Place] = []
    place = 0
    while slot := _SLOT.search(text, place):
        key, row = slot[1], None if slot[2] is None else int(slot[2])
        places.append(Place(key, row, slot.start(), facts.value(key, row)))
        text = text[: slot.start()] + places[-1].value + text[slot.end() :]
        place = slot.start() + len(places[-1].value)
    return text, places


def choose(template: str, chance: Random) -> str:
    """Return a template with its optional parts and choices decided."""

    def one(match: re.Match[str]) -> str:
        parts = [match["optional"], ""] if match["parts"] is None else match["parts"].split("||")
        is_optional = len(parts) == 2 and not parts[1]
        part = parts[chance.random() >= _WRITTEN] if is_optional else chance.choice(parts)
        fills_line = match["indent"] is not None and match["end"]
        return "" if fills_line and not part else f"{match['indent'] or ''}{part}{match['end'] or ''}"

    number = 1
    while number:
        template, number = _CHOICE.subn(one, template)
    return template


def check_template(template: str) -> None:
    """Check that all brackets of a template fit."""
    unfit = _UNFIT.search(choose(_ROWS.sub(lambda match: match[3].replace("{{;}}", "", 1), template), Random(0)))  # noqa: S311
    if unfit:
        raise ValueError(f"{unfit[0]} opens or closes nothing in the template {template[:60]!r}")


def keys_of(template: str, phrases: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the keys of all fields and columns that a template can write."""
    keys = {match[1] for match in _SLOT.finditer(template)}
    return keys.union(*(keys_of(phrase, {}) for name in _PHRASE.findall(template) for phrase in phrases[name]))
