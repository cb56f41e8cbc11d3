"""The service refuses what it should, when it should, and finishes what it has begun."""

import asyncio
from typing import Any

import pytest

from mqan_serving.contract.errors import ERRORS, ServingError
from mqan_serving.contract.questions import Question
from mqan_serving.service.health import Health, State
from tests.serving.conftest import until

QUESTION = Question(context="The kettle is in the kitchen.", question="Where is the kettle?")


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


def test_table_of_errors_is_whole() -> None:
    import grpc

    for code, kind in ERRORS.items():
        assert code.islower()
        assert 400 <= kind.http < 600
        assert kind.grpc in grpc.StatusCode.__members__
        assert kind.hint.endswith(".")
