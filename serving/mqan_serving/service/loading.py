"""Opening and closing models: in the order in which they are asked for, within the memory that they may take.

Where one does not fit, those leave that were used longest ago, each as soon as nobody uses it; who asks for one of them
meanwhile waits until it is opened again. What fits beside all that stay and the first that waits is opened at once.
"""

import asyncio
import itertools
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from mqan_serving.contract.errors import ServingError
from mqan_serving.service.answer_service import Service
from mqan_serving.service.catalog import Entry
from mqan_serving.settings import Settings

_MIB = 1024 * 1024
PROCESS_BYTES = 112 * _MIB  # that a plain server takes without models, onnxruntime included
_MODEL_BYTES, _PER_BYTE = 64 * _MIB, 2  # that an open model takes for what is in progress, and for a byte of its files
RETRY_AFTER_S = 1


@dataclass(eq=False)
class Slot:
    """A bundle, its service while it is open, who uses it and who waits for it."""

    entry: Entry
    service: Service | None = None
    num_users: int = 0
    last_used: int = 0
    is_retired: bool = False  # served no more: leaves when those who wait have had it
    leaving_since: float | None = None
    waiting: deque["asyncio.Future[None]"] = field(default_factory=deque)

    @property
    def memory(self) -> int:
        return _MODEL_BYTES + _PER_BYTE * self.entry.num_bytes

    @property
    def is_free(self) -> bool:
        return self.service is not None and self.leaving_since is None


class Loader:
    """The models that are open, and those that wait to be."""

    def __init__(self, settings: Settings, open_one: Callable[[Entry], Awaitable[Service]]) -> None:
        self.most_bytes = None if settings.models_memory is None else settings.models_memory * _MIB - PROCESS_BYTES
        self.opened: list[Slot] = []
        self.asked: list[Slot] = []
        self._settings = settings
        self._open_one = open_one
        self._patience_s = 2 * settings.request_timeout_s  # by then all have their answers
        self._clock = itertools.count(1)
        self._changed = asyncio.Event()
        self._arranging: asyncio.Task[None] | None = None

    async def take(self, slot: Slot, timeout_s: float) -> Service:
        """Return a model that stays open until it is released; raise ``ServingError`` if it does not open in time."""
        if slot.is_free:
            slot.num_users += 1
        else:
            await self._wait_for(slot, timeout_s)
        slot.last_used = next(self._clock)
        if slot.service is None:
            self.release(slot)
            raise _not_opened(slot)
        return slot.service

    def release(self, slot: Slot) -> None:
        slot.num_users -= 1
        self._changed.set()

    def retire(self, slot: Slot) -> None:
        """Close a model that is served no more, once nobody uses it and all who wait have had it."""
        slot.is_retired = True
        self._arrange()

    async def open(self, slot: Slot) -> None:
        begun = time.monotonic()
        entry = slot.entry
        self.keep(slot, await self._open_one(entry))
        structlog.get_logger().info(
            "model opened", model=entry.name, model_hash=entry.sha256[:16], s=round(time.monotonic() - begun, 2)
        )

    def keep(self, slot: Slot, service: Service) -> None:
        slot.service = service
        self.opened.append(slot)

    def has_room(self, slot: Slot) -> bool:
        return self._fit([slot, *(other for other in self.opened if other.num_users)])

    async def close(self) -> None:
        if self._arranging is not None:
            self._arranging.cancel()
        for slot in self.opened:
            if slot.service is not None:
                await slot.service.close()

    async def _wait_for(self, slot: Slot, timeout_s: float) -> None:
        if len(slot.waiting) >= self._settings.max_admitted_requests:
            raise ServingError("overloaded", "Too many wait for the model to be loaded.", retry_after_s=RETRY_AFTER_S)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        slot.waiting.append(turn)
        if slot not in self.asked:
            self.asked.append(slot)
        self._arrange()
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn in slot.waiting:
                slot.waiting.remove(turn)
                self._changed.set()
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(slot)  # it was given, and nobody takes it
            if isinstance(error, TimeoutError):
                raise ServingError("deadline_exceeded", f"The model was not loaded within {timeout_s:g} s.") from None
            raise

    def _arrange(self) -> None:
        self._changed.set()
        if self._arranging is None or self._arranging.done():
            self._arranging = asyncio.get_running_loop().create_task(self._open_and_close())

    async def _open_and_close(self) -> None:
        """Open one model at a time, and close those that leave, until nobody waits and none is leaving."""
        while True:
            self._changed.clear()
            self.asked = [slot for slot in self.asked if slot.waiting or not slot.is_retired]
            self._choose_leaving()
            for slot in [slot for slot in self.opened if self._s_to_close(slot) <= 0]:
                await self._close(slot)
            if (now := self._next()) is not None:
                failure = None if now.is_free else await self._failure_to_open(now)
                self.asked.remove(now)
                _hand_out(now, failure)
                continue
            patience_s = min(map(self._s_to_close, self.opened), default=math.inf)
            if not self.asked and patience_s == math.inf:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), None if patience_s == math.inf else patience_s)

    def _s_to_close(self, slot: Slot) -> float:
        """Return for how long a model waits for its users before it is closed; for ever if it is not leaving."""
        if slot.leaving_since is None:
            return math.inf
        return slot.leaving_since + self._patience_s - time.monotonic() if slot.num_users else 0.0

    def _choose_leaving(self) -> None:
        """Let leave what is served no more, and as many as the first that waits needs: unused ones first."""
        leaving = [slot for slot in self.opened if slot.is_retired and not slot.waiting]
        staying = [slot for slot in self.opened if slot not in leaving]
        if (first := self._first()) is not None:
            staying.sort(key=lambda slot: (slot.num_users > 0, slot.last_used))
            needed = []
            while staying and not self._fit([first, *staying]):
                needed.append(staying.pop(0))
            for slot in needed:  # beside larger ones that leave, too, some may stay
                (staying if self._fit([first, slot, *staying]) else leaving).append(slot)
        for slot in self.opened:
            slot.leaving_since = (slot.leaving_since or time.monotonic()) if slot in leaving else None

    def _first(self) -> Slot | None:
        return next((slot for slot in self.asked if slot.service is None), None)

    def _next(self) -> Slot | None:
        """Return the next model for those who wait: one that is free, the first, or what it can spare."""
        first = self._first()
        free = next((slot for slot in self.asked if slot.is_free), None)
        if free is not None or first is None or self._fit([first, *self.opened]):
            return free or first
        beside = [first, *(slot for slot in self.opened if slot.is_free)]  # once it is open
        others = (slot for slot in self.asked if slot.service is None)
        return next((slot for slot in others if self._fit([slot, *self.opened]) and self._fit([slot, *beside])), None)

    def _fit(self, slots: list[Slot]) -> bool:
        return self.most_bytes is None or len(slots) == 1 or sum(slot.memory for slot in slots) <= self.most_bytes

    async def _failure_to_open(self, slot: Slot) -> ServingError | None:
        try:
            await self.open(slot)
        except Exception as error:  # whatever it is, other models go on
            structlog.get_logger().error("model not opened", model=slot.entry.name, exc_info=error)
            return _not_opened(slot)
        return None

    async def _close(self, slot: Slot) -> None:
        service, slot.service, slot.leaving_since = slot.service, None, None
        self.opened.remove(slot)
        if service is None:
            return
        try:
            await service.close()
        except Exception as error:  # whatever it is, other models go on
            structlog.get_logger().error("model not closed", model=slot.entry.name, exc_info=error)
        else:
            structlog.get_logger().info("model closed", model=slot.entry.name, model_hash=slot.entry.sha256[:16])
        from mqan_runtime.session import give_back_memory  # it loads onnxruntime

        del service  # and with it what only this model had
        await asyncio.to_thread(give_back_memory)


def _hand_out(slot: Slot, failure: ServingError | None) -> None:
    while slot.waiting:
        turn = slot.waiting.popleft()
        if turn.done():
            continue
        if failure is None:
            slot.num_users += 1
            turn.set_result(None)
        else:
            turn.set_exception(failure)


def _not_opened(slot: Slot) -> ServingError:
    return ServingError("unavailable", f"The model {slot.entry.name} cannot be loaded.", retry_after_s=RETRY_AFTER_S)
