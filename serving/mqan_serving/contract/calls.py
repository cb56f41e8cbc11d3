"""A call with many questions about one or many texts: its schema, how it is read from a document, and what bounds it.

A body of REST and a message of gRPC are both read by ``texts_of``.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from mqan_core.errors import InputError
from mqan_serving.contract.errors import refuse, shown_field
from mqan_serving.contract.questions import Question, json_body, question_of, question_schema

MOST_TEXTS: Final = 256
MOST_QUESTIONS: Final = 256  # about one text
MOST_IN_ALL: Final = 1024
_NOT_IN_A_QUESTION: Final = {
    "context": "Send context next to questions, not inside a question.",
    "model": "The field model stands beside questions, not in a question.",
    "stream": "The field stream is known to POST /v1/answer only, which takes one question.",
}
MOST_EXPLAINED: Final = 32  # of them; an explanation of a long answer has some 500 kB
_OF_CALL: Final = ("timeout_ms", "model")
_MOST_ID: Final = 200  # characters


@dataclass(frozen=True, slots=True)
class Item:
    """A question of a call; where it is not one, the error that says why."""

    id: str | None
    question: Question | InputError


@dataclass(frozen=True, slots=True)
class AskedText:
    """A text and what is asked about it."""

    id: str | None
    items: tuple[Item, ...]


def texts_of(document: dict[str, Any]) -> list[AskedText]:
    """Return the questions of a call, or raise ``InputError``; what is wrong with one alone is kept with it."""
    timeout_ms = check_timeout_ms(document.get("timeout_ms"))
    if "texts" in document:
        check_names(document, {"texts", *_OF_CALL})
        rows = entries_of(document, "texts", MOST_TEXTS, "")
        texts = [_text(row, f"texts[{i}].", timeout_ms) for i, row in enumerate(rows)]
    else:
        texts = [_text(document, "", timeout_ms)]
    check_texts(texts)
    return texts


def _text(row: Any, where: str, timeout_ms: int | None) -> AskedText:
    if not isinstance(row, dict):
        raise refuse("wrong_type", "texts", f"{where.rstrip('.')} is not an object.")
    check_names(row, {"id", "context", "questions", *(() if where else _OF_CALL)}, where)
    context = row.get("context")
    if context is None:
        raise refuse("missing_field", "context", f"The field {where}context is missing.")
    if not isinstance(context, str):
        raise refuse("wrong_type", "context", f"The field {where}context is not a string.")
    asked = entries_of(row, "questions", MOST_QUESTIONS, where)
    items = tuple(item_of(one, context, timeout_ms) for one in asked)
    return AskedText(check_id(row.get("id"), where), items)


def item_of(row: Any, context: str, timeout_ms: int | None = None) -> Item:
    """Read a question: a string, or an object with all but its context. It has no more time than the call has."""
    if isinstance(row, str):
        row = {"question": row}
    if not isinstance(row, dict):
        return Item(None, refuse("wrong_type", "questions", "A question is neither an object nor a string."))
    try:
        name = check_id(row.get("id"))
    except InputError as error:
        return Item(None, error)
    rest = {key: value for key, value in row.items() if key != "id"}
    for field, message in _NOT_IN_A_QUESTION.items():
        if field in rest:
            return Item(name, refuse("unknown_field", field, message))
    try:
        question = question_of({**rest, "context": context})
    except InputError as error:
        return Item(name, error)
    limits = [limit for limit in (timeout_ms, question.timeout_ms) if limit is not None]
    return Item(name, question.model_copy(update={"timeout_ms": min(limits, default=None)}))


def entries_of(row: Mapping[str, Any], name: str, most: int, where: str) -> list[Any]:
    value = row.get(name)
    if value is None:
        raise refuse("missing_field", name, f"The field {where}{name} is missing.")
    entries = value if isinstance(value, list) else []
    if not entries:
        raise refuse("wrong_type", name, f"The field {where}{name} is not a list of at least one.")
    if len(entries) > most:
        message = f"The field {where}{name} has {len(entries)} entries; at most {most} are accepted."
        raise refuse("too_many_questions", name, message)
    return entries


def model_of(document: Mapping[str, Any]) -> str | None:
    name = document.get("model")
    if name is None or isinstance(name, str):
        return name
    raise refuse("wrong_type", "model", "The field model is not a string.")


def check_timeout_ms(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise refuse("invalid_timeout", "timeout_ms", "timeout_ms is not a whole number of milliseconds above 0.")


def check_shared(number: int, most: int, field: str, what: str) -> None:
    """Refuse a call with too many characters to read: a body has once what many questions share."""
    if number > most:
        raise refuse("request_too_large", field, f"{what} have {number} characters; at most {most} are accepted.")


def check_texts(texts: Sequence[AskedText]) -> None:
    check_in_all(sum(len(text.items) for text in texts))
    check_explained(texts)
    _check_ids([text.id for text in texts], "texts")
    for i, text in enumerate(texts):
        _check_ids([item.id for item in text.items], f"texts[{i}].questions" if len(texts) > 1 else "questions")


def check_in_all(number: int) -> None:
    if number > MOST_IN_ALL:
        message = f"There are {number} questions; at most {MOST_IN_ALL} are accepted in one call."
        raise refuse("too_many_questions", "texts", message)


def check_id(value: object, where: str = "") -> str | None:
    if value is not None and not (isinstance(value, str) and 0 < len(value) <= _MOST_ID):
        raise refuse("wrong_type", "id", f"The field {where}id is not a string of 1 to {_MOST_ID} characters.")
    return value


def check_explained(texts: Sequence[AskedText]) -> None:
    questions = [item.question for text in texts for item in text.items]
    number = sum(isinstance(question, Question) and question.explain for question in questions)
    if number > MOST_EXPLAINED:
        message = f"There are {number} questions with explain; at most {MOST_EXPLAINED} are accepted in one call."
        raise refuse("too_many_questions", "explain", message)


def _check_ids(ids: Sequence[str | None], field: str) -> None:
    given = [name for name in ids if name is not None]
    if len(set(given)) < len(given):
        raise refuse("duplicate_id", field, f"Two entries of {field} have the same id.")


def check_names(row: Mapping[str, Any], known: Set[str], where: str = "") -> None:
    """Refuse an object of a document that has a field but the known ones; say where it stands."""
    for name in row:
        if name not in known:
            shown = shown_field(name, "")
            what = f"The field {where}{shown}" if shown else f"A field of {where.rstrip('.') or 'the body'}"
            raise refuse("unknown_field", "body", f"{what} is unknown; {', '.join(sorted(known))} are known.")


def string_of(description: str, example: str) -> dict[str, Any]:
    return {"type": "string", "description": description, "examples": [example]}


def list_of(items: Any, most: int, **more: str) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "maxItems": most, "items": items, **more}


def object_of(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    fields = {"properties": properties, "required": list(required)}
    return {"type": "object", "additionalProperties": False, **fields}


def fields_of_call(timeout_ms: str, example: int) -> dict[str, Any]:
    """Return the schemas of what stands beside the texts of a call; ``timeout_ms`` says how long."""
    time = {"type": "integer", "minimum": 1, "description": timeout_ms, "examples": [example]}
    return {"timeout_ms": time, "model": question_schema()["properties"]["model"]}


def _schema() -> dict[str, Any]:
    asked = question_schema()
    rest = {name: field for name, field in asked["properties"].items() if name not in ("context", "stream", "model")}
    named = {"id": string_of("Comes back with the answer.", "height"), **rest}
    item = {**asked, "title": "AskedQuestion", "properties": named, "required": ["question"]}
    told = "Questions about the context; a string is a question with nothing else."
    text = {
        "id": string_of("Comes back with the answers.", "mail-17"),
        "context": string_of("The text.", "The tower is 330 m tall."),
        "questions": list_of({"anyOf": [{"type": "string"}, item]}, MOST_QUESTIONS, description=told),
    }
    of_call = fields_of_call("Milliseconds until the answers are of no use; a question's own may be less.", 5000)
    many = list_of(object_of(text, "context", "questions"), MOST_TEXTS)
    alone = object_of(text | of_call, "context", "questions")
    return {"title": "Questions", "anyOf": [alone, object_of({"texts": many, **of_call}, "texts")]}


_EXAMPLE: Final = {
    "context": "The tower is 330 m tall and was finished in 1889.",
    "questions": ["How tall is the tower?", {"id": "year", "question": "When was it finished?"}],
}
MANY_SCHEMA: Final[dict[str, Any]] = json_body(_schema(), example=_EXAMPLE)
