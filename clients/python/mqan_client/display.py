"""Answers and records in a terminal and in a notebook."""

from html import escape
from typing import TYPE_CHECKING

from mqan_client.marks import NAMES, colour_of, css_of, marked, placed

if TYPE_CHECKING:
    from mqan_client.results import Answer, AnswerToken, Record

_BAR_EM = 10  # length of a bar of probability 1


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
