"""Requests join and leave what the engine does without waiting, starving or harming one another."""

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqan_serving.contract.errors import ServingError
from mqan_serving.observability.metrics import Metrics
from mqan_serving.service import waiting
from mqan_serving.service.admission import Admission, Pace
from mqan_serving.service.batching import Batcher
from mqan_serving.service.health import Watch
from mqan_serving.service.timeline import Timeline
from mqan_serving.service.waiting import choose
from tests.serving.conftest import until

BatcherFactory = Callable[..., Batcher]


@pytest.fixture
async def make_batcher(engine: Any) -> AsyncIterator[BatcherFactory]:
    executor = ThreadPoolExecutor(1, thread_name_prefix="test-engine")
    batchers: list[Batcher] = []

    def make(max_batch_size: int = 8, max_batch_tokens: int = 1000, max_running_tokens: int = 4000) -> Batcher:
        limits = {
            "max_batch_size": max_batch_size,
            "max_batch_tokens": max_batch_tokens,
            "max_running_tokens": max_running_tokens,
        }
        batchers.append(Batcher(engine, executor, Metrics(), Watch(60), Pace(), **limits))
        return batchers[-1]

    yield make
    engine.may_answer.set()
    engine.may_step = threading.Semaphore(10_000)
    for batcher in batchers:
        await batcher.close()
    executor.shutdown()


def ask(batcher: Batcher, engine: Any, context: str, *, more_steps: int = 0) -> "asyncio.Task[Any]":
    return asyncio.create_task(batcher.answer(engine.read(context, "what ?" + " step" * more_steps), 3, Timeline()))


async def begin(batcher: Batcher, engine: Any) -> "asyncio.Task[Any]":
    """Ask, and return when the engine is busy with it: until it may answer."""
    engine.may_answer.clear()
    first = ask(batcher, engine, "first")
    await until(lambda: engine.num_started == 1)
    return first


async def ask_as_one_batch(batcher: Batcher, engine: Any, texts: list[str], *, more_steps: int = 0) -> list[Any]:
    """Ask while the engine is busy with another request, so that all are its next batch; return answers or errors."""
    first = await begin(batcher, engine)
    tasks = [ask(batcher, engine, text, more_steps=more_steps) for text in texts]
    await until(lambda: batcher.num_waiting == len(texts))
    engine.may_answer.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_queues_while_the_engine_works_is_the_next_batch(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher()
    first = await begin(batcher, engine)
    others = [ask(batcher, engine, f"other {i}") for i in range(5)]
    await until(lambda: batcher.num_waiting == 5)
    engine.may_answer.set()
    answers = await asyncio.gather(first, *others)
    assert engine.batches == [["first"], [f"other {i}" for i in range(5)]]
    assert [answer.text for answer in answers] == ["first", *(f"other {i}" for i in range(5))]


async def test_what_is_too_late_is_not_encoded_though_the_event_loop_was_too_busy_to_say_so(
    make_batcher: BatcherFactory, engine: Any
) -> None:
    batcher = make_batcher()
    first = await begin(batcher, engine)
    now = time.monotonic()
    late = [
        asyncio.create_task(batcher.answer(engine.read(f"late {i}", "what ?"), 3, Timeline(), deadline=now + 0.01))
        for i in range(3)
    ]
    stays = ask(batcher, engine, "stays")
    await until(lambda: batcher.num_waiting == 4)
    time.sleep(0.02)
    engine.may_answer.set()
    await asyncio.gather(first, stays)
    assert engine.batches == [["first"], ["stays"]]
    assert not any(task.done() for task in late), "whoever set the deadline cancels"
    for task in late:
        task.cancel()
    assert {type(end) for end in await asyncio.gather(*late, return_exceptions=True)} == {asyncio.CancelledError}


@pytest.mark.parametrize(
    ("bad", "more_steps", "is_tried_again"), [("explode", 0, True), ("burst", 2, True), ("unwritable", 0, False)]
)
async def test_a_bad_request_fails_alone_and_others_are_tried_again(
    make_batcher: BatcherFactory, engine: Any, bad: str, more_steps: int, is_tried_again: bool
) -> None:
    """In encoding, in a step and in writing an answer, after which nothing needs to be encoded again."""
    batcher = make_batcher()
    results = await ask_as_one_batch(batcher, engine, ["good 1", bad, "good 2"], more_steps=more_steps)
    assert [getattr(result, "text", None) for result in results] == ["good 1", None, "good 2"]
    assert isinstance(results[1], RuntimeError)
    together, *apart = engine.batches[1:]
    assert sorted(together) == [bad, "good 1", "good 2"] or bad == "unwritable"
    assert apart == ([[text] for text in together] if is_tried_again else [])
    assert batcher.is_alive


async def test_engine_runs_on_one_thread_one_call_at_a_time(
    make_batcher: BatcherFactory, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    busy = threading.Lock()

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            assert busy.acquire(blocking=False)
            threads.add(threading.get_ident())
            time.sleep(0.001)
            busy.release()
            return call(*given)

        return run

    for name in ("start_in_turns", "step", "drop", "merge"):
        monkeypatch.setattr(engine, name, guarded(getattr(engine, name)))
    batcher = make_batcher(max_batch_size=4, max_batch_tokens=100)
    texts = [f"text {i} " + "word " * (i % 7) for i in range(60)]
    answers = await asyncio.gather(*(ask(batcher, engine, text, more_steps=i % 12) for i, text in enumerate(texts)))
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    for text, answer in zip(texts, answers, strict=True):
        assert text.startswith(answer.text)  # nobody got the answer of another


async def test_several_threads_answer_side_by_side(engine: Any) -> None:
    engine.may_answer.clear()
    with ThreadPoolExecutor(2) as executor:
        limits = {"max_batch_size": 1, "max_batch_tokens": 100, "max_running_tokens": 100}
        batcher: Batcher = Batcher(engine, executor, Metrics(), Watch(60), Pace(), num_threads=2, **limits)
        first = [ask(batcher, engine, text) for text in ("one", "two")]
        await until(lambda: engine.num_started == 2)
        others = [ask(batcher, engine, f"text {i}", more_steps=i % 3) for i in range(20)]
        await asyncio.sleep(0.02)
        assert engine.num_started == 2
        engine.may_answer.set()
        answers = await asyncio.gather(*first, *others)
        await batcher.close()
    assert [answer.text for answer in answers] == ["one", "two", *(f"text {i}" for i in range(20))]


# --- In flight


async def test_a_short_answer_does_not_wait_for_a_long_one(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher()
    engine.may_step = threading.Semaphore(3)
    long = ask(batcher, engine, "long", more_steps=50)
    await until(lambda: len(engine.steps) == 3)
    short = ask(batcher, engine, "short")
    await asyncio.sleep(0.02)
    assert engine.num_started == 1  # it joins at the end of a step, not within one
    engine.may_step.release(3)
    async with asyncio.timeout(60):
        assert (await short).text == "short"
    assert not long.done()
    await until(lambda: len(engine.steps) == 6)
    assert sorted(engine.steps[3:]) == [["long"], ["long"], ["short"]]
    engine.may_step.release(100)
    assert (await long).text == "long"


async def test_who_goes_away_leaves_at_the_next_step(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher()
    first = await begin(batcher, engine)
    engine.may_step = threading.Semaphore(3)
    gone, stays = (ask(batcher, engine, text, more_steps=9) for text in ("gone", "stays"))
    await until(lambda: batcher.num_waiting == 2)
    engine.may_answer.set()
    await until(lambda: len(engine.steps) == 3)  # of the first, and two of the pair
    gone.cancel()
    await asyncio.sleep(0)
    engine.may_step.release(100)
    await asyncio.gather(first, stays)
    contexts = engine.steps[1:]
    assert contexts[:2] == [["gone", "stays"]] * 2
    assert contexts.count(["gone", "stays"]) <= 3  # one step may have been on its way
    assert contexts[-1] == ["stays"]


async def test_a_decoding_of_nobody_takes_no_step(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher()
    engine.may_step = threading.Semaphore(2)
    gone = ask(batcher, engine, "gone", more_steps=50)
    await until(lambda: len(engine.steps) == 2)
    gone.cancel()
    await asyncio.sleep(0)
    engine.may_step.release(100)
    assert (await ask(batcher, engine, "later")).text == "later"
    assert engine.steps.count(["gone"]) <= 3


async def test_long_answers_go_on_together(make_batcher: BatcherFactory, engine: Any) -> None:
    """Those of requests that were started one by one, up to the size of a batch."""
    batcher = make_batcher(max_batch_size=4, max_batch_tokens=5)
    texts = [f"text {i}" for i in range(6)]
    engine.may_answer.clear()
    tasks = [ask(batcher, engine, text, more_steps=40) for text in texts]
    await until(lambda: batcher.num_waiting == 5)
    engine.may_answer.set()
    await asyncio.gather(*tasks)
    assert engine.batches == [[text] for text in texts]
    assert max(len(step) for step in engine.steps) in (3, 4)


async def test_an_engine_that_failed_for_good_ends_it_for_all(make_batcher: BatcherFactory, engine: Any) -> None:
    """Nothing is tried again on a device that is gone, and nobody waits for it."""
    batcher = make_batcher(max_batch_size=1)
    results = await ask_as_one_batch(batcher, engine, ["good", "die", "other"], more_steps=2)
    assert [getattr(error, "code", error) for error in results] == ["unavailable"] * 3
    assert not batcher.is_alive
    assert engine.batches.count(["die"]) == 1


async def test_what_decodes_is_bounded(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher(max_batch_size=1, max_running_tokens=40)
    requests = [engine.read("word " * 10, "what ? step step step step") for _ in range(6)]
    assert requests[0].num_context_tokens + requests[0].num_question_tokens == 16
    await asyncio.gather(*(batcher.answer(request, 3, Timeline()) for request in requests))
    assert engine.most_running == 2


async def test_what_is_longer_than_the_bound_decodes_alone(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher(max_running_tokens=5)
    texts = ["long " * 9, "short", "longer " * 9]
    answers = await asyncio.gather(*(ask(batcher, engine, text, more_steps=3) for text in texts))
    assert [answer.text.split()[0] for answer in answers] == ["long", "short", "longer"]
    assert engine.most_running == 1


async def test_closing_tells_whoever_waits(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher()
    tasks = [await begin(batcher, engine)]
    tasks.append(ask(batcher, engine, "waiting"))
    await until(lambda: batcher.num_waiting == 1)
    await batcher.close()
    engine.may_answer.set()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(result, ServingError)
        assert result.code == "unavailable"


@given(
    lengths=st.lists(st.integers(2, 500), min_size=1, max_size=60),
    max_size=st.integers(1, 40),
    max_tokens=st.integers(1, 3000),
)
def test_choice_is_within_its_bounds(lengths: list[int], max_size: int, max_tokens: int) -> None:
    batch = choose(lengths, max_size, max_tokens)
    assert batch[0] == 0  # the oldest always goes
    assert len(set(batch)) == len(batch) <= max_size
    chosen = [lengths[i] for i in batch]
    padded = len(batch) * max(chosen)
    assert len(batch) == 1 or padded <= max_tokens
    assert padded <= 2 * sum(chosen)
    assert len({length > 384 for length in chosen}) == 1


def test_similar_lengths_go_together() -> None:
    assert choose([100, 2000, 105, 1900, 95, 98], max_size=4, max_tokens=8192) == [0, 5, 2, 4]
    assert choose([2000, 100, 100, 100, 1990], max_size=4, max_tokens=8192) == [0, 4]
    assert choose([100, 2000, 2000, 200, 20], max_size=4, max_tokens=8192) == [0, 4, 3]


async def test_every_request_is_answered_while_others_keep_coming(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher(max_batch_size=2, max_batch_tokens=50)
    tasks = [await begin(batcher, engine)]
    long = ask(batcher, engine, "long " * 40)
    await asyncio.sleep(0.05)  # so much sooner that its length does not matter
    tasks += [ask(batcher, engine, f"short {i}") for i in range(20)]
    await until(lambda: batcher.num_waiting == 21)
    engine.may_answer.set()
    await asyncio.gather(long, *tasks)
    assert engine.batches[1] == ["long " * 40]


async def test_what_takes_long_to_read_goes_after_what_came_soon_after_it(
    make_batcher: BatcherFactory, engine: Any
) -> None:
    batcher = make_batcher()
    first = await begin(batcher, engine)
    tasks = [ask(batcher, engine, "long " * 10_000), ask(batcher, engine, "short")]
    await until(lambda: batcher.num_waiting == 2)
    engine.may_answer.set()
    await asyncio.gather(first, *tasks)
    assert engine.batches[1:] == [["short"], ["long " * 10_000]]


def test_pace_is_that_of_the_best_of_the_last_long_readings() -> None:
    pace = Pace(num_threads=2)
    pace.note(10, 1)  # too few to tell
    assert pace.most_in(3) == math.inf
    for seconds in (2, 0.5, 1):
        pace.note(1000, seconds)
    assert pace.most_in(3) == pytest.approx(0.8 * 2 * 2000 * 3)  # a fifth of an answer's time is not reading


def test_what_is_inside_can_be_read_in_time() -> None:
    pace = Pace()
    pace.note(1000, 1)
    admission = Admission(100, pace, 2)
    with admission.admit(5000):  # one alone always may
        assert not admission.has_room(1)
    with admission.admit(1500):
        assert admission.has_room(99)
        assert not admission.has_room(101)
    assert admission.has_room(5000)


async def test_a_short_text_is_answered_while_a_long_one_is_read(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher()
    engine.may_read = threading.Semaphore(2)
    long = asyncio.create_task(batcher.answer(engine.read("long", "what ?" + " window" * 5), 3, Timeline()))
    await until(lambda: len(engine.windows) == 2)
    short = ask(batcher, engine, "short")
    await until(lambda: batcher.num_waiting == 1)
    for _ in range(3):
        engine.may_read.release()
    assert [answer.text for answer in await asyncio.gather(short, long)] == ["short", "long"]
    assert engine.batches == [["short"], ["long"]]


async def test_a_round_reads_one_window_of_one_earlier_text(make_batcher: BatcherFactory, engine: Any) -> None:
    batcher = make_batcher()
    engine.may_read = threading.Semaphore(0)
    texts = []
    for num, name in enumerate(("one", "two", "three", "short")):
        if name == "short":
            short = ask(batcher, engine, name)
        else:
            request = engine.read(name, "what ?" + " window" * 4)
            texts.append(asyncio.create_task(batcher.answer(request, 3, Timeline())))
        await asyncio.sleep(0)  # it is in the queue
        for _ in range(num):
            engine.may_read.release()
        if name != "short":
            await until(lambda: batcher.num_waiting == 0)
    answer = await asyncio.wait_for(short, 60)
    assert answer.text == "short"
    for _ in range(6):
        engine.may_read.release()
    assert [answer.text for answer in await asyncio.gather(*texts)] == ["one", "two", "three"]
    assert [texts[0] for texts in engine.windows] == [
        "one",
        "two",
        "one",
        "three",
        "two",
        "one",
        "three",
        "two",
        "one",
        "three",
        "two",
        "three",
    ]


async def test_a_long_text_that_nobody_waits_for_is_not_read_on(
    make_batcher: BatcherFactory, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    batcher = make_batcher()
    engine.may_read = threading.Semaphore(2)
    clock = SimpleNamespace(monotonic=lambda: 3600.0 * (len(engine.windows) >= 2))
    monkeypatch.setattr(waiting, "time", clock)
    request = engine.read("long", "what ?" + " window" * 50)
    late = asyncio.create_task(batcher.answer(request, 3, Timeline(), deadline=1.0))
    await until(lambda: len(engine.windows) == 2)
    for _ in range(48):
        engine.may_read.release()
    stays = ask(batcher, engine, "stays")
    assert (await stays).text == "stays"
    late.cancel()
    assert len(engine.windows) <= 3
    assert engine.batches == [["stays"]]
