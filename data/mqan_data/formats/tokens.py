"""Text from tokens as it would be written: no space before a full stop or behind an opening bracket."""

from collections.abc import Sequence

_NO_SPACE_BEFORE = frozenset((
    ".", ",", ";", ":", "!", "?", ")", "]", "}", "%", "'s", "'S", "n't", "'re", "'ve", "'ll", "'d", "'m", "''",
    "\u201d", "...",
))  # fmt: skip
_NO_SPACE_BEHIND = frozenset(["(", "[", "{", "$", "#", "``", "“", "£", "€"])
_WRITTEN = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"'}
_QUOTE = '"'


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text and, for each token, where it begins and ends in code points."""
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    place = 0
    open_quote = False
    glued = True  # whether the next token stands directly behind the last one
    for token in tokens:
        closes = token == _QUOTE and open_quote
        written = _WRITTEN.get(token, token)
        if not glued and not {token, written} & _NO_SPACE_BEFORE and not closes:
            parts.append(" ")
            place += 1
        parts.append(written)
        spans.append((place, place + len(written)))
        place += len(written)
        glued = bool({token, written} & _NO_SPACE_BEHIND) or (token == _QUOTE and not open_quote)
        if token == _QUOTE:
            open_quote = not open_quote
    return "".join(parts), spans


def written(text: str) -> str:
    """Return a text that has spaces between its tokens as it would be written."""
    return join_tokens(text.split())[0].replace("``", '"').replace("''", '"')
