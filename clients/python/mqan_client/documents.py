"""What is asked as documents of REST; such documents as results, and results as documents.

What gRPC returns is read as such a document, too.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, asdict, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache, partial
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, Required, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from mqan_client.errors import ClientError, InvalidRequestError, ServerError, error_of, unsendable
from mqan_client.results import Answer, Model, Source

T = TypeVar("T")

Document = dict[str, Any]  # an object of JSON

# What may be asked for that is a list, and of what.
_LISTS = {"choices": "labels", "scale": "levels", "sources": "the sources that words may come from"}


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


class ModelClass(Protocol):
    """A class that describes itself as a JSON Schema, such as a model of pydantic."""

    def model_json_schema(self) -> dict[str, Any]: ...


Schema = Mapping[str, Any] | ModelClass  # a JSON Schema of an object, or a class that has one


@dataclass(frozen=True, slots=True)
class Choice:
    """A label to choose from, and what it stands for."""

    label: str
    description: str = ""


class Asked(TypedDict, total=False):
    """The options of a question, as ``Client.answer`` takes them."""

    max_answer_tokens: int | None
    choices: Sequence[str | Choice] | None  # labels, or labels with descriptions
    adapter: str | None  # the name of one that the server has, instead of choices
    multiple: bool  # several of them may be right
    yes_no: bool
    scale: Sequence[str] | None  # levels, low to high
    sources: Sequence[Source | str] | None  # that words may come from
    contiguous: bool  # one unbroken quotation only
    all: bool  # every place that answers
    alternatives: int  # how many of the next best quotations
    explain: bool  # what each step looked at
    parse: Literal["sql", "dialogue_state"] | None  # what the answer is to be read as
    min_probability: float | None  # below which there is no answer
    none: bool  # none of the choices may be right, too
    model: str | None  # the name of the one that is to answer


class AskedRecord(TypedDict, total=False):
    """The options of a record; a field of it may have an ``x-min-probability`` of its own."""

    min_probability: float | None  # of a value; a less likely one is left out


class AskedQuestion(Asked, total=False):
    """A question among several, with what may be asked for beside it."""

    question: Required[str]


def question_document(question: str, asked: Asked) -> Document:
    """Return a question with what is asked for; what is not is left out. Refuse unknown names and empty lists."""
    given: dict[str, Any] = {**in_tuples(asked)}
    if unknown := given.keys() - Asked.__annotations__.keys():
        near = get_close_matches(min(unknown), Asked.__annotations__, n=1)
        raise unsendable(f"there is no option {min(unknown)}{'; did you mean ' + near[0] + '?' if near else '.'}")
    try:
        if (adapter := given.pop("adapter", None)) is not None:
            if "choices" in given:
                raise unsendable("an adapter has labels of its own: leave `choices` out.")
            given["choices"] = {"adapter": adapter}
        elif "choices" in given:
            given["choices"] = [asdict(c if isinstance(c, Choice) else Choice(c)) for c in given["choices"]]
        if "sources" in given:
            given["sources"] = [Source(source).value for source in given["sources"]]
    except (TypeError, ValueError) as error:
        raise unsendable(f"{error}.") from None
    asked_for = {name: value for name, value in given.items() if value is not None and value is not False}
    return {"question": question} | {n: list(v) if isinstance(v, tuple) else v for n, v in asked_for.items()}


def question_documents(questions: Iterable[str | AskedQuestion]) -> list[Document]:
    """Return several questions; refuse what is no list, and what in it is no question."""
    if isinstance(questions, str | bytes | Mapping) or not isinstance(questions, Iterable):
        what = "one question" if isinstance(questions, str | bytes | Mapping) else f"{questions!r:.100}"
        raise unsendable(f"`questions` is {what}; give a list of them, or call `answer`.", "wrong_type")
    found = []
    for i, given in enumerate(questions):
        try:
            asked: dict[str, Any] = {"question": given} if isinstance(given, str) else dict(given)
            question = asked.pop("question")
        except (TypeError, ValueError, KeyError):
            raise unsendable(f"question {i} is neither a string nor a mapping with `question`.") from None
        found.append(question_document(question, cast("Asked", asked)))
    return found


def in_tuples(asked: Asked) -> Asked:
    """Return what is asked for with tuples for lists: many questions may take them, and an iterator gives only once.

    Empty lists are refused, and strings, whose characters nobody means.
    """
    given: dict[str, Any] = dict(asked)
    for name, what in _LISTS.items():
        found = given.pop(name, None)
        if found is None:  # left out, as null is in the contract
            continue
        if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
            raise unsendable(f"`{name}` is {found!r:.100}; give a list of {what}.", "wrong_type")
        given[name] = tuple(found)
        if not given[name]:
            raise unsendable(f"`{name}` is empty; give a list of {what}, or leave it out.")
    return cast("Asked", given)


def record_document(context: str, schema: Schema, min_probability: float | None = None) -> Document:
    """Return what asks for a record; refuse what is no schema."""
    describe = None if isinstance(schema, Mapping) else getattr(schema, "model_json_schema", None)
    found = describe() if callable(describe) else schema
    if not isinstance(found, Mapping):
        message = "The schema is neither an object of JSON Schema nor a class with model_json_schema(), as of pydantic."
        raise InvalidRequestError(message, code="wrong_type")
    least = {} if min_probability is None else {"x-min-probability": min_probability}
    return {"context": context, "schema": {**found, **least}}


def to_json(document: Document) -> str:
    """Return the JSON of a request, which UTF-8 can carry; refuse what JSON has not."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise unsendable(f"{error}.") from None
    return text
