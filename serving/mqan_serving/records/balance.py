"""Quotations with both of their brackets and quotation marks, or none: a reader may cut one off at either end."""

from dataclasses import replace
from typing import Final

from mqan_core.answer.types import AnswerSpan

_CLOSINGS: Final = {"(": ")", "[": "]", "{": "}"}
_MARKS: Final = frozenset('"“”„«»')


def balanced(context: str, span: AnswerSpan) -> AnswerSpan:
    """Return a quotation of the context that takes in the missing half of a pair beside it, or leaves the pair out.

    A bracket or mark that the context has no other half of, as in a list that is numbered ``a)``, is left as it is,
    unless it stands at an end.
    """
    start, end = _with_marks(context, *_with_brackets(context, span.start, span.end))
    text = context[start:end]
    end -= len(text) - len(text.rstrip())
    start += len(text) - len(text.lstrip())
    text = context[start:end]
    return replace(span, start=start, end=end, text=text) if any(map(str.isalnum, text)) else span


def _with_brackets(context: str, start: int, end: int) -> tuple[int, int]:
    opened: list[int] = []
    unopened: list[int] = []
    for place in range(start, end):
        if context[place] in _CLOSINGS:
            opened.append(place)
        elif context[place] in _CLOSINGS.values():
            if opened and _CLOSINGS[context[opened[-1]]] == context[place]:
                opened.pop()
            else:
                unopened.append(place)
    first, last = start, end
    if unopened:
        if start and _CLOSINGS.get(context[start - 1]) == context[unopened[0]]:
            first -= 1
        elif unopened[-1] == end - 1:
            last -= 1
    if opened:
        closing = _CLOSINGS[context[opened[-1]]]
        if context[end : end + 1] == closing:
            last += 1
        elif opened[0] == start:
            first += 1
        elif opened[0] == end - 1 or closing in context[end:]:
            last = opened[0]
    return first, last


def _with_marks(context: str, start: int, end: int) -> tuple[int, int]:
    places = [place for place in range(start, end) if context[place] in _MARKS]
    if len(places) % 2 == 0:
        return start, end
    if context[end : end + 1] in _MARKS:
        return start, end + 1
    if start and context[start - 1] in _MARKS:
        return start - 1, end
    if places[0] == start:
        return start + 1, end
    is_inch = context[end - 2 : end - 1].isdigit()
    return (start, end - 1) if places[-1] == end - 1 and not is_inch else (start, end)
