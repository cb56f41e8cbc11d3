"""Documents of REST as results, and results as documents. What gRPC returns is read as such a document, too."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import Field, fields, is_dataclass
from functools import cache, partial
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from mqan_client.errors import ClientError, InvalidRequestError, ServerError, error_of
from mqan_client.results import Answer, Model, Source

T = TypeVar("T")

Document = dict[str, Any]  # an object of JSON


@contextmanager
def of_a_server() -> Iterator[None]:
    """Raise ``ServerError`` where a response is none of a mqan server, or has what this client does not know."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"The response is not one of a mqan server: {error!r}. Check the URL."
        raise ServerError(message, code="unknown_response") from None


@of_a_server()
def read(kind: Callable[..., T], document: Document) -> T:
    return _read(kind, document)


@of_a_server()
def read_answers(document: Document) -> list[Answer | ClientError]:
    [text] = document["texts"]
    return [
        error_of(outcome["error"], InvalidRequestError) if outcome.get("error") else _read(Answer, outcome["answer"])
        for outcome in text["answers"]
    ]


@of_a_server()
def read_model(document: Document) -> Model:
    return _read(Model, {**document, **document["model"]})


def document_of(result: Any) -> Any:
    """Return the document of a result, as REST has it."""
    if isinstance(result, tuple):
        return [document_of(entry) for entry in result]
    if isinstance(result, dict):
        return {name: document_of(value) for name, value in result.items()}
    if not is_dataclass(result):
        return result
    document: Document = {}
    for field in fields(result):
        value = document_of(getattr(result, field.name))
        if value is None and "absent" in field.metadata:
            continue
        document |= value if "flat" in field.metadata else {field.metadata.get("name", field.name): value}
    last = ("windows", "model") if isinstance(result, Answer) else ()
    return document | {name: document.pop(name) for name in last}


def _read(kind: Callable[..., T], document: Document) -> T:
    return kind(**{name: read(document) for name, read in _readers(kind).items()})


@cache
def _readers(kind: Any) -> dict[str, Callable[[Document], Any]]:
    hints = get_type_hints(kind)
    return {field.name: _reader_of_field(field, hints[field.name]) for field in fields(kind)}


def _reader_of_field(field: Field[Any], hint: Any) -> Callable[[Document], Any]:
    name, read = field.metadata.get("name", field.name), _reader(hint)
    if "flat" in field.metadata:  # gRPC has it as a part of its own
        return lambda document: read(document.get(name, document))
    if NoneType in get_args(hint):
        return lambda document: None if (said := document.get(name)) is None else read(said)
    return itemgetter(name) if read is _as_it_is else lambda document: read(document[name])


def _reader(hint: Any) -> Callable[[Any], Any]:
    kind, parts = get_origin(hint), [part for part in get_args(hint) if part is not NoneType]
    if kind is UnionType:
        if len(parts) == 1:
            return _reader(parts[0])
        return lambda said: _read(parts[0] if _readers(parts[0]).keys() <= said.keys() else parts[1], said)
    if kind is tuple:
        read = _reader(parts[0])
        return lambda said: tuple(map(read, said))
    if kind is dict:
        read = _reader(parts[1])
        return lambda said: {name: read(value) for name, value in said.items()}
    if hint is Source:
        return lambda said: Source(said.removeprefix("SOURCE_").lower())
    is_result = is_dataclass(hint)  # asked in the line below, it would narrow the type
    return partial(_read, hint) if is_result else _as_it_is


def _as_it_is(said: Any) -> Any:
    return said
