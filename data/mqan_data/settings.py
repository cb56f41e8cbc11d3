"""Settings in YAML as frozen dataclasses: unknown keys are refused, and messages name the key."""

import json
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

T = TypeVar("T")


def read_yaml(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from error


def read_settings(path: Path, overrides: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a file of settings, with dotted overrides such as ``{"optim.peak_rate": "1e-3"}``."""
    document = read_yaml(path)
    if not isinstance(document, dict):
        raise ValueError(f"{path}: expected a mapping of settings")
    for key, text in (overrides or {}).items():
        target: Any = document
        *parents, last = key.split(".")
        for parent in parents:
            target = _named(target, parent, key) if isinstance(target, list) else target.setdefault(parent, {})
            if not isinstance(target, dict | list):
                raise ValueError(f"override {key}: {parent} is not a group of settings")
        if isinstance(target, list):
            raise ValueError(f"override {key}: {parents[-1]} is a list: say of which entry, as in tasks.sst.weight")
        try:
            target[last] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"override {key}: not YAML: {error}") from error
    return document


def _named(items: list[Any], name: str, key: str) -> Any:
    named = {item["name"]: item for item in items if isinstance(item, dict) and "name" in item}
    if name not in named:
        raise ValueError(f"override {key}: the recipe has no {name!r}; it has {', '.join(map(str, named))}")
    return named[name]


def validated(
    validate: Callable[[Any], T], document: Any, where: str, whole: str, tags: Collection[str] = (), first: int = 0
) -> T:
    """Let pydantic build settings; messages leave out ``tags`` and the ``first`` parts of a place, if any is left."""
    try:
        return validate(document)
    except ValidationError as error:
        problems = []
        for found in error.errors():
            place = ".".join(str(part) for part in found["loc"][first:] if part not in tags)
            problems.append(f"{place or whole}: {found['msg'].removeprefix('Value error, ')}")
        raise ValueError(f"{where}: {'; '.join(problems)}") from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what builds a list of one dataclass; by itself a dataclass cannot be told to be strict."""
    return TypeAdapter(list[kind], config=ConfigDict(extra="forbid", strict=True))


def parse(kind: type[T], document: Any, where: str) -> T:
    """Build a dataclass from plain types; numbers and texts do not take the place of each other."""
    text = json.dumps([document])  # of JSON, lists are tuples, and numbers are keys
    parsed: list[T] = validated(_adapter(cast(Any, kind)).validate_json, text, where, "it", first=1)
    return parsed[0]
