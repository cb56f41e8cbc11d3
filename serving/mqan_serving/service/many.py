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

from mqan_core.answer.types import Answer
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
_PIECES_SIDE_BY_SIDE: Final = 256  # that each question of a call side by side may have
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
        InputError: there is more to read than can be in the time of the call.
        ServingError: the server does not take questions now.
    """
    record.note_questions(len(texts), sum(len(text.items) for text in texts))
    with service.admit_call():
        await _check_work(service, texts)
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
    begun, inside, left = time.monotonic(), _Inside(service.num_side_by_side), asyncio.Event()

    async def answer(item: Item, question: Question) -> Outcome:
        timeline = Timeline()
        try:
            return Outcome(item.id, await _answer_patiently(service, question, begun, timeline), timeline)
        except Exception as error:
            record.log_fault(error)
            return Outcome(item.id, describe(error), timeline)
        finally:
            inside.count(question, -1)
            left.set()

    async with asyncio.TaskGroup() as group:
        tasks: list[list[Outcome | asyncio.Task[Outcome]]] = []
        for text in texts:
            tasks.append([])
            for item in text.items:
                if isinstance(item.question, InputError):
                    tasks[-1].append(Outcome(item.id, describe(item.question), Timeline()))
                    continue
                while not inside.has_room(item.question):
                    left.clear()
                    await left.wait()
                inside.count(item.question, 1)
                tasks[-1].append(group.create_task(answer(item, item.question)))
    return [[one.result() if isinstance(one, asyncio.Task) else one for one in of_text] for of_text in tasks]


class _Inside:
    """The questions of a call that are inside the server: as many as it may ask side by side, and as much to read.

    Args:
        most: how many questions.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._num_questions = 0
        self._num_pieces = 0

    def has_room(self, question: Question) -> bool:
        """Return whether a question may go in; one alone always may."""
        num_pieces = self._num_pieces + question.num_pieces
        is_small = self._num_questions < self._most and num_pieces <= self._most * _PIECES_SIDE_BY_SIDE
        return is_small or not self._num_questions

    def count(self, question: Question, number: int) -> None:
        """Count a question in, or out by -1."""
        self._num_questions += number
        self._num_pieces += number * question.num_pieces


async def _check_work(service: Service, texts: Sequence[AskedText]) -> None:
    """Check that all questions of a call can be read in the longest time that one of them has.

    Raises:
        InputError: they cannot.
    """
    num_pieces, timeout_s = 0, 0.0
    for text in texts:
        for item in text.items:
            if isinstance(item.question, Question):
                num_pieces += item.question.num_pieces
                timeout_s = max(timeout_s, service.timeout_s_of(item.question))
                await asyncio.sleep(0)  # many labels take a millisecond: others are answered between questions
    service.check_work(num_pieces, timeout_s)


async def _answer_patiently(service: Service, question: Question, begun: float, timeline: Timeline) -> Answer:
    """Answer a question; where there is no place for it, wait for one.

    Its time, the caller's or the server's, began with the call: a response later than that would reach nobody.

    Raises:
        ServingError: its time is over, or the server does not take it.
    """
    timeout_s = service.timeout_s_of(question)
    end = begun + timeout_s
    late = ServingError("deadline_exceeded", f"No answer within {timeout_s:g} s.")
    while True:
        left_ms = math.floor(1000 * (end - time.monotonic()))
        if left_ms < 1:
            raise late
        try:
            asked = question.model_copy(update={"timeout_ms": left_ms})
            return await service.answer(asked, timeline, is_admitted=True)
        except ServingError as error:
            if error.code == late.code:
                raise late from None
            if error.code != "overloaded":
                raise
            full = error
        try:
            async with asyncio.timeout(end - time.monotonic()):
                await service.wait_for_place(question)
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
