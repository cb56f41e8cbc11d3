"""The messages of ``mqan.v1``: questions of requests, and responses of answers."""

import math
from collections.abc import Sequence
from dataclasses import asdict

from mqan.v1 import answer_pb2
from mqan_core import __version__
from mqan_core.answer.types import Answer, AnswerSpan, AnswerToken, ParsedQuery, ParsedState, Place, Source, Span
from mqan_core.errors import InputError
from mqan_serving.service.answer_service import Model
from mqan_serving.service.asked import ChoiceField, ParseName, SourceName, check_lists
from mqan_serving.service.errors import refuse
from mqan_serving.service.many import (
    CONTEXT_IN_QUESTION,
    MOST_QUESTIONS,
    MOST_TEXTS,
    AskedText,
    Item,
    Outcome,
    check_id,
    check_number,
    check_texts,
)
from mqan_serving.service.validation import Question

_SOURCES = {
    Source.CONTEXT: answer_pb2.SOURCE_CONTEXT,
    Source.QUESTION: answer_pb2.SOURCE_QUESTION,
    Source.VOCABULARY: answer_pb2.SOURCE_VOCABULARY,
}
_SOURCE_NAMES: dict[int, SourceName] = {
    answer_pb2.SOURCE_CONTEXT: "context",
    answer_pb2.SOURCE_QUESTION: "question",
    answer_pb2.SOURCE_VOCABULARY: "vocabulary",
}
_PARSE_NAMES: dict[int, ParseName | None] = {
    answer_pb2.PARSE_KIND_UNSPECIFIED: None,
    answer_pb2.PARSE_KIND_SQL: "sql",
    answer_pb2.PARSE_KIND_DIALOGUE_STATE: "dialogue_state",
}


def question_of(request: answer_pb2.AnswerRequest, remaining_s: float | None) -> Question:
    """Return the question of a request.

    Args:
        request: the request.
        remaining_s: until its caller's deadline, where it has one.

    Raises:
        InputError: a source, or what is to be parsed, is none of the contract's, or a list is too long.
    """
    check_lists({name: len(getattr(request, name)) for name in ("choices", "scale", "sources")})
    names = [_SOURCE_NAMES.get(source) for source in request.sources]
    if None in names:
        message = "sources names a source that is neither context, question nor vocabulary."
        raise InputError("wrong_type", "sources", message, "Use the contract's enumeration Source.")
    if request.parse not in _PARSE_NAMES:
        message = "parse is neither a query of SQL nor a dialogue's state."
        raise InputError("wrong_type", "parse", message, "Use the contract's enumeration ParseKind.")
    return Question(
        context=request.context,
        question=request.question,
        max_answer_tokens=request.max_answer_tokens if request.HasField("max_answer_tokens") else None,
        timeout_ms=timeout_ms_of(remaining_s),
        choices=[ChoiceField(label=c.label, description=c.description) for c in request.choices] or None,
        multiple=request.multiple,
        yes_no=request.yes_no,
        scale=list(request.scale) or None,
        sources=[name for name in names if name is not None] or None,
        contiguous=request.contiguous,
        all=request.all,
        alternatives=request.alternatives,
        explain=request.explain,
        parse=_PARSE_NAMES[request.parse],
        none=request.none,
        min_probability=request.min_probability if request.HasField("min_probability") else None,
    )


def timeout_ms_of(remaining_s: float | None) -> int | None:
    """Return the milliseconds until a caller's deadline, where it has one."""
    return None if remaining_s is None else max(1, math.ceil(1000 * remaining_s))


def texts_of(request: answer_pb2.AnswerManyRequest, remaining_s: float | None) -> list[AskedText]:
    """Return the questions of a call.

    Raises:
        InputError: there are none or too many, or an id is none or comes twice. What is wrong with one question alone
            is kept with it.
    """
    check_number(len(request.texts), MOST_TEXTS, "texts")
    texts = []
    for i, text in enumerate(request.texts):
        where = f"texts[{i}]."
        check_number(len(text.questions), MOST_QUESTIONS, f"{where}questions")
        items = tuple(_item(asked, text.context, remaining_s) for asked in text.questions)
        texts.append(AskedText(check_id(text.id if text.HasField("id") else None, where), items))
    check_texts(texts)
    return texts


def _item(asked: answer_pb2.AskedQuestion, context: str, remaining_s: float | None) -> Item:
    name = None
    try:
        name = check_id(asked.id if asked.HasField("id") else None)
        if asked.request.context:
            raise refuse("unknown_field", "context", CONTEXT_IN_QUESTION)
        if asked.HasField("timeout_ms"):
            if not asked.timeout_ms:
                raise refuse("invalid_timeout", "timeout_ms", "timeout_ms is not a whole number above 0.")
            own_s = asked.timeout_ms / 1000
            remaining_s = own_s if remaining_s is None else min(own_s, remaining_s)
        return Item(name, question_of(asked.request, remaining_s).model_copy(update={"context": context}))
    except InputError as error:
        return Item(name, error)


def answers_response(
    texts: Sequence[AskedText], outcomes: Sequence[Sequence[Outcome]], model: Model
) -> answer_pb2.AnswerManyResponse:
    """Return the response to a call with many questions."""
    return answer_pb2.AnswerManyResponse(
        texts=[
            answer_pb2.AnsweredText(id=text.id, answers=[_outcome(outcome, model) for outcome in of_text])
            for text, of_text in zip(texts, outcomes, strict=True)
        ],
        model=answer_pb2.ModelVersion(name=model.name, version=model.version),
    )


def _outcome(outcome: Outcome, model: Model) -> answer_pb2.QuestionOutcome:
    result = outcome.result
    if isinstance(result, Answer):
        return answer_pb2.QuestionOutcome(id=outcome.id, answer=answer_response(result, model))
    error = answer_pb2.QuestionError(code=result.code, message=result.message, hint=result.hint)
    return answer_pb2.QuestionOutcome(id=outcome.id, error=error)


def answer_response(answer: Answer, model: Model) -> answer_pb2.AnswerResponse:
    """Return the response of an answer."""
    return answer_pb2.AnswerResponse(
        answer=answer.text,
        probability=answer.probability,
        tokens=[token_message(token) for token in answer.tokens],
        spans=[span_message(span) for span in answer.spans],
        truncated=answer.truncated,
        model=answer_pb2.ModelVersion(name=model.name, version=model.version),
        answered=answer.answered,
        confidence=answer.confidence,
        none=answer.refusal,
        choices=[
            answer_pb2.ChoiceProbability(label=choice.label, probability=share, evidence=map(_place, choice.evidence))
            for choice, share in zip(answer.choices, answer.shares, strict=True)
        ],
        chosen=answer.chosen,
        expected=answer.expected,
        windows=answer.num_windows,
        places=map(_place, answer.places),
        alternatives=[
            answer_pb2.Alternative(
                answer=other.text,
                probability=other.probability,
                tokens=[token_message(token) for token in other.tokens],
                spans=[span_message(span) for span in other.spans],
            )
            for other in answer.alternatives
        ],
        steps=[
            answer_pb2.Step(
                context=_weights(step.context),
                question=_weights(step.question),
                candidates=[
                    answer_pb2.Candidate(text=c.text, probability=c.probability, source=_SOURCES[c.source])
                    for c in step.candidates
                ],
            )
            for step in answer.explanation
        ],
        query=_query(answer.parsed) if isinstance(answer.parsed, ParsedQuery) else None,
        state=_state(answer.parsed) if isinstance(answer.parsed, ParsedState) else None,
        parse_error=answer.parse_error,
    )


def _query(query: ParsedQuery) -> answer_pb2.ParsedQuery:
    conditions = [
        answer_pb2.Condition(
            column=condition.value.name,
            operator=condition.operator,
            value=condition.value.text,
            spans=map(span_message, condition.value.spans),
        )
        for condition in query.conditions
    ]
    return answer_pb2.ParsedQuery(
        select=query.select, aggregation=query.aggregation, conditions=conditions, sql=query.sql
    )


def _state(state: ParsedState) -> answer_pb2.ParsedState:
    return answer_pb2.ParsedState(
        slots=[
            answer_pb2.SlotValue(slot=told.name, value=told.text, spans=map(span_message, told.spans))
            for told in state.slots
        ],
        requests=[
            answer_pb2.RequestedSlot(slot=wanted.name, spans=map(span_message, wanted.spans))
            for wanted in state.requests
        ],
    )


def _weights(weights: Sequence[tuple[Span, float]]) -> list[answer_pb2.PointerWeight]:
    return [
        answer_pb2.PointerWeight(span=answer_pb2.TextSpan(start=span.start, end=span.end), weight=weight)
        for span, weight in weights
    ]


def token_message(token: AnswerToken) -> answer_pb2.AnswerToken:
    masses = token.masses
    return answer_pb2.AnswerToken(
        text=token.text,
        probability=token.probability,
        source=_SOURCES[token.source],
        masses=answer_pb2.SourceMasses(context=masses.context, question=masses.question, vocabulary=masses.vocabulary),
        span=None if token.span is None else answer_pb2.TextSpan(start=token.span.start, end=token.span.end),
    )


def span_message(span: AnswerSpan) -> answer_pb2.AnswerSpan:
    """Return the message of a quotation."""
    return answer_pb2.AnswerSpan(source=_SOURCES[span.source], start=span.start, end=span.end, text=span.text)


def _place(place: Place) -> answer_pb2.Place:
    return answer_pb2.Place(span=span_message(place.span), probability=place.probability)


def model_response(model: Model) -> answer_pb2.GetModelResponse:
    """Return the response that describes the model."""
    return answer_pb2.GetModelResponse(
        model=answer_pb2.ModelVersion(name=model.name, version=model.version),
        sha256=model.sha256,
        provider=model.provider,
        limits=answer_pb2.Limits(**asdict(model.limits)),
        num_generated=model.num_generated,
        num_words=model.num_words,
        scores=[answer_pb2.Score(task=s.task, metric=s.metric, value=s.value) for s in model.scores],
        server_version=__version__,
    )
