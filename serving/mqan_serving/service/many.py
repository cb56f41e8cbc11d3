"""Many questions about one or many texts in one call: what bounds it, and how they are answered side by side.

Each question has its own id, limits and error. One that cannot be answered does not keep the others from it.
"""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from mqan_core.answer import Answer
from mqan_core.errors import InputError
from mqan_serving.observability.logs import RequestRecord
from mqan_serving.service.answer_service import Service
from mqan_serving.service.errors import Failure, ServingError, describe, refuse, shown_field
from mqan_serving.service.timeline import Timeline
from mqan_serving.service.validation import Question, Validator

MOST_TEXTS: Final = 256
MOST_QUESTIONS: Final = 256  # about one text
MOST_IN_ALL: Final = 1024
CONTEXT_IN_QUESTION: Final = "The field context stands beside questions, not in a question."
MOST_EXPLAINED: Final = 32  # of them; an explanation of a long answer has some 500 kB
_MOST_ID: Final = 200  # characters


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
    """The outcome of a question."""

    id: str | None
    result: Answer | Failure
    timeline: Timeline


def check_timeout_ms(value: object) -> int | None:
    """Return the milliseconds until the answers of a call are of no use; None where the caller does not say.

    Raises:
        InputError: they are no whole number above 0.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise refuse("invalid_timeout", "timeout_ms", "timeout_ms is not a whole number of milliseconds above 0.")


def check_number(number: int, most: int, name: str) -> None:
    """Check how many texts or questions there are.

    Args:
        number: how many.
        most: how many are accepted.
        name: of the field that has them.

    Raises:
        InputError: there are none, or too many.
    """
    field = name.rpartition(".")[2]
    if number == 0:
        raise refuse("wrong_type", field, f"The field {name} is not a list of at least one.")
    if number > most:
        message = f"The field {name} has {number} entries; at most {most} are accepted."
        raise refuse("too_many_questions", field, message)


def check_shared(number: int, most: int, field: str, what: str) -> None:
    """Check how much there is to read: a body has once what many questions share.

    Args:
        number: characters, those that are shared counted for each question.
        most: how many are accepted.
        field: that has them.
        what: they are, for the message.

    Raises:
        InputError: they are too many.
    """
    if number > most:
        message = f"{what} have {number} characters; at most {most} are accepted."
        raise refuse("request_too_large", field, message)


def check_texts(texts: Sequence[AskedText]) -> None:
    """Check what only a call as a whole can show.

    Raises:
        InputError: there are too many questions in all, or an id comes twice.
    """
    number = sum(len(text.items) for text in texts)
    if number > MOST_IN_ALL:
        message = f"There are {number} questions; at most {MOST_IN_ALL} are accepted in one call."
        raise refuse("too_many_questions", "texts", message)
    check_explained(texts)
    _check_ids([text.id for text in texts], "texts")
    for i, text in enumerate(texts):
        _check_ids([item.id for item in text.items], f"texts[{i}].questions" if len(texts) > 1 else "questions")


def check_id(value: object, where: str = "") -> str | None:
    """Return the id of a text or question, if it has one.

    Args:
        value: what stands there.
        where: the way to it, for the message.

    Raises:
        InputError: it is none.
    """
    if value is not None and not (isinstance(value, str) and 0 < len(value) <= _MOST_ID):
        raise refuse("wrong_type", "id", f"The field {where}id is not a string of 1 to {_MOST_ID} characters.")
    return value


def check_explained(texts: Sequence[AskedText]) -> None:
    """Check how many questions of a call are explained: an explanation is large.

    Raises:
        InputError: there are too many.
    """
    questions = [item.question for text in texts for item in text.items]
    number = sum(isinstance(question, Question) and question.explain for question in questions)
    if number > MOST_EXPLAINED:
        message = f"There are {number} questions with explain; at most {MOST_EXPLAINED} are accepted in one call."
        raise refuse("too_many_questions", "explain", message)


def _check_ids(ids: Sequence[str | None], field: str) -> None:
    given = [name for name in ids if name is not None]
    if len(set(given)) < len(given):
        raise refuse("duplicate_id", field, f"Two entries of {field} have the same id.")


def read_object(validator: Validator, body: bytes, *, allow_inf_nan: bool = True) -> dict[str, Any]:
    """Return the JSON object that a body is.

    Raises:
        InputError: it is too large, malformed, or something else.
    """
    validator.check_size(len(body))
    try:
        document = from_json(body, allow_inf_nan=allow_inf_nan)
    except ValueError as error:
        raise refuse("malformed_request", "body", f"The body is not valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise refuse("malformed_request", "body", "The body is not a JSON object.")
    return document


async def answer_texts(service: Service, texts: Sequence[AskedText], record: RequestRecord) -> list[list[Outcome]]:
    """Answer the questions of a call side by side, in their order, and note them for the log and the metrics.

    A question waits for a place rather than being refused for others of the same call.

    Raises:
        ServingError: the server does not take questions now.
    """
    record.note_questions(len(texts), sum(len(text.items) for text in texts))
    with service.admit_call():
        outcomes = await _answer_side_by_side(service, texts, record)
    results = [(outcome.result, outcome.timeline) for of_text in outcomes for outcome in of_text]
    for result, timeline in results:
        if isinstance(result, Answer):
            record.note_answer(result, timeline)
    record.note_failures([result.code for result, _ in results if isinstance(result, Failure)])
    return outcomes


async def _answer_side_by_side(
    service: Service, texts: Sequence[AskedText], record: RequestRecord
) -> list[list[Outcome]]:
    side_by_side, begun = asyncio.Semaphore(service.num_side_by_side), time.monotonic()

    async def answer(item: Item) -> Outcome:
        async with side_by_side:
            timeline = Timeline()
            if isinstance(item.question, InputError):
                return Outcome(item.id, describe(item.question), timeline)
            try:
                return Outcome(item.id, await _answer_patiently(service, item.question, begun, timeline), timeline)
            except Exception as error:
                record.log_fault(error)
                return Outcome(item.id, describe(error), timeline)

    async with asyncio.TaskGroup() as group:
        tasks = [[group.create_task(answer(item)) for item in text.items] for text in texts]
    return [[task.result() for task in of_text] for of_text in tasks]


async def _answer_patiently(service: Service, question: Question, begun: float, timeline: Timeline) -> Answer:
    """Answer a question; where there is no place for it, wait for one.

    Its time, the caller's or the server's, began with the call: a response later than that would reach nobody.

    Raises:
        ServingError: its time is over, or the server does not take it.
    """
    end = begun + service.timeout_s_of(question)
    while True:
        left_ms = math.floor(1000 * (end - time.monotonic()))
        if left_ms < 1:
            raise ServingError("deadline_exceeded", "The time of the call was over before this question's turn.")
        try:
            asked = question.model_copy(update={"timeout_ms": left_ms})
            return await service.answer(asked, timeline, is_admitted=True)
        except ServingError as error:
            if error.code != "overloaded":
                raise
            full = error
        try:
            async with asyncio.timeout(end - time.monotonic()):
                await service.wait_for_place()
        except TimeoutError:
            raise full from None


def check_names(row: Mapping[str, Any], known: Set[str], where: str = "") -> None:
    """Check that an object of a document has no field but the known ones, and say where it stands if it has.

    Raises:
        InputError: it has another.
    """
    for name in row:
        if name not in known:
            shown = shown_field(name, "")
            what = f"The field {where}{shown}" if shown else f"A field of {where.rstrip('.') or 'the body'}"
            message = f"{what} is unknown; {', '.join(sorted(known))} are known."
            raise refuse("unknown_field", "body", message)
