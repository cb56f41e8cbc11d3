"""Questions of fields whose schema does not say how to ask: made of the description, or of the name and the kind."""

import re
from typing import Final

from mqan_serving.records.values import Kind

_WORDS: Final = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]|\d+")
_OPENINGS: Final = ("the ", "a ", "an ", "its ", "his ", "her ", "their ", "your ", "our ", "all ")


def question_about(name: str, kind: Kind, description: str) -> str:
    """Return what to ask about a field, by its name (``due_date``, ``dueDate``) and its description, if any."""
    told = description.strip()
    if not _WORDS.search(told):
        return _about_name(name, kind)
    if told.endswith("?"):
        return told
    return _about_description(told.rstrip("."), kind)


def _about_description(told: str, kind: Kind) -> str:
    if kind is Kind.YES_NO:
        return f"{told}?"
    is_written_small = told[:2] == told[:2].capitalize() and told[1:2].islower()  # not an abbreviation
    subject = told[0].lower() + told[1:] if is_written_small else told
    verb = "are" if kind in (Kind.TEXTS, Kind.CHOICES) else "is"
    return f"What {verb} {subject if subject.startswith(_OPENINGS) else f'the {subject}'}?"


def _about_name(name: str, kind: Kind) -> str:
    words = [word if len(word) > 1 and word.isupper() else word.lower() for word in _WORDS.findall(name)] or [name]
    first, *others = words
    rest = " ".join(others)
    said = " ".join(words)
    if kind is Kind.YES_NO:
        if others and first in ("is", "has", "does", "can", "will", "was", "are"):
            return f"Does it have {rest}?" if first == "has" else f"{first.capitalize()} it {rest}?"
        return f"Is it {said}?"
    if kind is Kind.INTEGER:
        counted = rest.removeprefix("of ") if first in ("num", "number", "count") and others else said
        if counted.endswith("s"):
            return f"How many {counted}?"
    return f"What are the {said}?" if kind in (Kind.TEXTS, Kind.CHOICES) else f"What is the {said}?"
