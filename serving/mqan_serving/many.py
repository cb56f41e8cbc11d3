"""Many questions about one or many texts in one call: they are read, and answered side by side.

Each question has its own id, limits and error. One that cannot be answered does not keep the others from it.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json, to_json

from mqan_core.answer import Answer
from mqan_core.errors import InputError
from mqan_serving.errors import ERRORS, Failure, ServingError, describe
from mqan_serving.service import Service
from mqan_serving.telemetry import RequestRecord
from mqan_serving.timeline import Timeline
from mqan_serving.validation import Question, Validator

MOST_TEXTS: Final = 256
MOST_QUESTIONS: Final = 256  # about one text
MOST_IN_ALL: Final = 1024
MOST_EXPLAINED: Final = 32  # of them; an explanation of a long answer has some 500 kB
_MOST_ID: Final = 200  # characters
_PATIENCE_S: Final = 0.05  # until a question that found the server full tries again


@dataclass(frozen=True, slots=True)
class Item:
    """A question of a call; where it is not one, the error that says why."""

    id: str | None
    question: Question | InputError


@dataclass(frozen=True, slots=True)
class AskedText:
    """A text and what is asked about it."""

    id: str | None
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question."""

    id: str | None
    result: Answer | Failure
    timeline: Timeline


def parse_texts(validator: Validator, body: bytes) -> list[AskedText]:
    """Read the questions of a call from a JSON document.

    Raises:
        InputError: the document is malformed, too large, or has too many questions. What is wrong with one question
            alone is kept with it.
    """
    validator.check_size(len(body))
    try:
        document = from_json(body)
    except ValueError as error:
        raise _refuse("malformed_request", "body", f"The body is not valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise _refuse("malformed_request", "body", "The body is not a JSON object.")
    if "texts" not in document:
        texts = [_text(validator, document, "")]
        _check_explained(texts)
        return texts
    _check_names(document, {"texts"}, "")
    rows = _list(document, "texts", MOST_TEXTS, "")
    texts = [_text(validator, row, f"texts[{i}].") for i, row in enumerate(rows)]
    number = sum(len(text.items) for text in texts)
    if number > MOST_IN_ALL:
        message = f"There are {number} questions; at most {MOST_IN_ALL} are accepted in one call."
        raise _refuse("too_many_questions", "texts", message)
    _check_explained(texts)
    _check_ids([text.id for text in texts], "texts")
    return texts


def _text(validator: Validator, row: Any, where: str) -> AskedText:
    if not isinstance(row, dict):
        raise _refuse("wrong_type", "texts", f"{where.rstrip('.')} is not an object.")
    _check_names(row, {"id", "context", "questions"}, where)
    context = row.get("context")
    if context is None:
        raise _refuse("missing_field", "context", f"The field {where}context is missing.")
    if not isinstance(context, str):
        raise _refuse("wrong_type", "context", f"The field {where}context is not a string.")
    asked = _list(row, "questions", MOST_QUESTIONS, where)
    items = tuple(_item(validator, one, context) for one in asked)
    _check_ids([item.id for item in items], f"{where}questions")
    return AskedText(_id(row, where), items)


def _item(validator: Validator, row: Any, context: str) -> Item:
    """Read a question; its context is put in afterwards, so that it is not copied for each."""
    if isinstance(row, str):
        row = {"question": row}
    if not isinstance(row, dict):
        return Item(None, _refuse("wrong_type", "questions", "A question is neither an object nor a string."))
    try:
        name = _id(row, "")
    except InputError as error:
        return Item(None, error)
    rest = {key: value for key, value in row.items() if key != "id"}
    if "context" in rest:
        message = "The field context stands beside questions, not in a question."
        return Item(name, _refuse("unknown_field", "context", message))
    try:
        question = validator.parse_json(to_json({**rest, "context": "-"}))
    except InputError as error:
        return Item(name, error)
    return Item(name, question.model_copy(update={"context": context}))


def _list(row: Mapping[str, Any], name: str, most: int, where: str) -> list[Any]:
    value = row.get(name)
    if value is None:
        raise _refuse("missing_field", name, f"The field {where}{name} is missing.")
    if not isinstance(value, list) or not value:
        raise _refuse("wrong_type", name, f"The field {where}{name} is not a list of at least one.")
    if len(value) > most:
        message = f"The field {where}{name} has {len(value)} entries; at most {most} are accepted."
        raise _refuse("too_many_questions", name, message)
    return value


def _id(row: Mapping[str, Any], where: str) -> str | None:
    value = row.get("id")
    if value is not None and not (isinstance(value, str) and 0 < len(value) <= _MOST_ID):
        raise _refuse("wrong_type", "id", f"The field {where}id is not a string of 1 to {_MOST_ID} characters.")
    return value


def _check_names(row: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in row:
        if name not in known:
            shown = f"{where}{name}" if name.isidentifier() and len(name) <= 40 else f"a field of {where or 'the body'}"
            raise _refuse(
                "unknown_field", "body", f"The field {shown} is unknown; {', '.join(sorted(known))} are known."
            )


def _check_explained(texts: Sequence[AskedText]) -> None:
    questions = [item.question for text in texts for item in text.items]
    number = sum(isinstance(question, Question) and question.explain for question in questions)
    if number > MOST_EXPLAINED:
        message = f"There are {number} questions with explain; at most {MOST_EXPLAINED} are accepted in one call."
        raise _refuse("too_many_questions", "explain", message)


def _check_ids(ids: Sequence[str | None], field: str) -> None:
    given = [name for name in ids if name is not None]
    if len(set(given)) < len(given):
        raise _refuse("duplicate_id", field, f"Two entries of {field} have the same id.")


def _refuse(code: str, field: str, message: str) -> InputError:
    return InputError(code, field, message, ERRORS[code].hint)


async def answer_texts(service: Service, texts: Sequence[AskedText], record: RequestRecord) -> list[list[Outcome]]:
    """Answer the questions of a call side by side, in their order, and note them for the log and the metrics.

    A question waits for a place rather than being refused for others of the same call.

    Raises:
        ServingError: the server does not take questions now.
    """
    record.note_questions(len(texts), sum(len(text.items) for text in texts))
    service.check_open()
    side_by_side = asyncio.Semaphore(service.num_side_by_side)

    async def answer(item: Item) -> Outcome:
        async with side_by_side:
            timeline = Timeline()
            if isinstance(item.question, InputError):
                return Outcome(item.id, describe(item.question), timeline)
            try:
                return Outcome(item.id, await _answer_patiently(service, item.question, timeline), timeline)
            except Exception as error:
                return Outcome(item.id, describe(error), timeline)

    async with asyncio.TaskGroup() as group:
        tasks = [[group.create_task(answer(item)) for item in text.items] for text in texts]
    outcomes = [[task.result() for task in of_text] for of_text in tasks]
    for outcome in (outcome for of_text in outcomes for outcome in of_text):
        if isinstance(outcome.result, Answer):
            record.note_answer(outcome.result, outcome.timeline)
    return outcomes


async def _answer_patiently(service: Service, question: Question, timeline: Timeline) -> Answer:
    deadline = time.monotonic() + service.timeout_s_of(question)
    while True:
        try:
            return await service.answer(question, timeline)
        except ServingError as error:
            if error.code != "overloaded" or time.monotonic() + _PATIENCE_S > deadline:
                raise
        await asyncio.sleep(_PATIENCE_S)
