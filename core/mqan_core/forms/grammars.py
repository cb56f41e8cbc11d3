"""The grammars of answers that are structures, of what is trained, judged and served: in any case, with their places.

- WikiSQL's queries in texts (Zhong et al. 2017). A query selects one column of one table, perhaps aggregated, under
  conditions that all hold: ``SELECT <aggregation> <column> FROM table WHERE <column> <operator> <value> AND ...``. The
  context names the columns: ``The table has columns <column>, <column> and key words ...-- <question>``.
- A change of a dialogue's state is ``slot: value, slot: value; request, request`` (WOZ 2.0; Mrksic et al. 2017): what
  the turn tells, and what it asks for. With requests only it starts with ``;``, without them it ends with ``;``, with
  neither it is ``None``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mqan_core.errors import FormError

AGGREGATIONS = ("", "MAX", "MIN", "COUNT", "SUM", "AVG")
OPERATORS = ("=", ">", "<", "OP")  # the last stands for one that the dataset never uses

BEFORE_COLUMNS, AFTER_COLUMNS = "The table has columns ", " and key words "
_SYMBOLS = (
    *("SELECT", "WHERE", "AND", "COL", "TABLE", "CAPTION", "PAGE", "SECTION"),
    *("OP", "COND", "QUESTION", "AGG", "AGGOPS", "CONDOPS"),
)
KEY_WORDS = ", ".join((*AGGREGATIONS[1:], *OPERATORS, *_SYMBOLS))
_QUERY = re.compile(r"select (.+?) from table(?: where (.+))?")
_OPERATOR = re.compile(rf" ({'|'.join(re.escape(operator.lower()) for operator in OPERATORS)})(?= |$)")
_AND = re.compile(r"(?<= )and ")
_NO_CHANGE = "None"
_WORDS = re.compile(r"\S+")
_LONGEST_SHOWN = 40  # characters


class Part(NamedTuple):
    """Part of a text: folded, and the half-open range of code points that it has in the text as it was."""

    folded: str
    start: int
    end: int


def fold(text: str) -> str:
    return " ".join(text.lower().split())


def shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


class FoldedText:
    """A text as of ``fold`` that knows where each of its characters was."""

    def __init__(self, text: str) -> None:
        self.text = fold(text)
        self._places: list[int] = []
        for word in _WORDS.finditer(text):
            if self._places:
                self._places.append(word.start())  # of the space in front of it
            for place, character in enumerate(word.group(), word.start()):
                self._places += [place] * len(character.lower())

    def part(self, start: int, end: int) -> Part:
        """Return what is between two places of ``text``, without the spaces at its ends."""
        found = self.text[start:end]
        if not found.strip():
            return Part("", 0, 0)
        start += len(found) - len(found.lstrip())
        found = found.strip()
        end = start + len(found)
        return Part(found, self._places[start], self._places[end - 1] + 1)


FoundCondition = tuple[str, str, Part]
"""Column and operator, folded, and the value."""


def read_header(context: str) -> list[str]:
    """Read the names of the columns from a context; raise ``FormError`` where it names none.

    They end where decaNLP's key words begin, or else the words in front of other ones. A name with a comma and a space
    in it counts as two.
    """
    start = context.find(BEFORE_COLUMNS)
    begin = start + len(BEFORE_COLUMNS)
    ends = (context.find(after, begin) for after in (AFTER_COLUMNS + KEY_WORDS, AFTER_COLUMNS))
    end = next((end for end in ends if end >= 0), begin)
    columns = context[begin:end].split(", ") if start >= 0 else []
    names = [name.strip() for name in columns if name.strip()]
    if not names:
        raise FormError(f'The context does not name the columns as in "{BEFORE_COLUMNS}Name, Year{AFTER_COLUMNS}...".')
    return names


def find_query(text: str, header: Sequence[str]) -> tuple[str, str, list[FoundCondition]]:
    """Find aggregation, column and conditions of a query as decaNLP writes it, in any case, or raise ``FormError``.

    Where a column's name is the beginning of another's, the longer one is meant; a selected column that is called
    like an aggregated other one is meant as a column.
    """
    folded = FoldedText(text)
    match = _QUERY.fullmatch(folded.text)
    if not match:
        raise FormError('The answer does not read "SELECT column FROM table WHERE column operator value AND ...".')
    columns = frozenset(map(fold, header))
    conditions = _find_conditions(folded, match.start(2), columns) if match[2] else ()
    return *_read_selection(match[1], columns), list(conditions)


def _read_selection(text: str, columns: frozenset[str]) -> tuple[str, str]:
    if text in columns:
        return "", text
    aggregation, _, column = text.partition(" ")
    if aggregation.upper() in AGGREGATIONS[1:] and column in columns:
        return aggregation, column
    raise FormError(f"The answer selects {shown(text)}, which is no column of the table.")


def _find_conditions(folded: FoldedText, begin: int, columns: frozenset[str]) -> Iterator[FoundCondition]:
    text = folded.text
    heads = list(_find_heads(text, begin, columns))
    if not heads or heads[0][0] != begin:
        raise FormError(f"After WHERE comes {shown(text[begin:])}, which is not a column of the table and an operator.")
    ends = [start - len("and ") for start, _, _ in heads[1:]] + [len(text)]
    for (_, column, operator), end in zip(heads, ends, strict=True):
        yield column, operator[1], folded.part(operator.end(), end)


def _find_heads(text: str, begin: int, columns: frozenset[str]) -> Iterator[tuple[int, str, re.Match[str]]]:
    """Yield where conditions begin, their columns and operators."""
    operators = {found.start(): found for found in _OPERATOR.finditer(text, begin)}
    lengths = sorted({len(column) for column in columns}, reverse=True)
    free = begin  # what is before belongs to a condition already
    for start in (begin, *(found.end() for found in _AND.finditer(text, begin))):
        if start < free:
            continue
        ends = (start + length for length in lengths)
        end = next((end for end in ends if end in operators and text[start:end] in columns), None)
        if end is not None:
            yield start, text[start:end], operators[end]
            free = operators[end].end()


def read_state_change(text: str) -> tuple[list[tuple[Part, Part]], list[Part], list[Part]] | None:
    """Read a change of state, in any case: slots with their values, requests, and what else is between the commas.

    Return None of a text without exactly one semicolon, unless it is ``None``.
    """
    folded = FoldedText(text)
    if folded.text == fold(_NO_CHANGE):
        return [], [], []
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
    return told, requests, others


def _between_commas(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while (comma := text.find(",", start, end)) >= 0:
        yield start, comma
        start = comma + 1
    yield start, end
