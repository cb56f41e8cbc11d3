"""A text while it is told, sentence by sentence, with the places of names and sentences in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Span = tuple[int, int]

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(slots=True)
class Told:
    """What is written so far.

    Attributes:
        text: the text.
        places: where each value stands, by its slot and what it is the value of.
    """

    text: str = ""
    places: list[tuple[str, int]] = field(default_factory=list)

    def add(self, template: str, values: Mapping[str, str] | None = None, *, capital: bool = False) -> Span:
        """Write a template filled with values; return where it begins and ends.

        Args:
            template: text with slots such as ``{a}``.
            values: what fills them.
            capital: whether the first letter becomes a capital.
        """
        begin = len(self.text)
        place = 0
        for slot in _SLOT.finditer(template):
            self.text += template[place : slot.start()]
            value = (values or {})[slot[1]]
            self.places.append((value, len(self.text)))
            self.text += value
            place = slot.end()
        self.text += template[place:]
        if capital:
            self.text = self.text[:begin] + self.text[begin : begin + 1].upper() + self.text[begin + 1 :]
        return begin, len(self.text)

    def quoted(self, value: str, within: Span | None = None) -> tuple[str, int] | None:
        """Return a value as it stands in the text, and where; the first place within a span, or of all."""
        for written, start in self.places:
            inside = within is None or within[0] <= start < within[1]
            if written == value and inside:
                return self.text[start : start + len(value)], start
        return None
