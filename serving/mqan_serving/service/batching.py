"""Batches in flight: requests join the engine's work between steps, and leave at the step that ends their answer.

A round takes what has come and encodes one batch of it, of long texts the first window, reads one window more of one
earlier long text, in turns, and takes one step of everything that decodes, after a long reading several: nobody waits
for others to come, nor a short text or a one-word answer for a long one. Answers do not depend on the batch they are
given in, so batches are formed for speed alone (``waiting.py``). The engine runs on one thread of its own, so the event
loop is never blocked, and while there is work the thread goes on by itself.
"""

import asyncio
import math
import time
from collections.abc import Generator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqan_core.answer.types import Answer
from mqan_core.errors import EngineFailedError
from mqan_runtime.steps import ReadRequest
from mqan_serving.contract.errors import ServingError
from mqan_serving.service.admission import Pace
from mqan_serving.service.health import Watch
from mqan_serving.service.timeline import Meter, Timeline
from mqan_serving.service.waiting import Tell, Waiting, WaitingQueue

if TYPE_CHECKING:  # it loads onnxruntime
    from mqan_runtime.engine import Engine
    from mqan_runtime.steps import Decoding

_SHORT_S = 0.1  # of reading in a round; after as much as is beyond it, as much time is given to decoding
_YOUNG_STEPS = 3  # small decodings that have taken more go on together: one step of four rows costs less than of two


@dataclass(slots=True)
class _Reading:
    parts: Generator[None, None, Any]
    rows: list[Waiting]
    taken_s: float = 0.0


_Running = tuple["Decoding", list[Waiting]]  # requests that decode together


@dataclass(slots=True)
class _Rounds:
    """One thread's work: what it decodes, and what it takes from the queue. An engine that has failed ends it."""

    engine: "Engine"
    queue: WaitingQueue
    meter: Meter
    watch: Watch
    pace: Pace
    max_merged: int
    max_running_tokens: int
    readings: list[_Reading] = field(default_factory=list)
    decodings: list[_Running] = field(default_factory=list)
    is_closing: bool = False

    def run(self) -> None:
        while not self.is_closing:
            with self.watch.over("A round of the engine"):
                begun = time.monotonic()
                for reading in self._take_readings():
                    self._read_on(reading)
                if not (self.readings or self.decodings):
                    return
                read = time.monotonic()
                end = read + max(0.0, read - begun - _SHORT_S)
                while True:
                    for decoding, rows in self._take_decodings():
                        self._step(decoding, rows)
                    if not self.decodings or time.monotonic() >= end:
                        break

    def _take_readings(self) -> list[_Reading]:
        self.readings = [reading for reading in self.readings if any(w.is_awaited for w in reading.rows)]
        new = self._take_new()
        return new + ([self.readings.pop(0)] if self.readings else [])

    def _take_new(self) -> list[_Reading]:
        num_tokens = sum(decoding.num_tokens for decoding, _ in self.decodings)
        num_tokens += sum(len(reading.rows) * max(w.num_tokens for w in reading.rows) for reading in self.readings)
        is_idle = not (self.readings or self.decodings)
        rows = self.queue.take(self.max_running_tokens - num_tokens, is_idle=is_idle)
        if not rows:
            return []
        for waiting in rows:
            waiting.timeline.begin("encode")
        requests, limits = [w.request for w in rows], [w.max_answer_tokens for w in rows]
        return [_Reading(self.engine.start_in_turns(requests, limits, rows), rows)]

    def _read_on(self, reading: _Reading) -> None:
        rows, begun = reading.rows, time.monotonic()
        try:
            next(reading.parts)
        except StopIteration as done:
            self.pace.note(sum(w.request.work for w in rows), reading.taken_s + time.monotonic() - begun)
            for waiting in rows:
                waiting.timeline.begin("decode")
            self.meter.count_batch(len(rows), done.value.num_tokens)
            self.decodings.append((done.value, rows))
        except Exception as error:
            self._fail(rows, error)
        else:
            reading.taken_s += time.monotonic() - begun
            self.readings.append(reading)

    def _take_decodings(self) -> list[_Running]:
        running: list[_Running] = []
        small: list[_Running] = []
        for decoding, rows in self.decodings:
            live = [w for w in rows if w.is_awaited]
            if len(live) < len(rows):
                self.engine.drop(decoding, [w for w in rows if w not in live])
            if not live:
                continue
            is_small = decoding.num_steps >= _YOUNG_STEPS and len(live) <= self.max_merged // 2
            (small if is_small else running).append((decoding, live))
        self.decodings = []
        while small:
            together = [small.pop(0)]
            while small and sum(len(rows) for _, rows in together) + len(small[0][1]) <= self.max_merged:
                together.append(small.pop(0))
            if len(together) > 1:
                merged: Decoding = self.engine.merge([decoding for decoding, _ in together])
                together = [(merged, [waiting for _, rows in together for waiting in rows])]
            running += together
        return running

    def _step(self, decoding: "Decoding", rows: list[Waiting]) -> None:
        try:
            ended = self.engine.step(decoding)
        except Exception as error:
            self._fail(rows, error)
            return
        self.meter.count_step(len(rows))
        for waiting, decoded in ended:
            rows.remove(waiting)
            waiting.timeline.begin("detokenise")
            try:
                waiting.give(self.engine.write(decoded))
            except Exception as error:
                waiting.refuse(error)
        if not rows:
            return
        try:
            self._tell(decoding, rows)
        except Exception as error:
            self._fail(rows, error)
        else:
            self.decodings.append((decoding, rows))

    def _tell(self, decoding: "Decoding", rows: list[Waiting]) -> None:
        told = {waiting: waiting.num_told for waiting in rows if waiting.tell is not None}
        if told:
            for waiting, tokens in self.engine.decided(decoding, told):
                waiting.tell_words(tokens)

    def _fail(self, rows: list[Waiting], error: Exception) -> None:
        """Tell a lone request of its error; of several one may be at fault, so each is tried again alone."""
        if isinstance(error, EngineFailedError):
            raise error
        if len(rows) == 1:
            rows[0].refuse(error)
        else:
            self.queue.add_alone(rows)


class Batcher:
    """Answers single requests in batches. Its methods belong to the event loop, the engine to the executor's threads.

    Tokens of a batch include padding; a request with more than the bounds goes alone.
    """

    def __init__(
        self,
        engine: "Engine",
        executor: Executor,
        meter: Meter,
        watch: Watch,
        pace: Pace,
        *,
        num_threads: int = 1,
        max_batch_size: int,
        max_batch_tokens: int,
        max_running_tokens: int,
    ) -> None:
        self._executor = executor
        self._queue = WaitingQueue(max_batch_size, max_batch_tokens)
        given = (engine, self._queue, meter, watch, pace, max_batch_size, max_running_tokens // num_threads)
        self._idle = [_Rounds(*given) for _ in range(num_threads)]
        self._busy: dict[asyncio.Future[None], _Rounds] = {}
        self._inside: set[Waiting] = set()  # all without an answer
        self._is_closed = False
        self.is_alive = True  # no thread has met an error that it cannot tell anybody

    @property
    def num_waiting(self) -> int:
        return sum(not waiting.is_started for waiting in self._inside)

    async def answer(
        self,
        request: ReadRequest,
        max_answer_tokens: int,
        timeline: Timeline,
        *,
        deadline: float = math.inf,
        tell: Tell | None = None,
    ) -> Answer:
        """Answer one request; its stages are marked in the timeline.

        A caller that goes away (cancels) costs nothing more: before its request is encoded it never will be, and after
        that it leaves at the next step. So does a request whose deadline, by ``time.monotonic``, has passed; its caller
        has to cancel, too.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        waiting = Waiting(request, max_answer_tokens, timeline, answer, loop, deadline, tell)
        timeline.begin("queue")
        self._inside.add(waiting)
        self._queue.add(waiting)
        self._wake()
        try:
            result = await answer
            timeline.end()
            return result
        finally:
            waiting.is_given_up = True
            self._inside.discard(waiting)

    async def close(self) -> None:
        """Stop at the next step; whoever still waits is told that the server stops."""
        self._is_closed = True
        for rounds in self._busy.values():
            rounds.is_closing = True
        self._refuse_all(ServingError("unavailable", "The server is stopping."))
        self._idle.clear()  # and with them the engine
        await asyncio.sleep(0)

    def _wake(self) -> None:
        if self._idle and not self._is_closed:
            rounds = self._idle.pop()
            future = asyncio.get_running_loop().run_in_executor(self._executor, rounds.run)
            self._busy[future] = rounds
            future.add_done_callback(self._rest)

    def _rest(self, future: "asyncio.Future[None]") -> None:
        rounds = self._busy.pop(future)
        if future.cancelled() or future.exception() is not None:
            self.is_alive = self._is_closed
            if not self.is_alive:
                message = "The engine has failed; the server is about to be replaced."
                self._refuse_all(ServingError("unavailable", message, retry_after_s=1))
        elif not self._is_closed:
            self._idle.append(rounds)
            if len(self._queue):
                self._wake()

    def _refuse_all(self, error: ServingError) -> None:
        for waiting in list(self._inside):
            waiting.refuse(error)
