"""The service refuses what it should, when it should, and finishes what it has begun."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mqan_core.errors import InputError
from mqan_serving.contract.errors import ERRORS, ServingError, describe
from mqan_serving.contract.questions import Question
from mqan_serving.service.health import Health, State

QUESTION = Question(context="The kettle is in the kitchen.", question="Where is the kettle?")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


async def test_answers_with_its_limits(make_service: Any) -> None:
    service = make_service()
    answer = await service.answer(QUESTION)
    assert answer.text == "The kettle is"
    short = await service.answer(QUESTION.model_copy(update={"max_answer_tokens": 1}))
    assert short.text == "The"
    assert service.num_requests == 0
    assert service.model.limits.max_answer_tokens == 49  # the model's own limit is lower than the setting


async def test_long_texts_are_read_off_the_event_loop(make_service: Any) -> None:
    service = make_service(max_context_tokens=20_000, max_batch_tokens=30_000)
    answer = await service.answer(Question(context="word " * 10_000, question="what?"))
    assert answer.text == "word word word"


async def test_full_server_refuses_at_once_and_recovers(make_service: Any, engine: Any) -> None:
    service = make_service(max_queued_requests=2, max_batch_size=1)
    engine.may_answer.clear()
    tasks = [asyncio.create_task(service.answer(QUESTION)) for _ in range(3)]
    await until(lambda: service.num_requests == 3)
    with pytest.raises(ServingError) as raised:
        await service.answer(QUESTION)
    assert raised.value.code == "overloaded"
    assert raised.value.retry_after_s == 1
    engine.may_answer.set()
    assert len(await asyncio.gather(*tasks)) == 3
    await service.answer(QUESTION)


@pytest.mark.parametrize(("provider", "most"), [("CPUExecutionProvider", 3 + 4), ("CUDAExecutionProvider", 3 + 32)])
async def test_no_more_wait_than_may(make_service: Any, engine: Any, provider: str, most: int) -> None:
    engine.provider = provider
    service = make_service(max_queued_requests=3)
    assert service.model.limits.max_concurrent_requests == most
    engine.may_answer.clear()
    tasks = [asyncio.create_task(service.answer(QUESTION)) for _ in range(most)]
    await until(lambda: service.num_requests == most)
    with pytest.raises(ServingError):
        await service.answer(QUESTION)
    engine.may_answer.set()
    await asyncio.gather(*tasks)


async def test_slow_answer_is_given_up(make_service: Any, engine: Any) -> None:
    service = make_service(request_timeout_s=0.05)
    engine.may_answer.clear()
    with pytest.raises(ServingError) as raised:
        await service.answer(QUESTION)
    assert raised.value.code == "deadline_exceeded"
    assert service.num_requests == 0


async def test_draining_finishes_what_is_in_progress(make_service: Any, engine: Any) -> None:
    service = make_service()
    engine.may_answer.clear()
    task = asyncio.create_task(service.answer(QUESTION))
    await until(lambda: service.num_requests == 1)
    drain = asyncio.create_task(service.drain(5))
    await until(lambda: not service.health.is_ready)
    with pytest.raises(ServingError) as raised:
        await service.answer(QUESTION)
    assert raised.value.code == "unavailable"
    assert not drain.done()
    engine.may_answer.set()
    await drain
    assert (await task).text == "The kettle is"


async def test_not_ready_before_it_has_answered_once(engine: Any, make_service: Any) -> None:
    service = make_service()
    service.health.state = State.STARTING
    with pytest.raises(ServingError):
        await service.answer(QUESTION)
    await service.warm_up()
    assert service.health.is_ready
    assert engine.batches


def test_health_only_moves_forward() -> None:
    health = Health()
    assert not health.is_ready
    assert health.is_live
    health.set_draining()
    health.set_ready()
    assert health.state == "draining"
    health.set_failed()
    health.set_draining()
    assert health.state == "failed"
    assert not health.is_live


def test_unexpected_errors_tell_nothing() -> None:
    failure = describe(ValueError("/srv/secret"))
    assert failure.is_internal
    assert "secret" not in failure.message + failure.hint
    assert describe(InputError("not_of_the_table", "x", "m", "h")).code == "invalid_input"


def test_table_of_errors_is_whole() -> None:
    import grpc

    for code, kind in ERRORS.items():
        assert code.islower()
        assert 400 <= kind.http < 600
        assert kind.grpc in grpc.StatusCode.__members__
        assert kind.hint.endswith(".")
