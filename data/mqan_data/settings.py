"""Settings in YAML as frozen dataclasses: unknown keys are refused, and messages name the key."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

T = TypeVar("T")
_MESSAGES: Final = {
    "extra_forbidden": "unknown key",
    "unexpected_keyword_argument": "unknown key",
    "missing": "the key is missing",
}


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        ValueError: it is not YAML.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from error


def read_settings(path: Path, overrides: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a file of settings, with dotted overrides such as ``{"optim.peak_rate": "1e-3", "tasks.sst.weight": "2"}``.

    Raises:
        ValueError: it is no mapping in YAML, or an override does not fit it.
    """
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
    """Let pydantic build settings from plain types.

    Args:
        validate: builds them.
        document: the plain types.
        where: they stand.
        whole: what messages call the document itself.
        tags: names of alternatives, which messages leave out.
        first: which part of a place messages begin with.

    Raises:
        ValueError: a key or value is wrong; the message names it.
    """
    try:
        return validate(document)
    except ValidationError as error:
        places = [".".join(str(part) for part in e["loc"][first:] if part not in tags) for e in error.errors()]
        messages = [_MESSAGES.get(e["type"], e["msg"].removeprefix("Value error, ")) for e in error.errors()]
        problems = "; ".join(f"{place or whole}: {text}" for place, text in zip(places, messages, strict=True))
        raise ValueError(f"{where}: {problems}") from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what builds a list of one dataclass; by itself a dataclass cannot be told to be strict."""
    return TypeAdapter(list[kind], config=ConfigDict(extra="forbid", strict=True))


def strictly(kind: type[T], document: Any, where: str) -> T:
    """Build a dataclass from plain types; numbers and texts do not take the place of each other.

    Raises:
        ValueError: unknown or missing key, or a value of the wrong type or too small; the message names it.
    """
    text = json.dumps([document])  # of JSON, lists are tuples, and numbers are keys
    parsed: list[T] = validated(_adapter(cast(Any, kind)).validate_json, text, where, "it", first=1)
    return parsed[0]


def parse(kind: type[T], document: Any, where: str) -> T:
    """Build a configuration dataclass from plain types.

    Raises:
        ValueError: unknown or missing key, or a value of the wrong type or too small; the message names it.
    """
    if not isinstance(document, Mapping):
        raise ValueError(f"{where}: expected a mapping, found {document!r}")
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for key in document:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key!r}; the keys are {', '.join(sorted(known))}")
    for name, spec in known.items():
        if name not in document and spec.default is MISSING and spec.default_factory is MISSING:
            raise ValueError(f"{where}: the key {name!r} is missing")
    values = {key: _convert(hints[key], value, f"{where}: {key}") for key, value in document.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _convert(kind: Any, value: Any, where: str) -> Any:
    if is_dataclass(kind):
        return parse(kind, value, where)  # type: ignore[arg-type]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{where}: {value!r} is not one of {', '.join(map(repr, arguments))}")
        return value
    if origin is UnionType:
        return None if value is None else _convert(next(a for a in arguments if a is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}: expected a list, found {value!r}")
        if arguments[-1] is Ellipsis:
            return tuple(_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if len(value) != len(arguments):
            raise ValueError(f"{where}: expected {len(arguments)} values, found {len(value)}")
        return tuple(_convert(a, item, where) for a, item in zip(arguments, value, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected a mapping, found {value!r}")
        return {str(key): _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)  # YAML 1.1 reads 1e-3 as text
        except ValueError:
            pass
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{where}: expected {kind.__name__}, found {value!r}")
    return value
