"""The sentences of a text, cut at signs that end one."""

import re

_SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[A-Z\"'(])")
_LINE_BREAK = re.compile(r"<br\s*/?>")


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, in order, with one space between words."""
    return [" ".join(part.split()) for part in _SENTENCE_END.split(_LINE_BREAK.sub(" ", text))]
