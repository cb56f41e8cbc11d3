"""Responses as the client's own types: documents of REST and messages of gRPC, which name the same fields."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

from mqan_client.errors import ClientError, ServerError, question_error
from mqan_client.parsed import Condition, ParsedQuery, ParsedState, RequestedSlot, SlotValue
from mqan_client.records import Normalized, Record, RecordField
from mqan_client.results import (
    Alternative,
    Answer,
    AnswerSpan,
    AnswerToken,
    Candidate,
    ChoiceProbability,
    Limits,
    Masses,
    Model,
    ModelVersion,
    Place,
    PointerWeight,
    Score,
    Source,
    Span,
    Step,
    StreamedWord,
)

T = TypeVar("T")

_SOURCES = {1: Source.CONTEXT, 2: Source.QUESTION, 3: Source.VOCABULARY}  # by the numbers of the contract


class _Document:
    """An object of JSON whose fields are attributes, as those of a message are."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        if name not in self.values:
            raise AttributeError(f"{name!r} is missing")
        return _as_said(self.values[name])


def _as_said(found: Any) -> Any:
    if isinstance(found, dict):
        return _Document(found)
    return [_as_said(entry) for entry in found] if isinstance(found, list) else found


def _reads(read: Callable[[Any], T]) -> Callable[[Any], T]:
    """Let a function that reads messages read documents as well, and refuse what is of no mqan server."""

    @wraps(read)
    def reading(said: Any) -> T:
        try:
            return read(_as_said(said))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            message = f"The response is not one of a mqan server: {error!r}. Check the URL."
            raise ServerError(message, code="unknown_response") from None

    return reading


@_reads
def read_word(said: Any) -> StreamedWord:
    """Return a word of a stream.

    Raises:
        ServerError: it is none of a mqan server, or has what this client does not know; so of all functions here.
    """
    return StreamedWord(_read_token(getattr(said, "token", said)), said.delta)


@_reads
def read_answer(said: Any) -> Answer:
    """Return an answer."""
    return Answer(
        said.answer,
        said.probability,
        tuple(map(_read_token, said.tokens)),
        _read_spans(said.spans),
        said.truncated,
        _read_version(said.model),
        said.answered,
        said.confidence,
        said.none,
        tuple(ChoiceProbability(c.label, c.probability, _read_places(c.evidence)) for c in said.choices),
        tuple(said.chosen),
        _given(said, "expected"),
        said.windows,
        _read_places(said.places),
        tuple(
            Alternative(a.answer, a.probability, tuple(map(_read_token, a.tokens)), _read_spans(a.spans))
            for a in said.alternatives
        ),
        tuple(map(_read_step, said.steps)),
        _read_parsed(said),
        _given(said, "parse_error"),
    )


@_reads
def read_answers(said: Any) -> list[Answer | ClientError]:
    """Return what became of the questions about one text."""
    if len(said.texts) != 1:
        raise ServerError(f"The response is about {len(said.texts)} texts, not one.", code="unknown_response")
    outcomes = ((_given(outcome, "error"), outcome) for outcome in said.texts[0].answers)
    return [
        read_answer(outcome.answer) if error is None else question_error(error.code, error.message, error.hint)
        for error, outcome in outcomes
    ]


@_reads
def read_record(said: Any) -> Record:
    """Return a record."""
    values = {name: _read_field(field) for name, field in _named(said.fields, "name")}
    return Record(_value(said, "record"), tuple(said.missing), values, _read_version(said.model))


@_reads
def read_model(said: Any) -> Model:
    """Return the description of a model."""
    return Model(
        said.model.name,
        said.model.version,
        said.sha256,
        said.provider,
        Limits(**{field.name: getattr(said.limits, field.name) for field in fields(Limits)}),
        said.num_generated,
        said.num_words,
        tuple(Score(score.task, score.metric, score.value) for score in said.scores),
        said.server_version,
    )


def _given(said: Any, name: str) -> Any:
    """Return a field that may be absent, or None."""
    is_absent = hasattr(said, "HasField") and not said.HasField(name)
    return None if is_absent else getattr(said, name, None)


def _named(said: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield what has names: an object of REST by its keys, a list of gRPC by the field that holds them."""
    if isinstance(said, _Document):
        yield from ((key, _as_said(value)) for key, value in said.values.items())
    else:
        yield from ((getattr(entry, name), entry) for entry in said)


def _value(said: Any, name: str) -> Any:
    """Return a value of any kind: JSON of REST, its text of gRPC."""
    return said.values[name] if isinstance(said, _Document) else json.loads(getattr(said, name))


def _read_version(said: Any) -> ModelVersion:
    return ModelVersion(said.name, said.version)


def _read_parsed(said: Any) -> ParsedQuery | ParsedState | None:
    if hasattr(said, "parsed"):  # of REST
        query, state = (said.parsed, None) if hasattr(said.parsed, "sql") else (None, said.parsed)
    else:
        query, state = (_given(said, name) for name in ("query", "state"))
    if query is not None:
        conditions = (Condition(c.column, c.operator, c.value, _read_spans(c.spans)) for c in query.conditions)
        return ParsedQuery(query.select, query.aggregation, tuple(conditions), query.sql)
    if state is None:
        return None
    slots = {name: SlotValue(told.value, _read_spans(told.spans)) for name, told in _named(state.slots, "slot")}
    return ParsedState(slots, tuple(RequestedSlot(r.slot, _read_spans(r.spans)) for r in state.requests))


def _read_step(said: Any) -> Step:
    candidates = (Candidate(c.text, c.probability, _read_source(c.source)) for c in said.candidates)
    return Step(_read_weights(said.context), _read_weights(said.question), tuple(candidates))


def _read_weights(said: Iterable[Any]) -> tuple[PointerWeight, ...]:
    return tuple(PointerWeight(_read_range(getattr(found, "span", found)), found.weight) for found in said)


def _read_token(said: Any) -> AnswerToken:
    masses, span = said.masses, _given(said, "span")
    return AnswerToken(
        said.text,
        said.probability,
        _read_source(said.source),
        Masses(masses.context, masses.question, masses.vocabulary),
        None if span is None else _read_range(span),
    )


def _read_spans(said: Iterable[Any]) -> tuple[AnswerSpan, ...]:
    return tuple(map(_read_span, said))


def _read_span(said: Any) -> AnswerSpan:
    return AnswerSpan(_read_source(said.source), said.start, said.end, said.text)


def _read_places(places: Any) -> tuple[Place, ...]:
    return tuple(Place(_read_span(getattr(place, "span", place)), place.probability) for place in places)


def _read_range(said: Any) -> Span:
    return Span(said.start, said.end)


def _read_source(said: str | int) -> Source:
    if isinstance(said, int) and said not in _SOURCES:
        raise ServerError("The answer names a source that this client does not know.", code="unknown_response")
    return _SOURCES[said] if isinstance(said, int) else Source(said)


def _read_field(said: Any) -> RecordField:
    made = _given(said, "normalized")
    return RecordField(
        _value(said, "value"),
        said.text,
        _read_spans(said.spans),
        said.answered,
        said.probability,
        said.question,
        None if made is None else Normalized(made.library, *(_given(made, n) for n in ("amount", "currency", "iso"))),
        _given(said, "reason"),
    )
