"""Many questions of one call answered side by side.

Each question has its own id, limits and error. One that cannot be answered does not keep the others from it.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqan_core.answer.types import Answer
from mqan_core.errors import InputError
from mqan_serving.contract.answers import document_of
from mqan_serving.contract.calls import AskedText, Item
from mqan_serving.contract.errors import Failure, describe
from mqan_serving.contract.model import Named, version_of
from mqan_serving.contract.questions import Question
from mqan_serving.service.answer_service import Service
from mqan_serving.service.timeline import Timeline

_WORK_SIDE_BY_SIDE: Final = 256  # that each question of a call side by side may have


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
        return await _answer_side_by_side(service, await _prepared(service, texts), time.monotonic() - waited_s)


async def _prepared(service: Service, texts: Sequence[AskedText]) -> list[AskedText]:
    """Return the questions with the labels of their adapters; refuse more than can be read in the longest time."""
    work, timeout_s = 0, 0.0
    prepared = []
    for text in texts:
        items = []
        for item in text.items:
            question = item.question
            if isinstance(question, Question):
                await asyncio.sleep(0)  # 255 labels take a millisecond: others are answered between questions
                try:
                    question = service.adapters.adapt(question)
                    work += question.work
                    timeout_s = max(timeout_s, service.timeout_s_of(question))
                except InputError as error:
                    question = error
            items.append(Item(item.id, question))
        prepared.append(AskedText(text.id, tuple(items)))
    service.check_work(work, timeout_s)
    return prepared


async def _answer_side_by_side(service: Service, texts: Sequence[AskedText], begun: float) -> list[list[Outcome]]:
    most, left = service.num_side_by_side, asyncio.Event()
    inside: list[int] = []  # the pieces of each question

    def has_room(work: int) -> bool:
        return not inside or (len(inside) < most and sum(inside) + work <= most * _WORK_SIDE_BY_SIDE)

    async def answer(item: Item, question: Question) -> Outcome:
        timeline = Timeline()
        try:
            return Outcome(item.id, await service.answer(question, timeline, call_begun=begun), timeline)
        except Exception as error:
            failure = describe(error)
            return Outcome(item.id, failure, timeline, error if failure.is_internal else None)
        finally:
            inside.remove(question.work)
            left.set()

    async with asyncio.TaskGroup() as group:
        tasks: list[list[Outcome | asyncio.Task[Outcome]]] = []
        for text in texts:
            tasks.append([])
            for item in text.items:
                if isinstance(item.question, InputError):
                    tasks[-1].append(Outcome(item.id, describe(item.question), Timeline()))
                    continue
                while not has_room(item.question.work):
                    left.clear()
                    await left.wait()
                inside.append(item.question.work)
                tasks[-1].append(group.create_task(answer(item, item.question)))
    return [[one.result() if isinstance(one, asyncio.Task) else one for one in of_text] for of_text in tasks]


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
