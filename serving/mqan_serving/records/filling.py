"""Records: a schema of named fields, filled from one text in one call, each value with its place in the text."""

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pydantic_core import ValidationError, from_json

from mqan_core.answer.types import Answer, AnswerSpan
from mqan_core.errors import InputError
from mqan_serving.contract import calls
from mqan_serving.contract.errors import AnsweringError, Failure, refuse
from mqan_serving.contract.questions import ChoiceField, Question, read_object
from mqan_serving.records.cells import Places, cell_of
from mqan_serving.records.multiples import BEHIND_NUMBER
from mqan_serving.records.quoted import NEAR_CHARS, Knows, NoValueError
from mqan_serving.records.schema import RecordField, read_schema, shown_name
from mqan_serving.records.values import READ, Kind, Normalized, is_of_kind, read_value
from mqan_serving.service.answer_service import Service
from mqan_serving.service.many import Outcome

Answering = Callable[[list[calls.AskedText]], Awaitable[list[list[Outcome]]]]  # of the questions of a call
NOT_SAID: Final = "The text does not say."
EMPTY: Final = "The text has a place for it that is left empty."
ELSEWHERE: Final = "The quotation stands outside the cell of the table that is named so."
_MOST_TRIED: Final = 4  # quotations beside the likeliest one, where that is nothing of the field's type
_LEAST_SHARE: Final = 0.5  # of the refusal's probability, that a quotation of the field's type has to have
_CHARS_INLINE: Final = 16_384  # whose tables are read in some ms; longer texts would hold up the event loop
_OF_CALL: Final = frozenset({"schema", "timeout_ms", "model"})
_CLOSINGS: Final = {"(": ")", "[": "]", "{": "}"}
_SIGNED: Final = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.MONEY})
_SIGNS: Final = frozenset("-−–")
_MARKS: Final = frozenset('"“”„«»')


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """A text, and what a record of it is to hold."""

    context: str
    fields: tuple[RecordField, ...]
    timeout_ms: int | None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class FilledField:
    """A field, and what the text says of it; its document says what each part is."""

    name: str
    question: str
    value: Any
    text: str
    spans: tuple[AnswerSpan, ...]
    answered: bool
    probability: float
    normalized: Normalized | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a text: its values as the schema has them, and all fields in the schema's order."""

    values: dict[str, Any]
    fields: tuple[FilledField, ...]

    @property
    def missing(self) -> list[str]:
        return [field.name for field in self.fields if not field.answered]


def parse_records(body: bytes) -> tuple[list[RecordRequest], list[str | None] | None]:
    """Return what is asked about each text, and the texts' ids; None for those where one text stands for itself."""
    document = read_object(body, allow_inf_nan=False)
    name = "texts" if "texts" in document else "context"
    calls.check_names(document, {name, *_OF_CALL})
    for needed in (name, "schema"):
        if needed not in document:
            hint = "Send schema, and context or texts."
            raise refuse("missing_field", needed, f"The field {needed} is missing.", hint)
    timeout_ms, model = calls.check_timeout_ms(document.get("timeout_ms")), calls.model_of(document)
    rows = calls.entries_of(document, "texts", calls.MOST_TEXTS, "") if name == "texts" else [document["context"]]
    texts = [_text_of(row, f"texts[{i}]" if name == "texts" else "context") for i, row in enumerate(rows)]
    fields = tuple(read_schema(document["schema"]))
    calls.check_in_all(len(texts) * len(fields))  # before there are questions: their labels may be many more
    requests = [RecordRequest(text, fields, timeout_ms, model) for _, text in texts]
    return requests, [text_id for text_id, _ in texts] if name == "texts" else None


def _text_of(row: Any, where: str) -> tuple[str | None, str]:
    text_id, text, field = None, row, "context" if where == "context" else "texts"
    if isinstance(row, dict) and field == "texts":
        calls.check_names(row, {"id", "context"}, f"{where}.")
        if "context" not in row:
            raise refuse("missing_field", field, f"The field {where}.context is missing.")
        text_id, text, where = calls.check_id(row.get("id"), f"{where}."), row["context"], f"{where}.context"
    if not isinstance(text, str):
        raise refuse("wrong_type", field, f"The field {where} is not a string.")
    return text_id, text


def parse_schema(text: str) -> tuple[RecordField, ...]:
    try:
        schema = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        message = f"The field schema is not valid JSON: {error}."
        raise refuse("malformed_request", "schema", message, "Send a JSON Schema as text.") from None
    return tuple(read_schema(schema))


async def fill_record(request: RecordRequest, service: Service, answer: Answering) -> Record:
    [record] = await fill_records([request], service, answer)
    if isinstance(record, AnsweringError):
        raise record
    return record


async def fill_records(
    requests: Sequence[RecordRequest], service: Service, answer: Answering, ids: Sequence[str | None] | None = None
) -> list[Record | AnsweringError]:
    """Fill a record of each text, in their order, by the same fields; where that is not possible, an error says why."""
    num_chars = sum(len(label) for field in requests[0].fields for label in field.options)  # of an enum that many share
    calls.check_shared(num_chars, service.limits.max_request_bytes, "schema", "The enums of all fields")
    texts = []
    for request, text_id in zip(requests, ids or [None] * len(requests), strict=True):
        items = []
        for field in request.fields:
            items.append(calls.Item(None, _ask(request, field)))
            await asyncio.sleep(0)  # 255 labels take a millisecond: others are answered between fields
        texts.append(calls.AskedText(text_id, tuple(items)))
    calls.check_texts(texts)
    records: list[Record | AnsweringError] = []
    for request, outcomes in zip(requests, await answer(texts), strict=True):
        fill = partial(_record_of, request, outcomes, service.knows)
        records.append(fill() if len(request.context) <= _CHARS_INLINE else await asyncio.to_thread(fill))
        await asyncio.sleep(0)
    return records


def _record_of(request: RecordRequest, outcomes: Sequence[Outcome], knows: Knows) -> Record | AnsweringError:
    answers = []
    for field, outcome in zip(request.fields, outcomes, strict=True):
        if not isinstance(outcome.result, Answer):
            return _refused(field, outcome.result)
        answers.append(outcome.result)
    return fill_fields(request, answers, knows)


def ask_fields(request: RecordRequest) -> list[Question]:
    return [_ask(request, field) for field in request.fields]


def fill_fields(request: RecordRequest, answers: Sequence[Answer], knows: Knows) -> Record:
    values, filled, places = {}, [], Places(request.context)
    for field, answer in zip(request.fields, answers, strict=True):
        found = _found(places, field, answer, knows)
        if found.answered and found.probability < field.least:
            reason = f"Unsure: its probability is below {field.least:g}."
            found = replace(found, answered=False, value=_nothing(field.kind), reason=reason)
        filled.append(found)
        if found.value is not None or field.is_nullable:
            values[field.name] = found.value
    return Record(values, tuple(filled))


def _ask(request: RecordRequest, field: RecordField) -> Question:
    kind = field.kind
    is_chosen = kind in (Kind.CHOICE, Kind.CHOICES)
    is_quoted = not is_chosen and kind is not Kind.YES_NO
    question = Question(
        context=request.context,
        question=field.question,
        timeout_ms=request.timeout_ms,
        choices=[ChoiceField(label=label) for label in field.options] if is_chosen else None,
        multiple=kind is Kind.CHOICES,
        yes_no=kind is Kind.YES_NO,
        all=kind is Kind.TEXTS,
        sources=["context"] if is_quoted else None,
        contiguous=is_quoted and kind is not Kind.TEXTS,
        alternatives=_MOST_TRIED if kind in READ else 0,
        none=kind is Kind.CHOICE and field.is_nullable,
    )
    try:
        question.options.check()
    except InputError as error:
        message = f"{shown_name(field.name)} cannot be asked for: {error.message}"
        raise InputError(error.code, "schema", message, error.hint) from None
    return question


def _refused(field: RecordField, failure: Failure) -> AnsweringError:
    if failure.field is None or failure.field == "context":
        return AnsweringError(failure, ("context",) if failure.field else ())
    named = replace(failure, message=f"{shown_name(field.name)} cannot be asked for: {failure.message}")
    return AnsweringError(named, ("schema", "properties", field.name))


def _nothing(kind: Kind) -> Any:
    return [] if kind in (Kind.TEXTS, Kind.CHOICES) else None


def _found(places: Places, field: RecordField, answer: Answer, knows: Knows) -> FilledField:
    if answer.choices:
        text = answer.text
        spans = tuple(dict.fromkeys(place.span for choice in answer.choices for place in choice.evidence))
    else:
        answer = _of_kind(places, field, answer)
        spans = tuple(balanced(places.context, span) for span in answer.spans)
        if field.kind in _SIGNED:
            spans = tuple(with_multiple(places.context, with_sign(places, span, field.kind)) for span in spans)
        text = ", ".join(span.text for span in spans)
    found = FilledField(field.name, field.question, None, text, spans, answer.answered, answer.probability)
    if not answer.answered:
        return replace(found, value=_nothing(field.kind), reason=NOT_SAID)
    value: Any
    match field.kind:
        case Kind.YES_NO:
            value = answer.chosen == ("yes",)
        case Kind.CHOICE:
            value = field.options[answer.chosen[0]]  # as it was given, which the text of the answer need not be
        case Kind.CHOICES:
            value = [field.options[label] for label in answer.chosen]
        case Kind.TEXTS:
            value = list(dict.fromkeys(span.text for span in spans))
        case _:
            return _read(places, field, found, knows)
    return replace(found, value=value)


def _of_kind(places: Places, field: RecordField, answer: Answer) -> Answer:
    cells = places.cells_for(field.question) if field.kind in READ else []
    is_certain = len(cells) == 1  # where it is said
    least = 0 if is_certain else answer.refusal * (1 if answer.answered else _LEAST_SHARE)
    for other in (answer, *answer.alternatives) if answer.answered else answer.alternatives:
        if other is not answer and other.probability <= least:
            break
        start, end = other.spans[0].start, other.spans[-1].end
        if is_certain and start <= cells[0].start and cells[0].stop <= end:  # it has other cells, too
            start, end = cells[0].start, cells[0].stop
            span = replace(other.spans[0], start=start, end=end, text=places.context[start:end])
            other = replace(other, spans=(span,), text=span.text)
        is_there = not cells or cell_of(start, end, cells)
        if is_there and is_of_kind(field.kind, other.text, places.context[end : end + NEAR_CHARS]):
            return other
    return answer


def _read(places: Places, field: RecordField, found: FilledField, knows: Knows) -> FilledField:
    context = places.context
    if places.is_left_empty(field.question):
        return replace(found, answered=False, reason=EMPTY)
    [span] = found.spans  # it was asked for as one unbroken quotation
    cells = places.cells_for(field.question) if field.kind in READ else []
    if cells and not cell_of(span.start, span.end, cells):
        return replace(found, answered=False, reason=ELSEWHERE)
    cell = places.cell_at(span.start, span.end)
    if context[: span.start].rstrip().endswith(tuple(_SIGNS)):  # which may fill the column before
        cell = cell or cell_of(span.start, span.end, cells)
    first, last = (cell.start, cell.stop) if cell else (0, len(context))
    before = context[max(first, span.start - NEAR_CHARS) : span.start]
    before = before.rjust(NEAR_CHARS, "\t") if cell else before  # as in a column
    after = context[span.end : min(last, span.end + NEAR_CHARS)]
    try:
        value, normalized = read_value(field.kind, found.text, before, after, knows, context)
        if field.bounds is not None:
            field.bounds.validate_python(value, strict=True)
    except NoValueError as error:
        return replace(found, answered=False, reason=f"The quotation {error}.")
    except ValidationError as error:
        why = error.errors(include_url=False, include_input=False)[0]["msg"]
        reason = f"The value is not within the schema's bounds: {why}."
        return replace(found, answered=False, normalized=normalized, reason=reason)
    return replace(found, value=value, normalized=normalized)


def with_sign(places: Places, span: AnswerSpan, kind: Kind) -> AnswerSpan:
    """Return a number's quotation with brackets directly around it, or a sign after words or where its cell begins."""
    context, start, end = places.context, span.start - 1, span.end
    if kind is Kind.MONEY and context[max(start, 0) : span.start] + context[end : end + 1] == "()":
        return replace(span, start=start, end=end + 1, text=context[start : end + 1])
    line = context[context.rfind("\n", 0, span.start) + 1 : span.start]
    sign, words = line[-1:], line[:-1]
    is_number = span.text[:1].isdigit() or unicodedata.category(span.text[:1] or " ") == "Sc"
    is_range = words[-2:-1].isdigit() and words.endswith(" ")  # 14 -22
    cell = places.cell_at(start, end)
    is_of_it = (words.strip() and words[-1] in " \t:") or (cell and not context[cell.start : start].strip())
    if sign not in _SIGNS or not is_number or is_range or not is_of_it:
        return span
    return replace(span, start=start, text=sign + span.text)


def with_multiple(context: str, span: AnswerSpan) -> AnswerSpan:
    """Return a number's quotation with what directly after it is known to change it: million, below zero, a sign."""
    found = BEHIND_NUMBER.match(context, span.end)
    return replace(span, end=found.end(), text=context[span.start : found.end()]) if found else span


def balanced(context: str, span: AnswerSpan) -> AnswerSpan:
    """Return a quotation with both of its brackets and quotation marks, or none: a reader may cut one off at an end.

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
