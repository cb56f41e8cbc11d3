"""Changes of a dialogue's state in texts: the one grammar of what is trained, judged and served.

A change is ``slot: value, slot: value; request, request`` (WOZ 2.0; Mrksic et al. 2017): what the turn tells, and what
it asks for. With requests only it starts with ``;``, without them it ends with ``;``, with neither it is ``None``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mqan_core.forms.folding import FoldedText, Part, fold

_NO_CHANGE = "None"


@dataclass(frozen=True, slots=True)
class StateChange:
    told: tuple[tuple[Part, Part], ...]  # slots and their values
    requests: tuple[Part, ...]
    others: tuple[Part, ...]  # between the commas of the first part, and no slot with a value


def read_state_change(text: str) -> StateChange | None:
    """Read a change of state, in any case; None of a text without exactly one semicolon, unless it is ``None``."""
    folded = FoldedText(text)
    if folded.text == fold(_NO_CHANGE):
        return StateChange((), (), ())
    middle = folded.text.find(";")
    if folded.text.count(";") != 1:
        return None
    told, others = [], []
    for start, end in _between_commas(folded.text, 0, middle):
        if folded.text.count(":", start, end) == 1:
            colon = folded.text.index(":", start, end)
            told.append((folded.part(start, colon), folded.part(colon + 1, end)))
        elif middle:
            others.append(folded.part(start, end))
    places = _between_commas(folded.text, middle + 1, len(folded.text))
    requests = [part for part in (folded.part(start, end) for start, end in places) if part.folded]
    return StateChange(tuple(told), tuple(requests), tuple(others))


def _between_commas(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while (comma := text.find(",", start, end)) >= 0:
        yield start, comma
        start = comma + 1
    yield start, end
