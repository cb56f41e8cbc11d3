"""Long texts take turns: the largest cannot starve the others, nor can these starve the largest."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from mqan_serving.contract.questions import Question
from mqan_serving.service import admission
from mqan_serving.service.admission import FairReader

_MIB = 2**20


class Desk:
    """A reader whose thread is held until all have come, and the order in which it then reads."""

    def __init__(self) -> None:
        self.reader = FairReader()
        self.order: list[str] = []
        self._may_read = threading.Event()
        self._held = asyncio.ensure_future(self.reader.read(0, lambda: self._may_read.wait(10)))

    def ask(self, name: str, num_chars: int) -> "asyncio.Task[None]":
        return asyncio.create_task(self.reader.read(num_chars, lambda: self.order.append(name)))

    async def read_all(self, *asked: "asyncio.Task[None]") -> list[str]:
        await asyncio.sleep(0)  # all of them wait now
        self._may_read.set()
        await self._held
        for task in asked:
            with suppress(asyncio.CancelledError):
                await task
        return self.order


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    await asyncio.sleep(0)  # the thread is held
    yield made
    await made.read_all()
    made.reader.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the time that the reader sees."""
    now = [0.0]
    monkeypatch.setattr(admission, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def set_to(seconds: float) -> None:
        now[0] = seconds

    return set_to


async def test_an_ordinary_text_goes_before_a_flood_of_the_largest(desk: Desk) -> None:
    flood = [desk.ask(f"flood {number}", _MIB) for number in range(8)]
    ordinary = desk.ask("ordinary", 20_000)
    assert await desk.read_all(*flood, ordinary) == ["ordinary", *(f"flood {number}" for number in range(8))]


async def test_the_largest_has_its_turn_before_what_comes_much_later(
    desk: Desk, clock: Callable[[float], None]
) -> None:
    asked = [desk.ask("largest", _MIB)]
    await asyncio.sleep(0)
    for second in range(1, 21):
        clock(second)
        asked.append(desk.ask(f"after {second} s", 20_000))
        await asyncio.sleep(0)
    order = await desk.read_all(*asked)
    assert order.index("largest") == order.index("after 10 s") + 1
    assert len(order) == 21


async def test_who_has_gone_is_not_read_for(desk: Desk) -> None:
    stays, *gone = [desk.ask(str(number), 20_000) for number in range(5)]
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    assert await desk.read_all(stays, *gone) == ["0"]
    assert await desk.reader.read(1, lambda: "free again") == "free again"


async def test_a_failed_read_is_told_and_passed_on(desk: Desk) -> None:
    def fail() -> None:
        raise ValueError("unreadable")

    failing = asyncio.create_task(desk.reader.read(1, fail))
    after = desk.ask("after", 2)
    await asyncio.sleep(0)
    desk._may_read.set()
    with pytest.raises(ValueError, match="unreadable"):
        await failing
    await after


async def test_white_space_holds_up_others_by_one_text(
    make_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight texts of 256 KiB of white space, asked again and again: another text waits for one of them."""
    service, begun = make_service(), []
    read = service._check_and_read

    def look(question: Question) -> Any:
        begun.append(question.num_chars)
        return read(question)

    monkeypatch.setattr(service, "_check_and_read", look)
    blank = Question(context="Oslo" + " " * (_MIB // 4) + "Bergen", question="Where?")
    ordinary = Question(context="The tower stands 330 metres above the town. " * 400, question="How tall?")
    assert len(ordinary.context) > 16_384, "read by the thread"

    async def flood() -> None:
        while True:
            await service.answer(blank)

    flooding = [asyncio.create_task(flood()) for _ in range(8)]
    try:
        for _ in range(5):
            await asyncio.sleep(0.05)
            num_before = len(begun)
            await service.answer(ordinary)
            assert begun.index(ordinary.num_chars, num_before) <= num_before + 1
    finally:
        for task in flooding:
            task.cancel()
        ended = await asyncio.gather(*flooding, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ended), "those of the flood were answered, too"
    assert begun.count(blank.num_chars) >= 5


async def test_long_choices_are_read_by_the_thread(
    make_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, threads = make_service(), []
    read = service._check_and_read

    def look(question: Question) -> Any:
        threads.append(threading.current_thread().name)
        return read(question)

    monkeypatch.setattr(service, "_check_and_read", look)
    choices = [{"label": f"label {i}", "description": f"{'w' * 15} " * 10} for i in range(120)]
    for given in (choices, choices[:2]):
        question = {"context": "The tower.", "question": "Which?", "choices": given}
        await service.answer(Question.model_validate(question))
    assert threads == ["mqan-reader_0", threading.current_thread().name]
