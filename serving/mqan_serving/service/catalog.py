"""Which bundles are served by which names, and which of them are stable and canary.

Settings say it at the start; what was changed while serving is in a file beside the bundles, where they are in one
folder, so that every replica finds it, also one that starts later.
"""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from mqan_core.bundle import read_manifest
from mqan_core.errors import BundleError
from mqan_core.manifest import MANIFEST
from mqan_serving.contract.errors import SettingsError
from mqan_serving.settings import Settings, find_bundle

DEFAULT, STABLE, CANARY = "default", "stable", "canary"
RESERVED: Final = (DEFAULT, STABLE, CANARY)
CHANGES: Final = "models.json"
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name} is an alias, and no name of a model")
    return name


Name = Annotated[str, StringConstraints(pattern=f"^{_NAME}$"), AfterValidator(_not_reserved)]


class Changes(BaseModel):
    """What was changed while serving; the document of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bundles: dict[Name, Path] = Field(default_factory=dict)  # beside those of the settings, or in their place
    unloaded: tuple[str, ...] = ()  # not served
    stable: str | None = None
    first_stable: str | None = None  # at the first start; counts less than the settings
    canary: str | None = None  # "": none, whatever the settings say
    canary_share: float | None = Field(None, ge=0, le=1)


@dataclass(frozen=True, slots=True)
class Entry:
    """A bundle by the name that it is served by."""

    name: str
    folder: Path
    version: str
    sha256: str
    num_bytes: int  # of its files


@dataclass(frozen=True)
class Catalog:
    """All that can be asked for."""

    stable: str
    canary: str | None = None
    canary_share: float = 0.0
    entries: dict[str, Entry] = field(default_factory=dict)


def absolute(settings: Settings) -> Settings:
    """Return the settings with paths that hold in any folder: replicas have one of their own."""
    files = ("bundle", "adapters", "api_key_file", "admin_key_file")
    given: dict[str, object] = {
        name: path.absolute() for name in files if (path := getattr(settings, name)) is not None
    }
    if settings.bundles is not None:
        folder = bundles_folder(settings)
        places = _configured(settings) if folder is None else {}
        named = ",".join(f"{name}={place.absolute()}" for name, place in places.items())
        given["bundles"] = named if folder is None else str(folder.absolute())
    return settings.model_copy(update=given)


def bundles_folder(settings: Settings) -> Path | None:
    return None if settings.bundles is None or "=" in settings.bundles else Path(settings.bundles)


def read_changes(settings: Settings) -> Changes:
    """Return what was changed while serving, or raise ``SettingsError`` where the file is malformed."""
    folder = bundles_folder(settings)
    try:
        content = b"{}" if folder is None else (folder / CHANGES).read_bytes()
    except FileNotFoundError:
        return Changes()
    try:
        return Changes.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{CHANGES} in {folder} is malformed: {place}: {first['msg']}") from None


def write_changes(settings: Settings, changes: Changes) -> None:
    """Keep what was changed where other replicas find it; where there is no such place, this process alone knows."""
    folder = bundles_folder(settings)
    if folder is not None:
        new = folder / f".{CHANGES}.{os.getpid()}"
        new.write_text(json.dumps(changes.model_dump(mode="json", exclude_defaults=True), indent=2) + "\n")
        new.replace(folder / CHANGES)


def read_catalog(settings: Settings, changes: Changes) -> Catalog:
    """Return what is served, or raise ``SettingsError``."""
    folders = _configured(settings)
    folders.update(changes.bundles)
    found = [_entry(name, folder) for name, folder in folders.items()]
    entries = {entry.name: entry for entry in found if entry.name not in changes.unloaded}
    if not entries:
        raise SettingsError(f"setting bundles (MQAN_BUNDLES): {settings.bundles} has no bundle")
    stable = changes.stable or settings.stable or changes.first_stable or next(iter(entries))
    canary = (settings.canary if changes.canary is None else changes.canary) or None
    share = settings.canary_share if changes.canary_share is None else changes.canary_share
    is_kept = changes.stable or not settings.stable
    for alias, name, changed in ((STABLE, stable, is_kept), (CANARY, canary, changes.canary)):
        if name is not None and name not in entries:
            place = f"{alias} in {CHANGES}" if changed else f"setting {alias} (MQAN_{alias.upper()})"
            raise SettingsError(f"{place}: {name!r} is no model; there are {', '.join(entries)}")
    return Catalog(stable, canary, share if canary else 0.0, entries)


def signature(settings: Settings) -> tuple[object, ...]:
    """Return what changes when bundles or the file of changes do."""
    folder = bundles_folder(settings)
    files = [] if folder is None else [folder / CHANGES]
    return tuple(_state(path) for path in (*files, *(place / MANIFEST for place in _configured(settings).values())))


def _state(path: Path) -> tuple[object, ...]:
    try:
        status = path.stat()
    except OSError:
        return (path,)
    return path, status.st_mtime_ns, status.st_size, status.st_ino


def _configured(settings: Settings) -> dict[str | None, Path]:
    if settings.bundles is None:
        return {None: find_bundle(settings)}
    folder = bundles_folder(settings)
    if folder is None:
        pairs = (pair.partition("=") for pair in settings.bundles.split(","))
        return _named((name.strip(), Path(place.strip())) for name, _, place in pairs)
    try:
        places = sorted(at for at in folder.iterdir() if at.name[0] != "." and (at / MANIFEST).is_file())
    except OSError as error:
        raise _refuse(f"{folder}: {error.strerror}") from None
    return _named((place.name, place) for place in places)


def _named(pairs: Iterable[tuple[str, Path]]) -> dict[str | None, Path]:
    found: dict[str | None, Path] = {}
    for name, folder in pairs:
        if name in RESERVED or name in found or not re.fullmatch(_NAME, name):
            raise _refuse(f"{name!r} is no name of its own: use letters, digits and ._-, none of {', '.join(RESERVED)}")
        found[name] = folder
    return found


def _entry(name: str | None, folder: Path) -> Entry:
    try:
        manifest, sha256 = read_manifest(folder)
    except BundleError as error:
        raise _refuse(str(error)) from None
    num_bytes = sum(file.num_bytes for file in manifest.files.values())
    return Entry(name or manifest.name, folder.resolve(), manifest.version, sha256, num_bytes)


def _refuse(why: str) -> SettingsError:
    return SettingsError(f"setting bundles (MQAN_BUNDLES): {why}")
