"""The models of a server: a request takes one by name, and has it until it has ended.

Each model is a ``Service`` with an engine of its own. One is opened when it is first asked for, one at a time; where
they would take more memory than they may, the one that was used longest ago leaves as soon as nobody uses it, and who
asks for it meanwhile waits until it is opened again. A change opens what is new before requests go there, and lets
those in progress end on what they began with.
"""

import asyncio
import hashlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import structlog

from mqan_core.bundle import verify_files
from mqan_core.errors import BundleError, MqanError
from mqan_serving.contract.errors import ServingError, SettingsError, refuse
from mqan_serving.contract.model import Model
from mqan_serving.service.answer_service import Service, open_service
from mqan_serving.service.catalog import (
    CANARY,
    DEFAULT,
    STABLE,
    Catalog,
    Changes,
    Entry,
    bundles_folder,
    read_catalog,
    read_changes,
    signature,
    write_changes,
)
from mqan_serving.service.health import Health, State
from mqan_serving.service.meter import Meter
from mqan_serving.service.reading import FairReader, ResultT
from mqan_serving.service.validation import check_size
from mqan_serving.settings import Settings

_CHARS_OF_CALL_INLINE = 2048  # of a call of many questions: a few thousand can ask for 256 times 255 labels
_RETRY_AFTER_S = 1
_LOOK_PERIOD_S, _POLL_S = 0.5, 0.02
_OPEN_S = 300.0  # for a change to open a model
MEMORY_PER_BYTE = 3  # that an opened model takes, for each byte of its files
_MIB = 1024 * 1024
_SHARES = 2**32


@dataclass(eq=False)
class _Slot:
    """A bundle, its service while it is open, who uses it and who waits for it."""

    entry: Entry
    service: Service | None = None
    num_users: int = 0
    last_used: int = 0
    is_leaving: bool = False
    waiting: deque["asyncio.Future[None]"] = field(default_factory=deque)
    unused: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def memory(self) -> int:
        """Bytes that it takes while it is open."""
        return MEMORY_PER_BYTE * self.entry.num_bytes

    def count(self, number: int) -> None:
        """Count a user in, or out by -1."""
        self.num_users += number
        (self.unused.clear if self.num_users else self.unused.set)()


class Models:
    """The models of one process."""

    def __init__(self, settings: Settings, catalog: Catalog, meter: Meter | None = None) -> None:
        self.health = Health()
        self.settings = settings
        self._meter = meter or Meter()
        self.catalog = catalog
        self._changes = Changes()
        self._slots = {name: _Slot(entry) for name, entry in catalog.entries.items()}
        self._others: set[_Slot] = set()  # not yet, or no longer, to be asked for
        self._reader = FairReader()
        self._clock = itertools.count(1)
        self._loads: deque[_Slot] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loader: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._most_bytes = None if settings.models_memory is None else settings.models_memory * _MIB

    @classmethod
    def of(cls, service: Service, settings: Settings) -> "Models":
        """Return the models of a server of one service that is open."""
        model = service.model
        entry = Entry(model.name, settings.bundle or Path(), model.version, model.sha256, 0)
        models = cls(settings, Catalog(model.name, entries={model.name: entry}))
        models._slots[model.name].service = service
        models.health.set_ready()
        return models

    async def start(self) -> None:
        """Open what is asked for by default, then take requests.

        Raises:
            BundleError: a bundle is damaged or incomplete.
        """
        self._changes = read_changes(self.settings)
        seen = signature(self.settings)
        for name in dict.fromkeys(filter(None, (self.catalog.stable, self.catalog.canary))):
            await self._open(self._slots[name])
        self.health.set_ready()
        self._run(self._watch(seen))

    # What requests ask.

    @property
    def stable(self) -> Service:
        """The service of requests that name no model, as long as it is open."""
        slot = self._slots[self.catalog.stable]
        if slot.service is None:
            raise ServingError("unavailable", "The model is being loaded.", retry_after_s=_RETRY_AFTER_S)
        return slot.service

    @property
    def num_requests(self) -> int:
        """Requests inside."""
        return sum(slot.num_users + len(slot.waiting) for slot in self._all_slots())

    def listed(self) -> list[tuple[Entry, bool, list[str]]]:
        """Return each model, whether it is open, and the aliases that name it."""
        catalog = self.catalog
        aliases = {STABLE: catalog.stable, CANARY: catalog.canary}
        return [
            (slot.entry, slot.service is not None, [alias for alias, of in aliases.items() if of == name])
            for name, slot in self._slots.items()
        ]

    def name_of(self, wanted: str | None, caller: str) -> str:
        """Return the name of the model that a request is for; without one it may be the canary, as its caller has it.

        Raises:
            InputError: there is no such model.
        """
        catalog = self.catalog
        if not wanted or wanted == DEFAULT:
            number = int.from_bytes(hashlib.sha256(caller.encode("utf-8", "surrogatepass")).digest()[:4])
            is_canary = catalog.canary is not None and number < catalog.canary_share * _SHARES
            wanted = CANARY if is_canary else STABLE
        name = {STABLE: catalog.stable, CANARY: catalog.canary}.get(wanted, wanted)
        if name not in self._slots:
            known = ", ".join([*self._slots, STABLE, *([CANARY] if catalog.canary else [])])
            raise refuse("unknown_model", "model", f"There is no such model; {known} are served.", f"Ask for {known}.")
        return str(name)

    def is_alias(self, name: str) -> bool:
        """Return whether a name is one of those that mean the default in the formats of others."""
        return any(fnmatchcase(name, alias) for alias in self.settings.model_aliases)

    async def take(self, wanted: str | None, caller: str, timeout_ms: int | None = None) -> "Lease":
        """Return a model that stays open until it is released; opening it takes from the time of the request.

        Raises:
            InputError: there is no such model.
            ServingError: it does not open, not in time, or the server takes no requests.
        """
        self.check_open()
        slot = self._slots[self.name_of(wanted, caller)]
        begun = time.monotonic()
        if slot.service is None or slot.is_leaving:
            await self._wait_for(slot, min(self.settings.request_timeout_s * 1000, timeout_ms or float("inf")) / 1000)
        else:
            slot.count(1)
        slot.last_used = next(self._clock)
        if slot.service is None:
            slot.count(-1)
            raise _not_opened(slot.entry.name)
        return Lease(slot.service, lambda: slot.count(-1), time.monotonic() - begun)

    def check_size(self, num_bytes: int) -> None:
        """Refuse a request that is too large as it was sent."""
        check_size(num_bytes, self.settings.max_request_bytes)

    async def aside(self, num_chars: int, call: Callable[[], ResultT]) -> ResultT:
        """Return what is made of a call of many questions, off the event loop unless the call is a short one."""
        return call() if num_chars <= _CHARS_OF_CALL_INLINE else await self._reader.read(num_chars, call)

    # Health.

    @property
    def is_live(self) -> bool:
        """Whether all engines work."""
        return self.health.is_live and all(service.health.is_live for service in self._services())

    @property
    def why_not_ready(self) -> str | None:
        """Why requests should not be sent here, in a sentence; None where they should."""
        if not self.health.is_ready:
            return f"The server is {self.health.state}."
        return next(filter(None, (service.why_not_ready for service in self._services())), None)

    def check_live(self) -> None:
        """Raise ``ServingError`` if the process has failed."""
        for service in self._services():
            service.check_live()

    def check_ready(self) -> None:
        """Raise ``ServingError`` if requests should not be sent here; it says why."""
        if (reason := self.why_not_ready) is not None:
            raise ServingError("unavailable", reason, retry_after_s=_RETRY_AFTER_S)

    def check_open(self) -> None:
        """Raise ``ServingError`` if the server is starting, draining or has failed."""
        self.check_live()
        states = (self.health.state, *(service.health.state for service in self._services()))
        if (state := next((state for state in states if state is not State.READY), None)) is not None:
            raise ServingError("unavailable", f"The server is {state}.", retry_after_s=_RETRY_AFTER_S)

    async def drain(self, timeout_s: float) -> None:
        """Refuse new requests and wait for those in progress, at most ``timeout_s``."""
        self.health.set_draining()
        deadline = time.monotonic() + timeout_s
        while self.num_requests and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_S)

    async def close(self) -> None:
        """Stop for good."""
        self.health.set_draining()
        for task in self._tasks:
            task.cancel()
        for slot in self._opened():
            if slot.service is not None:
                await slot.service.close()
        self._reader.close()

    # Changes while serving.

    async def change(self, make: Callable[[Changes], Changes]) -> None:
        """Change what is served, and keep the change.

        Raises:
            SettingsError: the change names a bundle or model that is none, or one that cannot be opened.
        """
        async with self._changing:
            changes = make(self._kept())
            before = self._changes
            await self._apply(changes)
            try:
                write_changes(self.settings, changes)
            except OSError as error:
                await self._apply(before)
                raise SettingsError(f"the change cannot be kept, and was taken back: {error.strerror}") from None

    async def look(self) -> None:
        """Serve what the folder and the file of changes now say; what cannot be is logged, and changes nothing."""
        async with self._changing:
            try:
                await self._apply(self._kept())
            except (MqanError, OSError) as error:
                structlog.get_logger().error("models not changed", reason=str(error))

    def _kept(self) -> Changes:
        return self._changes if bundles_folder(self.settings) is None else read_changes(self.settings)

    async def open_one(self, name: str) -> None:
        """Open a model before somebody asks for it; raise ``InputError`` where there is none."""
        (await self.take(name, "")).release()

    async def _apply(self, changes: Changes) -> None:
        catalog = await asyncio.to_thread(read_catalog, self.settings, changes)
        before = self._slots
        slots = {}
        for name, entry in catalog.entries.items():
            old = before.get(name)
            slots[name] = old if old is not None and old.entry == entry else _Slot(entry)
        new = [slot for slot in slots.values() if slot not in before.values()]
        self._others.update(new)
        held = []
        try:
            for name, slot in slots.items():
                was_open = name in before and before[name].service is not None
                is_needed = was_open or name in (catalog.stable, catalog.canary)
                if is_needed and slot.service is None and self._has_room(slot):
                    await self._wait_for(slot, _OPEN_S)
                    held.append(slot)
            for slot in new:
                if slot.service is None:  # it is opened when it is asked for
                    await asyncio.to_thread(verify_files, slot.entry.folder)
        except BaseException as error:
            for slot in new:
                self._run(self._retire(slot))
            if isinstance(error, ServingError):
                raise SettingsError(f"{error.message} The log says why.") from None
            if isinstance(error, BundleError):
                raise SettingsError(str(error)) from None
            raise
        finally:
            for slot in held:
                slot.count(-1)
        if slots != before or catalog != self.catalog:
            told = {name: entry.sha256[:16] for name, entry in catalog.entries.items()}
            structlog.get_logger().info("models changed", models=told, stable=catalog.stable, canary=catalog.canary)
        self.catalog, self._changes, self._slots = catalog, changes, slots
        self._others.difference_update(new)
        for slot in before.values():
            if slot not in slots.values():
                self._others.add(slot)
                self._run(self._retire(slot))

    async def _retire(self, slot: _Slot) -> None:
        while slot.service is not None or slot.waiting:
            if slot.waiting:  # they get what they asked for
                await asyncio.sleep(_POLL_S)
            else:
                await self._evict(slot)
        self._others.discard(slot)

    async def _watch(self, seen: tuple[object, ...]) -> None:
        taken = seen
        while True:
            await asyncio.sleep(_LOOK_PERIOD_S)
            try:
                now = await asyncio.to_thread(signature, self.settings)
            except SettingsError as error:
                now = (str(error),)
            if now != taken and now == seen:  # it has settled
                taken = now
                await self.look()
            seen = now

    # Opening and leaving.

    async def _wait_for(self, slot: _Slot, timeout_s: float) -> None:
        """Return when a model is open, and count the caller in as a user of it."""
        if len(slot.waiting) >= self.settings.max_admitted_requests:
            raise ServingError("overloaded", "Too many wait for the model to be loaded.", retry_after_s=_RETRY_AFTER_S)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        slot.waiting.append(turn)
        if slot not in self._loads:
            self._loads.append(slot)
        if self._loader is None or self._loader.done():
            self._loader = self._run(self._load())
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn in slot.waiting:
                slot.waiting.remove(turn)
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                slot.count(-1)  # it was given, and nobody takes it
            if isinstance(error, TimeoutError):
                raise ServingError("deadline_exceeded", f"The model was not loaded within {timeout_s:g} s.") from None
            raise

    async def _load(self) -> None:
        """Open what is waited for, in turn."""
        while self._loads:
            slot = self._loads.popleft()
            failure: ServingError | None = None
            try:
                if slot.service is None:
                    await self._make_room(slot)
                    await self._open(slot)
            except Exception as error:  # whatever it is, other models go on
                structlog.get_logger().error("model not opened", model=slot.entry.name, exc_info=error)
                failure = _not_opened(slot.entry.name)
            while slot.waiting:
                turn = slot.waiting.popleft()
                if turn.done():
                    continue
                if failure is None:
                    slot.count(1)
                    turn.set_result(None)
                else:
                    turn.set_exception(failure)

    async def _open(self, slot: _Slot) -> None:
        begun = time.monotonic()
        entry = slot.entry
        slot.service = await open_service(entry.folder, self.settings, self._meter, entry.name, self._reader)
        structlog.get_logger().info(
            "model opened", model=entry.name, model_hash=entry.sha256[:16], s=round(time.monotonic() - begun, 2)
        )

    def _has_room(self, slot: _Slot) -> bool:
        """Return whether a model fits beside those that are used now."""
        if self._most_bytes is None:
            return True
        return slot.memory + sum(other.memory for other in self._opened() if other.num_users) <= self._most_bytes

    async def _make_room(self, slot: _Slot) -> None:
        """Let models leave until another fits, those that nobody uses first; one alone always fits."""
        while self._most_bytes is not None and (opened := self._opened()):
            if slot.memory + sum(other.memory for other in opened) <= self._most_bytes:
                return
            await self._evict(min(opened, key=lambda other: (other.num_users > 0, other.last_used)))

    async def _evict(self, slot: _Slot) -> None:
        """Close a model once nobody uses it; who asks for it meanwhile waits until it is open again."""
        slot.is_leaving = True
        with suppress(TimeoutError):  # by then all have their answers
            if slot.num_users:
                await asyncio.wait_for(slot.unused.wait(), 2 * self.settings.request_timeout_s)
        service, slot.service = slot.service, None
        slot.is_leaving = False
        if service is not None:
            await service.close()
            structlog.get_logger().info("model closed", model=slot.entry.name, model_hash=slot.entry.sha256[:16])

    def _all_slots(self) -> list[_Slot]:
        return [*self._slots.values(), *self._others]

    def _opened(self) -> list[_Slot]:
        return [slot for slot in self._all_slots() if slot.service is not None]

    def _services(self) -> Iterator[Service]:
        return (slot.service for slot in self._slots.values() if slot.service is not None)

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@dataclass(frozen=True, slots=True)
class Lease:
    """A model in use, and how long it took to get it."""

    service: Service
    release: Callable[[], None]
    waited_s: float

    @property
    def model(self) -> Model:
        """The model."""
        return self.service.model


async def open_models(settings: Settings, meter: Meter | None = None) -> Models:
    """Open what is asked for by default, and return the models that are then ready.

    Raises:
        SettingsError: what is to be served is not there.
        BundleError: a bundle is damaged or incomplete.
    """
    models = Models(settings, read_catalog(settings, read_changes(settings)), meter)
    try:
        await models.start()
    except BaseException:
        await models.close()
        raise
    return models


def _not_opened(name: str) -> ServingError:
    return ServingError("unavailable", f"The model {name} cannot be loaded.", retry_after_s=_RETRY_AFTER_S)
