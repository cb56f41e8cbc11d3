"""The messages of gRPC: those that ask, and those that answer as the client's own types."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from mqan.v1 import answer_pb2
from mqan_client.errors import ClientError, InvalidRequestError, ServerError, question_error
from mqan_client.parsed import Condition, ParsedQuery, ParsedState, RequestedSlot, SlotValue
from mqan_client.records import Normalized, Record, RecordField, schema_text
from mqan_client.results import (
    AcceptedQuestion,
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
from mqan_client.transport import Question

_SOURCES = {
    answer_pb2.SOURCE_CONTEXT: Source.CONTEXT,
    answer_pb2.SOURCE_QUESTION: Source.QUESTION,
    answer_pb2.SOURCE_VOCABULARY: Source.VOCABULARY,
}
_PARSE_KINDS = {
    None: answer_pb2.PARSE_KIND_UNSPECIFIED,
    "sql": answer_pb2.PARSE_KIND_SQL,
    "dialogue_state": answer_pb2.PARSE_KIND_DIALOGUE_STATE,
}
_NUMBERS = {source: number for number, source in _SOURCES.items()}


def answer_request(question: Question) -> answer_pb2.AnswerRequest:
    """Return the message that asks a question.

    Raises:
        InvalidRequestError: there is something in it that cannot be sent.
    """
    if question.parse is not None and question.parse not in tuple(_PARSE_KINDS):  # it may be of any type
        message = f"The request cannot be sent: parse is {question.parse!r}, neither 'sql' nor 'dialogue_state'."
        raise InvalidRequestError(message, code="invalid_input")
    try:
        return answer_pb2.AnswerRequest(
            context=question.context,
            question=question.question,
            max_answer_tokens=question.max_answer_tokens,
            choices=[answer_pb2.Choice(label=c.label, description=c.description) for c in question.choices],
            multiple=question.multiple,
            yes_no=question.yes_no,
            scale=question.scale,
            sources=[_NUMBERS[source] for source in question.sources],
            contiguous=question.contiguous,
            all=question.all,
            alternatives=question.alternatives,
            explain=question.explain,
            parse=_PARSE_KINDS[question.parse],
            min_probability=question.min_probability,
        )
    except (ValueError, TypeError) as error:  # a lone surrogate, a number that is no uint32, a value of another type
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None


def answer_many_request(context: str, questions: Sequence[Question]) -> answer_pb2.AnswerManyRequest:
    """Return the message that asks several questions about one context.

    Raises:
        InvalidRequestError: there is something in it that cannot be sent.
    """
    try:
        text = answer_pb2.AskedText(context=context)
    except (ValueError, TypeError) as error:
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None
    for question in questions:
        text.questions.add(request=answer_request(replace(question, context="")))
    return answer_pb2.AnswerManyRequest(texts=[text])


def record_request(context: str, schema: dict[str, Any]) -> answer_pb2.FillRecordRequest:
    """Return the message that asks for a record.

    Raises:
        InvalidRequestError: there is something in it that cannot be sent.
    """
    text = schema_text(schema)
    try:
        return answer_pb2.FillRecordRequest(context=context, schema=text)
    except (ValueError, TypeError) as error:
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None


def read_part(part: answer_pb2.AnswerStreamResponse) -> StreamedWord | Answer:
    """Return a part of a stream.

    Raises:
        ServerError: it has what this client does not know.
    """
    if part.HasField("answer"):
        return read_answer(part.answer)
    (token,) = _read_tokens([part.word.token])
    return StreamedWord(token, part.word.delta)


def read_answers(response: answer_pb2.AnswerManyResponse) -> list[Answer | ClientError]:
    """Return what became of the questions about one text.

    Raises:
        ServerError: the response is not about one text.
    """
    if len(response.texts) != 1:
        raise ServerError(f"The response is about {len(response.texts)} texts, not one.", code="unknown_response")
    return [
        question_error(outcome.error.code, outcome.error.message, outcome.error.hint)
        if outcome.HasField("error")
        else read_answer(outcome.answer)
        for outcome in response.texts[0].answers
    ]


def read_answer(response: answer_pb2.AnswerResponse) -> Answer:
    """Return an answer.

    Raises:
        ServerError: it has what this client does not know.
    """
    is_old = not response.windows  # a server before 0.17
    return Answer(
        response.answer,
        response.probability,
        _read_tokens(response.tokens),
        _read_spans(response.spans),
        response.truncated,
        ModelVersion(response.model.name, response.model.version),
        response.answered or is_old,
        response.probability if is_old else response.confidence,
        tuple(ChoiceProbability(c.label, c.probability, _read_spans(c.spans)) for c in response.choices),
        tuple(response.chosen),
        response.expected if response.HasField("expected") else None,
        1 if is_old else response.windows,
        tuple(Place(_read_span(place.span), place.probability) for place in response.places),
        tuple(
            Alternative(other.answer, other.probability, _read_tokens(other.tokens), _read_spans(other.spans))
            for other in response.alternatives
        ),
        tuple(
            Step(
                _read_weights(step.context),
                _read_weights(step.question),
                tuple(Candidate(c.text, c.probability, _source(c.source)) for c in step.candidates),
            )
            for step in response.steps
        ),
        _read_parsed(response),
        response.parse_error if response.HasField("parse_error") else None,
    )


def _read_parsed(response: answer_pb2.AnswerResponse) -> ParsedQuery | ParsedState | None:
    kind = response.WhichOneof("parsed")
    if kind == "query":
        query = response.query
        conditions = (Condition(c.column, c.operator, c.value, _read_spans(c.spans)) for c in query.conditions)
        return ParsedQuery(query.select, query.aggregation, tuple(conditions), query.sql)
    if kind == "state":
        slots = {told.slot: SlotValue(told.value, _read_spans(told.spans)) for told in response.state.slots}
        requests = (RequestedSlot(wanted.slot, _read_spans(wanted.spans)) for wanted in response.state.requests)
        return ParsedState(slots, tuple(requests))
    return None


def _read_weights(weights: Iterable[answer_pb2.PointerWeight]) -> tuple[PointerWeight, ...]:
    return tuple(PointerWeight(Span(found.span.start, found.span.end), found.weight) for found in weights)


def _read_tokens(tokens: Iterable[answer_pb2.AnswerToken]) -> tuple[AnswerToken, ...]:
    return tuple(
        AnswerToken(
            token.text,
            token.probability,
            _source(token.source),
            Masses(token.masses.context, token.masses.question, token.masses.vocabulary),
            Span(token.span.start, token.span.end) if token.HasField("span") else None,
        )
        for token in tokens
    )


def _source(number: answer_pb2.Source) -> Source:
    if number not in _SOURCES:
        raise ServerError("The answer names a source that this client does not know.", code="unknown_response")
    return _SOURCES[number]


def _read_spans(spans: Iterable[answer_pb2.AnswerSpan]) -> tuple[AnswerSpan, ...]:
    return tuple(map(_read_span, spans))


def _read_span(span: answer_pb2.AnswerSpan) -> AnswerSpan:
    return AnswerSpan(_source(span.source), span.start, span.end, span.text)


def read_record(response: answer_pb2.FillRecordResponse) -> Record:
    """Return a record.

    Raises:
        ServerError: it has what this client does not know.
    """
    model = ModelVersion(response.model.name, response.model.version)
    try:
        fields = {field.name: _read_field(field) for field in response.fields}
        return Record(json.loads(response.record), tuple(response.missing), fields, model)
    except json.JSONDecodeError as error:
        raise ServerError(f"The response is not one of a mqan server: {error}.", code="unknown_response") from None


def _read_field(field: answer_pb2.FilledField) -> RecordField:
    made = field.normalized
    normalized = Normalized(
        made.library,
        made.amount if made.HasField("amount") else None,
        made.currency if made.HasField("currency") else None,
        made.iso if made.HasField("iso") else None,
    )
    return RecordField(
        json.loads(field.value),
        field.text,
        _read_spans(field.spans),
        field.answered,
        field.probability,
        field.question,
        normalized if field.HasField("normalized") else None,
        field.reason if field.HasField("reason") else None,
    )


def read_model(response: answer_pb2.GetModelResponse) -> Model:
    """Return the description of a model."""
    return Model(
        response.model.name,
        response.model.version,
        response.sha256,
        response.provider,
        Limits(**{field.name: getattr(response.limits, field.name) for field in fields(Limits)}),
        response.num_generated,
        response.num_words,
        tuple(Score(score.task, score.metric, score.value) for score in response.scores),
        response.server_version,
        tuple(AcceptedQuestion(q.task, q.question, q.context, tuple(q.labels)) for q in response.questions),
    )
