"""The models of a server: a request takes one by name, and has it until it has ended.

Each model is a ``Service`` with an engine of its own, opened when it is first asked for. A change opens what is new
before requests go there, and lets those in progress end on what they began with.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

import structlog

from mqan_core.bundle import verify_files
from mqan_core.errors import BundleError, MqanError
from mqan_serving.contract.errors import ServingError, SettingsError, refuse
from mqan_serving.contract.model import Model
from mqan_serving.service.admission import FairReader, ResultT
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
from mqan_serving.service.loading import RETRY_AFTER_S, Loader, Slot
from mqan_serving.service.timeline import Meter
from mqan_serving.service.validation import check_size
from mqan_serving.settings import Settings

_CHARS_OF_CALL_INLINE = 2048  # of a call of many questions: a few thousand can ask for 256 times 255 labels
_LOOK_PERIOD_S, _POLL_S = 0.5, 0.02
_OPEN_S = 300.0  # for a change to open a model
_SHARES = 2**32


class Models:
    """The models of one process."""

    def __init__(self, settings: Settings, catalog: Catalog, meter: Meter | None = None) -> None:
        self.health = Health()
        self.settings = settings
        self._meter = meter or Meter()
        self.catalog = catalog
        self._changes = Changes()
        self._slots = {name: Slot(entry) for name, entry in catalog.entries.items()}
        self._reader = FairReader()
        self.loader = Loader(settings, self._open)
        self._watching: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        """Open what is asked for by default, then take requests."""
        self._changes = self._kept()
        if self._changes != read_changes(self.settings):
            with suppress(OSError):  # read-only: this process alone knows
                write_changes(self.settings, self._changes)
        seen = signature(self.settings)
        for name in dict.fromkeys(filter(None, (self.catalog.stable, self.catalog.canary))):
            await self.loader.open(self._slots[name])
        self.health.set_ready()
        self._watching = asyncio.get_running_loop().create_task(self._watch(seen))

    # What requests ask.

    @property
    def stable(self) -> Service:
        """The service of requests that name no model, as long as it is open."""
        slot = self._slots[self.catalog.stable]
        if slot.service is None:
            raise ServingError("unavailable", "The model is being loaded.", retry_after_s=RETRY_AFTER_S)
        return slot.service

    @property
    def num_requests(self) -> int:
        slots = {*self._slots.values(), *self.loader.opened, *self.loader.asked}
        return sum(slot.num_users + len(slot.waiting) for slot in slots)

    def listed(self) -> list[tuple[Entry, bool, list[str]]]:
        """Return each model, whether it is open, and the aliases that name it."""
        catalog = self.catalog
        aliases = {STABLE: catalog.stable, CANARY: catalog.canary}
        return [
            (slot.entry, slot.service is not None, [alias for alias, of in aliases.items() if of == name])
            for name, slot in self._slots.items()
        ]

    def name_of(self, wanted: str | None, caller: str) -> str:
        """Return the model that a request is for: without a name it may be the canary, as its caller has it."""
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
        """Return whether a name is one of those that mean the default in other formats."""
        return any(fnmatchcase(name, alias) for alias in self.settings.model_aliases)

    async def take(self, wanted: str | None, caller: str, timeout_ms: int | None = None) -> "Lease":
        """Return a model that stays open until it is released; opening it takes from the time of the request."""
        self.check_open()
        slot = self._slots[self.name_of(wanted, caller)]
        begun = time.monotonic()
        timeout_s = min(self.settings.request_timeout_s * 1000, timeout_ms or float("inf")) / 1000
        service = await self.loader.take(slot, timeout_s)
        return Lease(service, lambda: self.loader.release(slot), time.monotonic() - begun)

    def check_size(self, num_bytes: int) -> None:
        """Refuse a request that is too large as it was sent."""
        check_size(num_bytes, self.settings.max_request_bytes)

    async def aside(self, num_chars: int, call: Callable[[], ResultT]) -> ResultT:
        """Return what is made of a call of many questions, off the event loop unless the call is a short one."""
        return call() if num_chars <= _CHARS_OF_CALL_INLINE else await self._reader.read(num_chars, call)

    # Health.

    @property
    def is_live(self) -> bool:
        return self.health.is_live and all(service.health.is_live for service in self._services())

    @property
    def why_not_ready(self) -> str | None:
        """Why requests should not be sent here, in a sentence; None where they should."""
        if not self.health.is_ready:
            return f"The server is {self.health.state}."
        return next(filter(None, (service.why_not_ready for service in self._services())), None)

    def check_live(self) -> None:
        for service in self._services():
            service.check_live()

    def check_ready(self) -> None:
        """Raise ``ServingError`` if requests should not be sent here; it says why."""
        if (reason := self.why_not_ready) is not None:
            raise ServingError("unavailable", reason, retry_after_s=RETRY_AFTER_S)

    def check_open(self) -> None:
        self.check_live()
        states = (self.health.state, *(service.health.state for service in self._services()))
        if (state := next((state for state in states if state is not State.READY), None)) is not None:
            raise ServingError("unavailable", f"The server is {state}.", retry_after_s=RETRY_AFTER_S)

    async def drain(self, timeout_s: float) -> None:
        """Refuse new requests and wait for those in progress, at most ``timeout_s``."""
        self.health.set_draining()
        deadline = time.monotonic() + timeout_s
        while self.num_requests and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_S)

    async def close(self) -> None:
        self.health.set_draining()
        if self._watching is not None:
            self._watching.cancel()
        await self.loader.close()
        self._reader.close()

    # Changes while serving.

    async def change(self, make: Callable[[Changes], Changes]) -> None:
        """Change what is served, and keep the change; raise ``SettingsError`` where it cannot be."""
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
                self._meter.tell_change(is_done=False)

    def _kept(self) -> Changes:
        """Return what was changed; where nothing says which is stable, the present one is, whatever comes later."""
        if bundles_folder(self.settings) is None:
            return self._changes
        changes = read_changes(self.settings)
        is_said = changes.stable or self.settings.stable or changes.first_stable
        return changes if is_said else changes.model_copy(update={"first_stable": self.catalog.stable})

    async def open_one(self, name: str) -> None:
        """Open a model before somebody asks for it; raise ``InputError`` where there is none."""
        (await self.take(name, "")).release()

    async def _apply(self, changes: Changes) -> None:
        catalog = await asyncio.to_thread(read_catalog, self.settings, changes)
        before = self._slots
        slots = {}
        for name, entry in catalog.entries.items():
            old = before.get(name)
            slots[name] = old if old is not None and old.entry == entry else Slot(entry)
        new = [slot for slot in slots.values() if slot not in before.values()]
        held = []
        try:
            for name, slot in slots.items():
                was_open = name in before and before[name].service is not None
                is_needed = was_open or name in (catalog.stable, catalog.canary)
                if is_needed and slot.service is None and self.loader.has_room(slot):
                    await self.loader.take(slot, _OPEN_S)
                    held.append(slot)
            for slot in new:
                if slot.service is None:  # it is opened when it is asked for
                    await asyncio.to_thread(verify_files, slot.entry.folder)
        except BaseException as error:
            for slot in new:
                self.loader.retire(slot)
            if isinstance(error, ServingError):
                raise SettingsError(f"{error.message} The log says why.") from None
            if isinstance(error, BundleError):
                raise SettingsError(str(error)) from None
            raise
        finally:
            for slot in held:
                self.loader.release(slot)
        if slots != before or catalog != self.catalog:
            told = {name: entry.sha256[:16] for name, entry in catalog.entries.items()}
            structlog.get_logger().info("models changed", models=told, stable=catalog.stable, canary=catalog.canary)
        self.catalog, self._changes, self._slots = catalog, changes, slots
        self._meter.tell_change(is_done=True)
        for slot in before.values():
            if slot not in slots.values():
                self.loader.retire(slot)

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

    def _services(self) -> Iterator[Service]:
        return (slot.service for slot in self._slots.values() if slot.service is not None)

    async def _open(self, entry: Entry) -> Service:
        return await open_service(entry.folder, self.settings, self._meter, entry.name, self._reader)


@dataclass(frozen=True, slots=True)
class Lease:
    """A model in use, and how long it took to get it."""

    service: Service
    release: Callable[[], None]
    waited_s: float

    @property
    def model(self) -> Model:
        return self.service.model


async def open_models(settings: Settings, meter: Meter | None = None) -> Models:
    """Open what is asked for by default, or raise ``SettingsError`` or ``BundleError``."""
    models = Models(settings, read_catalog(settings, read_changes(settings)), meter)
    try:
        await models.start()
    except BaseException:
        await models.close()
        raise
    return models
