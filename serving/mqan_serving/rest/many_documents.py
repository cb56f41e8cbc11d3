"""The JSON of a call with many questions: its schema, how it is read, and what becomes of it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pydantic_core import to_json

from mqan_core.answer.types import Answer
from mqan_core.errors import InputError
from mqan_serving.rest.documents import (
    AnswerDocument,
    AnswersDocument,
    ItemDocument,
    ItemErrorDocument,
    ModelVersionDocument,
    TextAnswersDocument,
)
from mqan_serving.service.answer_service import Model
from mqan_serving.service.errors import refuse
from mqan_serving.service.many import (
    CONTEXT_IN_QUESTION,
    MOST_QUESTIONS,
    MOST_TEXTS,
    AskedText,
    Item,
    Outcome,
    check_id,
    check_names,
    check_number,
    check_texts,
    check_timeout_ms,
    read_object,
)
from mqan_serving.service.validation import Question, Validator, question_schema


def _question_schema() -> dict[str, Any]:
    schema = question_schema()
    named = {"id": {"type": "string", "description": "Comes back with the answer.", "examples": ["height"]}}
    rest = {name: field for name, field in schema["properties"].items() if name not in ("context", "stream")}
    return {**schema, "title": "AskedQuestion", "properties": {**named, **rest}, "required": ["question"]}


def _schema() -> dict[str, Any]:
    questions = {
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_QUESTIONS,
        "description": "Questions about the context; a string is a question with nothing else.",
        "items": {"anyOf": [{"type": "string"}, _question_schema()]},
    }
    context = {"type": "string", "description": "The text.", "examples": ["The tower is 330 m tall."]}
    text_id = {"type": "string", "description": "Comes back with the answers.", "examples": ["mail-17"]}
    timeout_ms = {
        "type": "integer",
        "minimum": 1,
        "description": "Milliseconds until the answers are of no use; a question's own may be less.",
        "examples": [5000],
    }
    text: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"id": text_id, "context": context, "questions": questions},
        "required": ["context", "questions"],
    }
    many = {"type": "array", "minItems": 1, "maxItems": MOST_TEXTS, "items": text}
    texts = {**text, "properties": {"texts": many, "timeout_ms": timeout_ms}, "required": ["texts"]}
    alone = {**text, "properties": {**text["properties"], "timeout_ms": timeout_ms}}
    return {"title": "Questions", "anyOf": [alone, texts]}


MANY_SCHEMA: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": _schema(),
                "example": {
                    "context": "The tower is 330 m tall and was finished in 1889.",
                    "questions": ["How tall is the tower?", {"id": "year", "question": "When was it finished?"}],
                },
            }
        },
    }
}


def parse_texts(validator: Validator, body: bytes) -> list[AskedText]:
    """Read the questions of a call from a JSON document.

    Raises:
        InputError: the document is malformed, too large, or has too many questions. What is wrong with one question
            alone is kept with it.
    """
    document = read_object(validator, body)
    timeout_ms = check_timeout_ms(document.get("timeout_ms"))
    if "texts" in document:
        check_names(document, {"texts", "timeout_ms"})
        rows = _list(document, "texts", MOST_TEXTS, "")
        texts = [_text(validator, row, f"texts[{i}].", timeout_ms) for i, row in enumerate(rows)]
    else:
        texts = [_text(validator, document, "", timeout_ms)]
    check_texts(texts)
    return texts


def _text(validator: Validator, row: Any, where: str, timeout_ms: int | None) -> AskedText:
    if not isinstance(row, dict):
        raise refuse("wrong_type", "texts", f"{where.rstrip('.')} is not an object.")
    check_names(row, {"id", "context", "questions"} if where else {"id", "context", "questions", "timeout_ms"}, where)
    context = row.get("context")
    if context is None:
        raise refuse("missing_field", "context", f"The field {where}context is missing.")
    if not isinstance(context, str):
        raise refuse("wrong_type", "context", f"The field {where}context is not a string.")
    asked = _list(row, "questions", MOST_QUESTIONS, where)
    items = tuple(read_item(validator, one, context, timeout_ms) for one in asked)
    return AskedText(check_id(row.get("id"), where), items)


def read_item(validator: Validator, row: Any, context: str, timeout_ms: int | None = None) -> Item:
    """Read a question: a string, or an object with all that a question may have but its context.

    Args:
        validator: checks it.
        row: what the caller sent.
        context: of the question.
        timeout_ms: until when the call's answers are of use, where the caller says; the question's own may be less.
    """
    if isinstance(row, str):
        row = {"question": row}
    if not isinstance(row, dict):
        return Item(None, refuse("wrong_type", "questions", "A question is neither an object nor a string."))
    try:
        name = check_id(row.get("id"))
    except InputError as error:
        return Item(None, error)
    rest = {key: value for key, value in row.items() if key != "id"}
    if "context" in rest:
        return Item(name, refuse("unknown_field", "context", CONTEXT_IN_QUESTION))
    if "stream" in rest:
        message = "The field stream is known to POST /v1/answer only, which takes one question."
        return Item(name, refuse("unknown_field", "stream", message))
    try:
        question = validator.parse_json(to_json({**rest, "context": "-"}))  # not copied for each
    except InputError as error:
        return Item(name, error)
    limits = [limit for limit in (timeout_ms, question.timeout_ms) if limit is not None]
    return Item(name, question.model_copy(update={"context": context, "timeout_ms": min(limits, default=None)}))


def _list(row: Mapping[str, Any], name: str, most: int, where: str) -> list[Any]:
    value = row.get(name)
    if value is None:
        raise refuse("missing_field", name, f"The field {where}{name} is missing.")
    entries = value if isinstance(value, list) else []
    check_number(len(entries), most, f"{where}{name}")
    return entries


def answers_document(
    texts: Sequence[AskedText], outcomes: Sequence[Sequence[Outcome]], model: Model
) -> AnswersDocument:
    """Return the response to a call."""
    return AnswersDocument.model_construct(
        texts=[
            TextAnswersDocument.model_construct(
                id=text.id,
                answers=[
                    _item(item, outcome, partial(AnswerDocument.of, model=model, text_index=index, text_id=text.id))
                    for item, outcome in zip(text.items, of_text, strict=True)
                ],
            )
            for index, (text, of_text) in enumerate(zip(texts, outcomes, strict=True))
        ],
        model=ModelVersionDocument.model_construct(name=model.name, version=model.version),
    )


def _item(item: Item, outcome: Outcome, tell: Callable[..., AnswerDocument]) -> ItemDocument:
    result = outcome.result
    if isinstance(result, Answer):
        is_cited = isinstance(item.question, Question) and item.question.citations
        return ItemDocument.model_construct(id=outcome.id, answer=tell(result, is_cited=is_cited), error=None)
    error = ItemErrorDocument.model_construct(code=result.code, message=result.message, hint=result.hint)
    return ItemDocument.model_construct(id=outcome.id, answer=None, error=error)
