"""An answer in a terminal and in a notebook. Sources differ by colour and by underline."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqan_client.results import Answer, AnswerToken

_STYLES = {  # readable on light and dark
    "context": "background:#2a9d5c40;border-bottom:2px solid #2a9d5c",
    "question": "background:#3b7dd840;border-bottom:2px dashed #3b7dd8",
    "vocabulary": "background:#d8873b40;border-bottom:2px dotted #d8873b",
}
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


def as_html(answer: "Answer") -> str:
    """Return the same as HTML that needs nothing else: words by their source, labels as bars."""
    if not answer.answered:
        return f"<div><em>no answer</em> ({answer.confidence:.2f})</div>"
    if answer.choices:
        rows = "".join(
            f"<tr><td style='text-align:left'>{_chosen(choice.label, choice.label in answer.chosen)}</td>"
            f"<td style='text-align:left'><span style='display:inline-block;height:.7em;background:#2a9d5c;"
            f"width:{_BAR_EM * choice.probability:.2f}em'></span> {choice.probability:.2f}</td></tr>"
            for choice in answer.choices
        )
        return f"<table>{rows}</table>"
    named = ", ".join(f"<span style='{style}'>{source}</span>" for source, style in _STYLES.items())
    return f"<div>{_words(answer)} ({answer.probability:.2f}) <small>from: {named}</small></div>"


def _words(answer: "Answer") -> str:
    """Return the text with its words marked; what stands between them, such as nothing in 2024-118, stays."""
    parts, position = [], 0
    for token in answer.tokens:
        start = answer.text.find(token.text, position)
        if start >= 0:
            parts += [escape(answer.text[position:start]), _word(token)]
            position = start + len(token.text)
    return "".join([*parts, escape(answer.text[position:])])


def _word(token: "AnswerToken") -> str:
    place = "" if token.span is None else f" {token.span.start}-{token.span.end}"
    told = f"{token.source.value}{place}, {token.probability:.2f}"
    return f"<span style='{_STYLES[token.source.value]}' title='{told}'>{escape(token.text)}</span>"


def _chosen(label: str, is_chosen: bool) -> str:
    return f"<strong>{escape(label)}</strong>" if is_chosen else escape(label)
