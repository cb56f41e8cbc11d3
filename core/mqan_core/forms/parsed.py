"""Answers as structures: queries of WikiSQL with their SQL, and changes of a dialogue's state.

Each value has its places in the caller's texts, which are those of the answer's words.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice, takewhile
from typing import Final

from mqan_core.answer.trace import WordStream
from mqan_core.answer.types import Answer, AnswerSpan, Condition, ParsedQuery, ParsedState, ParsedValue, compose
from mqan_core.ask.options import Options
from mqan_core.errors import FormError, InputError
from mqan_core.forms.grammars import Part, find_query, fold, read_header, read_state_change, shown

SQL: Final = "sql"
DIALOGUE_STATE: Final = "dialogue_state"

_TABLE: Final = "table"  # WikiSQL's have no names
_COMPARISONS: Final = ("=", ">", "<")
_CONDITION: Final = re.compile(r"(?:^| )and (.+?) (?:=|>|<|op)(?: |$)")  # folded; one that was not read as one
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


def check_parse(options: Options) -> None:
    """Refuse options whose answer cannot be read as a structure, by an ``InputError`` of the field ``parse``."""
    for field, is_set, why in (
        ("choices, yes_no or scale", bool(options.choices), "a label has no structure"),
        ("contiguous", options.contiguous, "a query or a state is not one unbroken quotation"),
        ("all", options.every, "places have no structure"),
        ("alternatives", options.alternatives > 0, "they are quotations, which have no structure"),
    ):
        if is_set:
            message = f"parse cannot be combined with {field}: {why}."
            raise InputError("incompatible_options", "parse", message, "Leave out parse or the other field.")


def parse_answer(kind: str, answer: Answer, context: str, question: str) -> Answer:
    """Return a free answer with its structure in ``parsed``, or in ``parse_error`` why it has none."""
    try:
        if not answer.answered:
            raise FormError("There is no answer.")
        if answer.truncated:
            raise FormError("The answer was cut, so it is not whole.")
        return replace(answer, parsed=_PARSERS[kind](_Places(answer, context, question)))
    except FormError as error:
        return replace(answer, parse_error=str(error))


class _Places:
    """Where the words of an answer stand in it, and in the caller's texts."""

    def __init__(self, answer: Answer, context: str, question: str) -> None:
        self.text = answer.text
        self.context, self._question = context, question
        self._words, self._ends = [], []
        end = 0
        for word in WordStream(context, question).end(answer):
            end += len(word.delta)
            self._words.append((end - len(word.token.text), word.token))
            self._ends.append(end)

    def value(self, name: str, part: Part) -> ParsedValue:
        return ParsedValue(name, self.text[part.start : part.end], self.spans(part))

    def spans(self, part: Part) -> tuple[AnswerSpan, ...]:
        first = bisect_right(self._ends, part.start)
        words = takewhile(lambda word: word[0] < part.end, islice(self._words, first, None))
        tokens = [token for _, token in words]
        return compose(tokens, 1.0, False, self.context, self._question).spans


def _parse_query(places: _Places) -> ParsedQuery:
    header = read_header(places.context)
    name_of = {fold(name): name for name in header}
    if len(name_of) < len({*header}):
        raise FormError("Two columns of the table differ only in case or spaces.")
    aggregation, selected, found = find_query(places.text, header)
    conditions = []
    for folded, operator, value in found:
        column = name_of[folded]
        if other := _CONDITION.search(value.folded):
            raise FormError(f"The answer compares {shown(other[1])}, which is no column of the table.")
        if operator not in _COMPARISONS:
            raise FormError(f"The answer compares {shown(column)} by {operator!r}, which SQL does not have.")
        if not value.folded:
            raise FormError(f"The answer compares {shown(column)} with no value.")
        conditions.append(Condition(operator, places.value(column, value)))
    aggregation, column = aggregation.upper(), name_of[selected]
    return ParsedQuery(column, aggregation, tuple(conditions), _print_sql(aggregation, column, conditions))


def _print_sql(aggregation: str, column: str, conditions: list[Condition]) -> str:
    from sqlglot import exp  # 0.1 s and 12 MB, for those who ask for SQL

    comparisons = {"=": exp.EQ, ">": exp.GT, "<": exp.LT}
    selected: exp.Column | exp.Func = exp.column(column, quoted=True)
    if aggregation:
        selected = exp.func(aggregation, selected)
    terms = []
    for condition in conditions:
        value = condition.value.text
        literal: exp.Expression = exp.Literal.string(value)
        if _NUMBER.fullmatch(value):
            number = exp.Literal.number(value.removeprefix("-"))
            literal = exp.Neg(this=number) if value.startswith("-") else number
        compare = comparisons[condition.operator]
        terms.append(compare(this=exp.column(condition.value.name, quoted=True), expression=literal))
    return exp.select(selected).from_(exp.table_(_TABLE, quoted=True)).where(*terms).sql()


def _parse_state(places: _Places) -> ParsedState:
    change = read_state_change(places.text)
    if change is None:
        raise FormError('The answer does not read "slot: value, slot: value; request, request".')
    told, asked, others = change
    for part in others:
        raise FormError(f"{shown(part.folded)} in the answer is no slot with a value.")
    slots: dict[str, ParsedValue] = {}
    for slot, value in told:
        if not (slot.folded and value.folded):
            raise FormError(f"The slot {shown(slot.folded)} in the answer has no name or no value.")
        if slot.folded not in slots:
            slots[slot.folded] = places.value(slot.folded, value)
        elif fold(slots[slot.folded].text) != value.folded:
            raise FormError(f"The slot {shown(slot.folded)} has two values in the answer.")
    requests: dict[str, ParsedValue] = {}
    for part in asked:
        requests.setdefault(part.folded, places.value(part.folded, part))
    return ParsedState(tuple(slots.values()), tuple(requests.values()))


_PARSERS: Final[Mapping[str, Callable[[_Places], ParsedQuery | ParsedState]]] = {
    SQL: _parse_query,
    DIALOGUE_STATE: _parse_state,
}
