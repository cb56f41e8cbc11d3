"""Records under fuzzing: any schema is answered, or refused as the documentation says, over REST and gRPC; values fit
the schema and cut the caller's words.
"""

from datetime import date, datetime, time
from typing import Any

import httpx2
from hypothesis import given
from hypothesis import strategies as st

from mqan_core.errors import InputError
from mqan_serving.records.schema import read_schema
from mqan_serving.records.values import Kind
from mqan_serving.rest.openapi import openapi_document
from tests.fuzz.conftest import FUZZED, JSON, Target, changed

_PATH = "/v1/records"
_DOCUMENTED = openapi_document()["paths"][_PATH]["post"]["responses"]
_TEXT = "The old harbour was closed on 3 May 1923. Ada paid 12.50 EUR; notes to ada@walls.example."
_NODES: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "maxLength": 5},
    {"type": "integer", "minimum": 3},
    {"type": "number", "format": "money"},
    {"type": "number"},
    {"type": "string", "format": "date", "ask": "When was it closed?"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "time"},
    {"type": "string", "format": "email", "description": "Where to write"},
    {"type": "boolean"},
    {"enum": ["old", 5, None, True, 2.5]},
    {"anyOf": [{"$ref": "#/$defs/Mood"}, {"type": "null"}]},
    {"type": "array", "items": {"$ref": "#/$defs/Mood"}},
    {"type": "array", "items": {"type": "string"}},
    {"$ref": "#/$defs/Itself"},
    {"type": "object", "properties": {"a": {"type": "string"}}},
]
_DEFINITIONS: dict[str, Any] = {"Mood": {"enum": ["calm", "angry"]}, "Itself": {"$ref": "#/$defs/Itself"}}
_KEYWORDS = st.sampled_from(
    [*("type", "format", "enum", "const", "items", "anyOf", "oneOf", "allOf", "$ref", "ask", "description", "default")]
    + ["minimum", "maxLength", "multipleOf", "properties", "required", "pattern", "title"]
)
_SAMPLES = st.sampled_from(["string", "integer", "array", "null", "date", "money", "#/$defs/Mood", "#/$defs/Itself"])


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Return schemas of fields, most of them right, with keywords put in that may make no sense."""
    nodes = []
    for node in draw(st.lists(st.sampled_from(_NODES), min_size=1, max_size=4)):
        if draw(st.integers(0, 3)) == 0:
            node = {**node, draw(_KEYWORDS): draw(st.one_of(JSON, _SAMPLES, st.sampled_from(_NODES)))}
        nodes.append(node)
    names = draw(st.lists(st.text(min_size=1, max_size=12), min_size=len(nodes), max_size=len(nodes), unique=True))
    return {"type": "object", "properties": dict(zip(names, nodes, strict=True)), "$defs": _DEFINITIONS}


def is_of(kind: Kind, value: Any, options: Any) -> bool:
    """Return whether a value is one of a kind."""
    match kind:
        case Kind.YES_NO:
            return isinstance(value, bool)
        case Kind.INTEGER:
            return type(value) is int
        case Kind.NUMBER | Kind.MONEY:
            return isinstance(value, float)
        case Kind.CHOICE:
            return value in options.values()
        case Kind.CHOICES:
            return all(one in options.values() for one in value)
        case Kind.TEXTS:
            return all(isinstance(one, str) for one in value)
        case Kind.DATE:
            return bool(date.fromisoformat(value))
        case Kind.DATE_TIME:
            return bool(datetime.fromisoformat(value))
        case Kind.TIME:
            return isinstance(time.fromisoformat(value), time)
    return isinstance(value, str)


def check_record(body: dict[str, Any], told: dict[str, Any]) -> None:
    """Check that a record fits its schema."""
    fields = read_schema(body["schema"])
    assert list(told["fields"]) == [field.name for field in fields]
    for field in fields:
        found = told["fields"][field.name]
        assert (field.name in told["missing"]) is not found["answered"]
        assert (found["reason"] is None) is found["answered"]
        assert all(body["context"][span["start"] : span["end"]] == span["text"] for span in found["spans"])
        if found["answered"]:
            assert told["record"][field.name] == found["value"]
            assert is_of(field.kind, found["value"], field.options)
        elif field.name in told["record"]:
            assert told["record"][field.name] == ([] if field.kind in (Kind.TEXTS, Kind.CHOICES) else None)


def refusal_of(schema: Any) -> InputError | None:
    """Return why a schema is not supported; None where it is."""
    try:
        assert read_schema(schema)
    except InputError as error:
        return error
    return None


def send(reader: tuple[Target, httpx2.Client], body: dict[str, Any]) -> httpx2.Response:
    """Ask for a record, and check that what comes back is documented."""
    target, client = reader
    response = client.post(_PATH, json=body)
    assert str(response.status_code) in _DOCUMENTED
    assert response.status_code < 500, response.text
    target.note(str(response.status_code), "" if response.is_success else response.text)
    if response.is_success:
        check_record(body, response.json())
    return response


@FUZZED
@given(schema=schemas())
def test_any_schema_is_filled_or_refused(reader: tuple[Target, httpx2.Client], schema: dict[str, Any]) -> None:
    response = send(reader, {"context": _TEXT, "schema": schema})
    error = refusal_of(schema)
    if error is not None:
        assert (response.status_code, response.json()["code"]) == (422, error.code)
        assert response.json()["message"] == error.message


@FUZZED
@given(
    body=changed(
        {
            "context": _TEXT,
            "schema": {
                "type": "object",
                "properties": {f"field {i}": node for i, node in enumerate(_NODES[:-2])},
                "required": ["field 1"],
                "$defs": _DEFINITIONS,
            },
        }
    )
)
def test_changed_documents_are_filled_or_refused(reader: tuple[Target, httpx2.Client], body: dict[str, Any]) -> None:
    send(reader, body)


@FUZZED
@given(context=st.text(max_size=200), kinds=st.lists(st.sampled_from(_NODES[:-2]), min_size=1, max_size=3))
def test_any_text_is_read(reader: tuple[Target, httpx2.Client], context: str, kinds: list[dict[str, Any]]) -> None:
    properties = {f"field {i}": node for i, node in enumerate(kinds)}
    response = send(reader, {"context": context, "schema": {"properties": properties, "$defs": _DEFINITIONS}})
    assert response.is_success or response.json()["code"] in ("empty_context", "word_too_long"), response.text


@FUZZED
@given(value=JSON)
def test_any_value_is_a_schema_or_none(value: Any) -> None:
    for node in (value, {"properties": value}, {"properties": {"a": value}}, {"properties": {"a": {"enum": value}}}):
        error = refusal_of(node)
        assert error is None or error.message.endswith(".")
