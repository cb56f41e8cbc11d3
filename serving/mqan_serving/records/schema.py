"""Fields of a record, read from the JSON Schema of an object, as pydantic's ``model_json_schema()`` writes it.

| in the schema | kind of question |
|---|---|
| ``type: boolean`` | yes or no |
| ``enum`` or ``const``, of strings, numbers and booleans | choices |
| ``type: array`` of ``enum`` | choices, of which several can be right |
| ``type: array`` of ``type: string`` | every place that answers |
| ``type: string``, ``integer`` or ``number``, with or without ``format`` | one unbroken quotation |

What is not understood is refused, not ignored. ``x-min-probability``, of a field or of the whole schema, is the least
probability that a value may have.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from pydantic_core import SchemaError, SchemaValidator, core_schema, to_json

from mqan_core.ask.options import MOST_CHOICES
from mqan_core.errors import InputError
from mqan_serving.contract.calls import MOST_QUESTIONS
from mqan_serving.contract.errors import refuse
from mqan_serving.records.values import Kind

_WORDS: Final = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[^\W\d_A-Z]+(?:['’][^\W\d_A-Z]+)?|[A-Z]|\d+")
_OPENINGS: Final = ("the ", "a ", "an ", "its ", "his ", "her ", "their ", "your ", "our ", "all ")

_MOST_NAME: Final = 200  # characters
_MOST_SHOWN: Final = 60  # of a name in a message
_MOST_STEPS: Final = 16  # from a property to what it refers to
_MOST_BRANCHES: Final = 8  # of anyOf
_MOST_KEYWORDS: Final = 64  # of a schema, so that what many fields refer to is quick to read
_MOST_ASKED: Final = 2000  # characters of an ask or a description, to which many fields can refer
_KINDS: Final[Mapping[str, Mapping[str | None, Kind]]] = {  # by type and format
    "string": {
        None: Kind.TEXT,
        "date": Kind.DATE,
        "date-time": Kind.DATE_TIME,
        "time": Kind.TIME,
        "email": Kind.EMAIL,
        "uri": Kind.URI,
        "phone": Kind.PHONE,
    },
    "integer": {None: Kind.INTEGER},
    "number": {None: Kind.NUMBER, "money": Kind.MONEY},
}
_NOTES: Final = frozenset(
    {"$comment", "ask", "default", "deprecated", "description", "examples", "readOnly", "title", "type", "writeOnly"}
)
_LEAST: Final = "x-min-probability"
_OF_NUMBERS: Final = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
_OF_STRINGS: Final = {"minLength": "min_length", "maxLength": "max_length"}
_ROUNDED: Final[Mapping[str, Callable[[float], float]]] = {
    "ge": math.ceil,
    "gt": math.floor,
    "le": math.floor,
    "lt": math.ceil,
}
_OF_ROOT: Final = _NOTES - {"ask"} | {
    *("$defs", "$id", "$schema", "additionalProperties", "definitions", "properties", "required")
}


@dataclass(frozen=True, slots=True)
class RecordField:
    name: str
    kind: Kind
    question: str
    is_nullable: bool
    options: Mapping[str, Any]  # of a choice, the value of each label
    bounds: SchemaValidator | None
    least: float  # probability that a value may have


def read_schema(schema: Any) -> list[RecordField]:
    """Return the fields of a record in the schema's order, or raise ``InputError`` for what is not supported."""
    if not isinstance(schema, dict):
        raise refuse("wrong_type", "schema", "The field schema is not an object.", "Send a JSON Schema.")
    definitions = {**_object(schema, "definitions"), **_object(schema, "$defs")}
    root, _ = _Reading("The schema", definitions).whole(schema)
    if root.get("type", "object") != "object":
        raise _refuse("The schema", "is not of type object")
    _check_known("The schema", root, _OF_ROOT)
    properties = _object(root, "properties")
    if not properties:
        raise _refuse("The schema", "has no properties: a record needs at least one field")
    if len(properties) > MOST_QUESTIONS:
        message = f"The schema has {len(properties)} fields; at most {MOST_QUESTIONS} are accepted."
        raise refuse("too_many_questions", "schema", message, "Fill several records from the text.")
    required = root.get("required", [])
    if not isinstance(required, list) or not all(isinstance(n, str) and n in properties for n in required):
        raise _refuse("The schema", "has a list of required fields that is not one of names of its properties")
    least = _least("The schema", root, 0)
    return [_field(name, node, definitions, least) for name, node in properties.items()]


def shown_name(name: str) -> str:
    return f"The field {name if len(name) <= _MOST_SHOWN and name.isprintable() else 'with a long or odd name'}"


class _Reading:
    """The reading of one place of a schema, which messages name ``where``."""

    def __init__(self, where: str, definitions: Mapping[str, Any]) -> None:
        self._where = where
        self._definitions = definitions

    def whole(self, node: Any) -> tuple[dict[str, Any], bool]:
        """Return a schema with what it refers to in its place, and whether it allows null."""
        is_nullable = False
        for _ in range(_MOST_STEPS):
            if not isinstance(node, dict):
                raise _refuse(self._where, "has a schema that is not an object")
            if len(node) > _MOST_KEYWORDS:
                raise _refuse(self._where, f"has a schema with more than {_MOST_KEYWORDS} keywords")
            rest = dict(node)
            if "$ref" in rest:
                node = {**self._referred(rest.pop("$ref")), **rest}
            elif isinstance(rest.get("allOf"), list) and len(rest["allOf"]) == 1:  # of pydantic before 2.10
                [only] = rest.pop("allOf")
                node = {**only, **rest} if isinstance(only, dict) else only
            elif "anyOf" in rest or "oneOf" in rest or isinstance(rest.get("type"), list):
                node, allows_null = self._one_of(rest)
                is_nullable |= allows_null
            else:
                return node, is_nullable
        raise _refuse(self._where, "refers to itself, or is nested too deep")

    def _referred(self, ref: Any) -> dict[str, Any]:
        for opening in ("#/$defs/", "#/definitions/"):
            if isinstance(ref, str) and ref.startswith(opening):
                name = unquote(ref.removeprefix(opening)).replace("~1", "/").replace("~0", "~")
                found = self._definitions.get(name)
                if isinstance(found, dict):
                    if len(found) > _MOST_KEYWORDS:
                        raise _refuse(self._where, f"refers to a schema with more than {_MOST_KEYWORDS} keywords")
                    return found
        raise _refuse(self._where, "has a $ref to something that is not in $defs")

    def _one_of(self, rest: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        key = next((key for key in ("anyOf", "oneOf") if key in rest), "type")
        branches = rest.pop(key)
        if not isinstance(branches, list) or not 1 <= len(branches) <= _MOST_BRANCHES:
            raise _refuse(self._where, f"has a list {key} of none or too many types")
        if key == "type":
            branches = [{"type": name} for name in branches]
        filled = [branch for branch in branches if branch != {"type": "null"}]
        is_nullable = len(filled) < len(branches)
        types = [branch.get("type") if isinstance(branch, dict) else None for branch in filled]
        if sorted(map(str, types)) == ["number", "string"]:  # pydantic's Decimal: a number, or a string with one
            filled = [filled[types.index("number")]]
        if len(filled) != 1 or not isinstance(filled[0], dict):
            raise _refuse(self._where, "can be of several types; one, or one and null, is supported")
        if key == "type" and ("const" in rest or (isinstance(rest.get("enum"), list) and None not in rest["enum"])):
            is_nullable = False  # both keywords of one schema have to hold
        return {**filled[0], **rest}, is_nullable


def _field(name: str, node: Any, definitions: Mapping[str, Any], least: float) -> RecordField:
    where = shown_name(name)
    if len(name) > _MOST_NAME:
        raise _refuse(where, f"has a name of more than {_MOST_NAME} characters")
    reading = _Reading(where, definitions)
    found, is_nullable = reading.whole(node)
    options: dict[str, Any] = {}
    bounds: SchemaValidator | None = None
    if found.get("type") == "array":
        item, allows_null = reading.whole(found.get("items", {"type": "string"}))
        kind, options = _of_items(where, item, is_nullable=allows_null)
        known = frozenset({"items", "uniqueItems"})
    elif "enum" in found or "const" in found:
        options = _options(where, found, is_nullable=is_nullable)
        kind, known = Kind.CHOICE, frozenset({"enum", "const"})
        is_nullable |= None in found.get("enum", ())
    elif found.get("type") == "boolean":
        kind, known = Kind.YES_NO, frozenset()
    else:
        kind = _quoted(where, found)
        names = _OF_NUMBERS if kind in (Kind.INTEGER, Kind.NUMBER, Kind.MONEY) else {}
        names = _OF_STRINGS if kind in (Kind.TEXT, Kind.EMAIL, Kind.URI, Kind.PHONE) else names
        known = frozenset({"format", *names})
        bounds = _bounds(where, kind, {names[key]: value for key, value in found.items() if key in names})
    _check_known(where, found, _NOTES | known)
    least = _least(where, found, least)
    return RecordField(name, kind, _question(where, name, kind, found), is_nullable, options, bounds, least)


def _quoted(where: str, found: Mapping[str, Any]) -> Kind:
    given = found.get("type")
    if given == "object" or "properties" in found:
        raise _refuse(where, "is an object; give each of its fields a name of its own beside the others")
    if not isinstance(given, str) or given not in _KINDS:
        raise _refuse(where, "has no type of string, number, integer, boolean, or array of strings")
    form = found.get("format")
    if not isinstance(form, str | None) or form not in _KINDS[given]:
        listed = ", ".join(filter(None, _KINDS[given])) or "none"
        raise _refuse(where, f"has a format that is not supported; of {given} these are: {listed}")
    return _KINDS[given][form]


def _of_items(where: str, item: Mapping[str, Any], *, is_nullable: bool) -> tuple[Kind, dict[str, Any]]:
    if "enum" in item or "const" in item:
        _check_known(where, item, _NOTES | {"enum", "const"})
        return Kind.CHOICES, _options(where, item, is_nullable=is_nullable)
    if item.get("type") != "string":
        raise _refuse(where, "is an array of something else than strings or an enum")
    _check_known(where, item, _NOTES)
    return Kind.TEXTS, {}


def _options(where: str, found: Mapping[str, Any], *, is_nullable: bool) -> dict[str, Any]:
    if "enum" in found and "const" in found:
        raise _refuse(where, "has both an enum and a const; give one of them")
    values = found["enum"] if "enum" in found else [found["const"]]
    if not isinstance(values, list) or not 1 <= len(values) <= MOST_CHOICES + 1:
        raise _refuse(where, f"has an enum that is not a list of 1 to {MOST_CHOICES} values")
    options: dict[str, Any] = {}
    for value in values:
        if not _is_of_type(value, found, is_nullable=is_nullable):
            raise _refuse(where, "has an enum with a value that is not of its type")
        if value is None:
            continue
        if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
            raise _refuse(where, "has an enum with a value that is not a string, number or boolean")
        try:
            label = value if isinstance(value, str) else to_json(value).decode()
        except ValueError:
            raise _refuse(where, "has an enum with a number that is too long") from None
        if label in options:
            raise _refuse(where, "has an enum with two values that read alike")
        options[label] = value
    if not 1 <= len(options) <= MOST_CHOICES:
        raise _refuse(where, f"has an enum that is not a list of 1 to {MOST_CHOICES} values beside null")
    return options


def _is_of_type(value: Any, found: Mapping[str, Any], *, is_nullable: bool) -> bool:
    if "type" not in found or (value is None and is_nullable):
        return True
    kinds = ["boolean"] if isinstance(value, bool) else ["string"] if isinstance(value, str) else []
    if isinstance(value, int | float) and not isinstance(value, bool):
        kinds = ["number", "integer"] if value == value // 1 else ["number"]
    return found["type"] in kinds


def _bounds(where: str, kind: Kind, given: dict[str, Any]) -> SchemaValidator | None:
    if not given:
        return None
    if not all(isinstance(n, int | float) and not isinstance(n, bool) and abs(n) < math.inf for n in given.values()):
        raise _refuse(where, "has a bound that is not a number")
    make: Any = core_schema.float_schema if kind in (Kind.NUMBER, Kind.MONEY) else core_schema.str_schema
    make = core_schema.int_schema if kind is Kind.INTEGER else make
    if make is not core_schema.float_schema:  # any number bounds whole ones
        for name, value in given.items():
            given[name] = _ROUNDED[name](value) if name in _ROUNDED else int(value) if value == value // 1 else value
    try:
        return SchemaValidator(make(**given))
    except (SchemaError, OverflowError):
        raise _refuse(where, "has a bound that is not a number of the right kind") from None


def _question(where: str, name: str, kind: Kind, found: Mapping[str, Any]) -> str:
    for key in ("ask", "description"):
        told = found.get(key, "")
        if not isinstance(told, str) or len(told) > _MOST_ASKED:
            named = "an ask" if key == "ask" else "a description"
            raise _refuse(where, f"has {named} that is not a string of at most {_MOST_ASKED} characters")
    return found.get("ask") or question_about(name, kind, found.get("description") or "")


def _least(where: str, found: Mapping[str, Any], default: float) -> float:
    given = found.get(_LEAST, default)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise _refuse(where, f"has an {_LEAST} that is not a number from 0 to 1")
    return float(given)


def _object(node: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = node.get(name, {})
    if not isinstance(found, dict):
        raise _refuse("The schema", f"has {name} that are not an object")
    return found


def _check_known(where: str, node: Mapping[str, Any], known: frozenset[str]) -> None:
    for key in node:
        if key not in known and not key.startswith("x-"):
            what = f"the keyword {key}" if key.isprintable() and len(key) <= _MOST_SHOWN else "a keyword"
            raise _refuse(where, f"has {what}, which is not supported here")


def _refuse(where: str, why: str) -> InputError:
    return refuse("unsupported_schema", "schema", f"{where} {why}.")


def question_about(name: str, kind: Kind, description: str) -> str:
    """Return what to ask about a field, by its name (``due_date``, ``dueDate``) and its description, if any."""
    told = description.strip()
    if not _WORDS.search(told):
        return _about_name(name, kind)
    if told.endswith("?"):
        return told
    return _about_description(told.rstrip("."), kind)


def _about_description(told: str, kind: Kind) -> str:
    if kind is Kind.YES_NO:
        return f"{told}?"
    is_written_small = told[:2] == told[:2].capitalize() and told[1:2].islower()  # not an abbreviation
    subject = told[0].lower() + told[1:] if is_written_small else told
    verb = "are" if kind in (Kind.TEXTS, Kind.CHOICES) else "is"
    return f"What {verb} {subject if subject.startswith(_OPENINGS) else f'the {subject}'}?"


def _about_name(name: str, kind: Kind) -> str:
    words = [word if len(word) > 1 and word.isupper() else word.lower() for word in _WORDS.findall(name)] or [name]
    first, *others = words
    rest = " ".join(others)
    said = " ".join(words)
    if kind is Kind.YES_NO:
        if others and first in ("is", "has", "does", "can", "will", "was", "are"):
            return f"Does it have {rest}?" if first == "has" else f"{first.capitalize()} it {rest}?"
        return f"Is it {said}?"
    if kind is Kind.INTEGER:
        counted = rest.removeprefix("of ") if first in ("num", "number", "count") and others else said
        if counted.endswith("s"):
            return f"How many {counted}?"
    asked = "How much is" if kind is Kind.MONEY else "What is"
    return f"{'What are' if kind in (Kind.TEXTS, Kind.CHOICES) else asked} the {said}?"
