"""Answers and records in a terminal and in a notebook, by colours of questions and shapes of sources.

One table has the marks of notebooks, terminals, HTML files and the web page.
"""

import json
from collections.abc import Iterable, Iterator
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

_TABLE: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("marks.json").read_text(encoding="utf-8"))
_SHAPES: Final = {**_TABLE["sources"], "evidence": _TABLE["evidence"]}
_TINT: Final = "2e"  # of 255, of a quotation's background

COLOURS: Final[tuple[str, ...]] = tuple(_TABLE["colours"])
NAMES: Final[dict[str, str]] = {shape: of["name"] for shape, of in _SHAPES.items()}
"""What the sources are called, and the words that decide for a label (``evidence``)."""
_BAR_EM = 10  # length of a bar of probability 1


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
    """Return a text as HTML with elements around ranges of code points.

    Where ranges overlap, a piece of the text is in the elements of all of them, the shortest range's inside.
    """
    waiting = sorted(marks, key=lambda mark: -mark[0])
    cuts = sorted({0, len(text), *(place for start, end, _ in waiting for place in (start, end))})
    parts: list[str] = []
    here: list[tuple[int, int, str]] = []
    for at, until in pairwise(cuts):
        while waiting and waiting[-1][0] == at:
            here.append(waiting.pop())
        here = [mark for mark in here if mark[1] > at]
        piece = escape(text[at:until])
        for opening in dict.fromkeys(opening for *_, opening in sorted(here, key=lambda mark: mark[1] - mark[0])):
            piece = f"{opening}{piece}</{opening[1:].split()[0].rstrip('>')}>"
        parts.append(piece)
    return "".join(parts)


if TYPE_CHECKING:
    from mqan_client.results import Answer, AnswerToken, Record


def as_text(answer: "Answer") -> str:
    """Return the answer in a line, its probability, and where it was quoted from or how likely each label is."""
    if not answer.answered:
        return f"no answer ({answer.confidence:.2f})"
    lines = [f"{answer.text} ({answer.confidence:.2f})"]
    if answer.choices:
        lines += [f"  {choice.label}: {choice.probability:.2f}" for choice in answer.choices]
    else:
        lines += [f"  {span.source.value} {span.start}-{span.end}: {span.text}" for span in answer.spans]
    return "\n".join(lines)


def record_html(record: "Record") -> str:
    """Return a record as a table, each field in its colour, with the quotations of its value."""
    rows = "".join(
        f"<tr><td style='text-align:left;border-left:4px solid {colour_of(number)}'>{escape(name)}</td>"
        f"<td style='text-align:left'>{escape(str(field.value)) if field.answered else '<em>none</em>'}</td>"
        f"<td style='text-align:left'>{', '.join(escape(span.text) for span in field.spans)}</td>"
        f"<td>{field.probability:.2f}</td></tr>"
        for number, (name, field) in enumerate(record.fields.items(), 1)
    )
    return f"<table>{rows}</table>"


def as_html(answer: "Answer") -> str:
    """Return the same as HTML that needs nothing else: words by their source, labels as bars."""
    if not answer.answered:
        return f"<div><em>no answer</em> ({answer.confidence:.2f})</div>"
    if answer.choices:
        rows = "".join(
            f"<tr><td style='text-align:left'>{_label(choice.label, answer)}</td>"
            f"<td style='text-align:left'><span style='display:inline-block;height:.7em;background:{colour_of(1)};"
            f"width:{_BAR_EM * choice.probability:.2f}em'></span> {choice.probability:.2f}</td></tr>"
            for choice in answer.choices
        )
        return f"<table>{rows}</table>"
    used = dict.fromkeys(token.source.value for token in answer.tokens)
    named = ", ".join(f"<span style='{css_of(source)}'>{NAMES[source]}</span>" for source in used)
    words = marked(answer.text, placed(answer.text, ((token.text, _opening(token)) for token in answer.tokens)))
    return f"<div>{words} ({answer.probability:.2f}) <small>{named}</small></div>"


def _opening(token: "AnswerToken") -> str:
    place = "" if token.span is None else f" {token.span.start}-{token.span.end}"
    told = f"{token.source.value}{place}, {token.probability:.2f}"
    return f"<span style='{css_of(token.source.value)}' title='{told}'>"


def _label(label: str, answer: "Answer") -> str:
    return f"<strong>{escape(label)}</strong>" if label in answer.chosen else escape(label)
