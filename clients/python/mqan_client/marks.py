"""Colours of questions and shapes of sources: one table for notebooks, terminals, HTML files and the web page."""

import json
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any, Final

_TABLE: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("marks.json").read_text(encoding="utf-8"))
_SHAPES: Final = {**_TABLE["sources"], "evidence": _TABLE["evidence"]}
_TINT: Final = "2e"  # of 255, of a quotation's background

COLOURS: Final[tuple[str, ...]] = tuple(_TABLE["colours"])
NAMES: Final[dict[str, str]] = {shape: of["name"] for shape, of in _SHAPES.items()}
"""What the sources are called, and the words that decide for a label (``evidence``)."""


def colour_of(number: int) -> str:
    """Return the colour of a question or a field; the first is 1."""
    return COLOURS[(number - 1) % len(COLOURS)]


def css_of(shape: str, number: int = 1) -> str:
    """Return the style of a mark, readable on light and dark."""
    colour = colour_of(number)
    back = "" if shape == "evidence" else f"background:{colour}{_TINT};"
    slant = "font-style:italic;" if shape == "vocabulary" else ""
    return f"{back}{slant}border-bottom:2px {_SHAPES[shape]['line']} {colour};color:inherit"


def terminal_style_of(shape: str, number: int = 1) -> str:
    """Return the style of a mark in a terminal, as rich writes it."""
    return f"{_SHAPES[shape]['terminal']} {colour_of(number)}"


def placed(text: str, words: Iterable[tuple[str, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield where each word of an answer stands in its text, with what belongs to it; not a word that is not found."""
    end = 0
    for word, mark in words:
        start = text.find(word, end)
        if word and start >= 0:
            end = start + len(word)
            yield start, end, mark


def marked(text: str, marks: Iterable[tuple[int, int, str]]) -> str:
    """Return a text as HTML with elements around ranges of code points; of ranges that overlap the first is kept."""
    parts, at = [], 0
    for start, end, opening in sorted(marks):
        if start < at:
            continue
        closing = f"</{opening[1:].split()[0].rstrip('>')}>"
        parts += [escape(text[at:start]), opening, escape(text[start:end]), closing]
        at = end
    return "".join([*parts, escape(text[at:])])
