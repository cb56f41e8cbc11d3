"""Many questions of one call answered side by side.

Each question has its own id, limits and error. One that cannot be answered does not keep the others from it.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqan_core.answer.types import Answer
from mqan_core.errors import InputError
from mqan_serving.contract.answers import document_of
from mqan_serving.contract.calls import AskedText, Item
from mqan_serving.contract.errors import Failure, ServingError, describe
from mqan_serving.contract.model import Named, version_of
from mqan_serving.contract.questions import AdapterField, Question
from mqan_serving.service.answer_service import Service
from mqan_serving.service.timeline import Timeline

_PIECES_SIDE_BY_SIDE: Final = 256  # that each question of a call side by side may have


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a question; ``fault`` is what failed, where that is a fault of ours."""

    id: str | None
    result: Answer | Failure
    timeline: Timeline
    fault: Exception | None = None


async def answer_texts(service: Service, texts: Sequence[AskedText], waited_s: float = 0.0) -> list[list[Outcome]]:
    """Answer the questions of a call side by side, in their order; ``waited_s`` of its time have passed.

    A question waits for a place rather than being refused for others of the same call.

    Raises:
        InputError: there is more to read than can be in the time of the call.
        ServingError: the server does not take questions now.
    """
    with service.admit_call():
        texts = await _adapted(service, texts)
        await _check_work(service, texts)
        return await _answer_side_by_side(service, texts, time.monotonic() - waited_s)


async def _adapted(service: Service, texts: Sequence[AskedText]) -> list[AskedText]:
    async def adapt(item: Item) -> Item:
        if not isinstance(item.question, Question) or not isinstance(item.question.choices, AdapterField):
            return item
        await asyncio.sleep(0)  # 255 labels take a millisecond: others are answered between questions
        try:
            return Item(item.id, service.adapters.adapt(item.question))
        except InputError as error:
            return Item(item.id, error)

    return [AskedText(text.id, tuple([await adapt(item) for item in text.items])) for text in texts]


async def _answer_side_by_side(service: Service, texts: Sequence[AskedText], begun: float) -> list[list[Outcome]]:
    inside, left = _Inside(service.num_side_by_side), asyncio.Event()

    async def answer(item: Item, question: Question) -> Outcome:
        timeline = Timeline()
        try:
            return Outcome(item.id, await _answer_patiently(service, question, begun, timeline), timeline)
        except Exception as error:
            failure = describe(error)
            return Outcome(item.id, failure, timeline, error if failure.is_internal else None)
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
    """The questions of a call that are inside the server: as many as it may ask side by side, and as much to read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._num_questions = 0
        self._num_pieces = 0

    def has_room(self, question: Question) -> bool:
        num_pieces = self._num_pieces + question.num_pieces
        is_small = self._num_questions < self._most and num_pieces <= self._most * _PIECES_SIDE_BY_SIDE
        return is_small or not self._num_questions

    def count(self, question: Question, number: int) -> None:
        self._num_questions += number
        self._num_pieces += number * question.num_pieces


async def _check_work(service: Service, texts: Sequence[AskedText]) -> None:
    """Refuse a call whose questions cannot all be read in the longest time that one of them has."""
    num_pieces, timeout_s = 0, 0.0
    for text in texts:
        for item in text.items:
            if isinstance(item.question, Question):
                num_pieces += item.question.num_pieces
                timeout_s = max(timeout_s, service.timeout_s_of(item.question))
                await asyncio.sleep(0)  # many labels take a millisecond: others are answered between questions
    service.check_work(num_pieces, timeout_s)


async def _answer_patiently(service: Service, question: Question, begun: float, timeline: Timeline) -> Answer:
    """Answer a question, if need be after waiting for a place; its time began with the call."""
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


def answers_document(texts: Sequence[AskedText], outcomes: Sequence[Sequence[Outcome]], model: Named) -> dict[str, Any]:
    return {
        "texts": [
            {
                "id": text.id,
                "answers": [
                    _item_document(item, outcome, model, index, text.id)
                    for item, outcome in zip(text.items, of_text, strict=True)
                ],
            }
            for index, (text, of_text) in enumerate(zip(texts, outcomes, strict=True))
        ],
        "model": version_of(model),
    }


def _item_document(item: Item, outcome: Outcome, model: Named, text_index: int, text_id: str | None) -> dict[str, Any]:
    result = outcome.result
    if isinstance(result, Failure):
        return {"id": outcome.id, "answer": None, "error": result.document}
    is_cited = isinstance(item.question, Question) and item.question.citations
    told = document_of(result, model, is_cited=is_cited, text_index=text_index, text_id=text_id)
    return {"id": outcome.id, "answer": told, "error": None}
