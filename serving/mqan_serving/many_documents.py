"""The JSON of a call with many questions: its schema, and what becomes of it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from mqan_core.answer import Answer
from mqan_serving.documents import (
    AnswerDocument,
    AnswersDocument,
    ItemDocument,
    ItemErrorDocument,
    ModelVersionDocument,
    TextAnswersDocument,
)
from mqan_serving.many import MOST_QUESTIONS, MOST_TEXTS, AskedText, Item, Outcome
from mqan_serving.service import Model
from mqan_serving.validation import Question, question_schema


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
    text: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"id": text_id, "context": context, "questions": questions},
        "required": ["context", "questions"],
    }
    many = {"type": "array", "minItems": 1, "maxItems": MOST_TEXTS, "items": text}
    texts = {"type": "object", "additionalProperties": False, "properties": {"texts": many}, "required": ["texts"]}
    return {"title": "Questions", "anyOf": [text, texts]}


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
