"""Schemas of records: what pydantic writes is read; what is not understood is refused with the field's name."""

import json
from datetime import date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import AnyUrl, BaseModel, Field

from mqan_core.errors import InputError
from mqan_serving.records.schema import RecordField, question_about, read_schema
from mqan_serving.records.values import Kind
from tests.tables import cases
from tests.timing import is_within


class Team(Enum):
    """Who answers."""

    BILLING = "billing"
    SHIPPING = "shipping"


class Mail(BaseModel):
    """A mail as pydantic describes it."""

    sender: str
    total: float = Field(json_schema_extra={"format": "money", "ask": "How much is it?"})
    price: Decimal
    tax: Decimal | None = None
    items: int = Field(ge=1, le=50)
    sent: date
    read: datetime | None = None
    at: time_of_day
    link: AnyUrl | None = None
    email: str | None = Field(None, max_length=80, json_schema_extra={"format": "email"})
    phone: str = Field(json_schema_extra={"format": "phone"})
    is_urgent: bool = False
    team: Team
    mood: Literal["calm", "angry"] | None = Field(None, description="Mood of the customer")
    level: Literal[1, 2, 3] = 1
    status: Literal["open"] = "open"
    people: list[str] = []
    teams: set[Team] = set()


def fields_of(schema: Any) -> dict[str, RecordField]:
    return {field.name: field for field in read_schema(schema)}


def one(**node: Any) -> RecordField:
    [field] = read_schema({"type": "object", "properties": {"due_date": node}})
    return field


def test_a_model_of_pydantic_is_read() -> None:
    found = fields_of(Mail.model_json_schema())
    assert list(found) == list(Mail.model_fields)
    assert {name: field.kind for name, field in found.items()} == {
        "sender": Kind.TEXT,
        "total": Kind.MONEY,
        "price": Kind.NUMBER,
        "tax": Kind.NUMBER,
        "items": Kind.INTEGER,
        "sent": Kind.DATE,
        "read": Kind.DATE_TIME,
        "at": Kind.TIME,
        "link": Kind.URI,
        "email": Kind.EMAIL,
        "phone": Kind.PHONE,
        "is_urgent": Kind.YES_NO,
        "team": Kind.CHOICE,
        "mood": Kind.CHOICE,
        "level": Kind.CHOICE,
        "status": Kind.CHOICE,
        "people": Kind.TEXTS,
        "teams": Kind.CHOICES,
    }
    assert [name for name, field in found.items() if field.is_nullable] == ["tax", "read", "link", "email", "mood"]
    assert found["level"].options == {"1": 1, "2": 2, "3": 3}
    assert found["team"].options == {"billing": "billing", "shipping": "shipping"}
    assert found["total"].question == "How much is it?"
    assert found["mood"].question == "What is the mood of the customer?"
    assert found["is_urgent"].question == "Is it urgent?"


def test_bounds_of_whole_values_may_be_any_numbers() -> None:
    bounds = one(type="integer", minimum=0.5, exclusiveMaximum=2.5).bounds
    assert bounds is not None
    assert [value for value in range(5) if bounds.isinstance_python(value)] == [1, 2]
    assert one(type="string", minLength=2.0).bounds is not None


def test_a_reference_may_be_percent_encoded() -> None:
    schema = {"$defs": {"My Enum": {"enum": ["a"]}}, "properties": {"x": {"$ref": "#/$defs/My%20Enum"}}}
    assert read_schema(schema)[0].kind is Kind.CHOICE


def test_null_of_an_enum_is_no_choice() -> None:
    field = one(enum=["a", None, 2.5, True])
    assert (field.options, field.is_nullable) == ({"a": "a", "2.5": 2.5, "true": True}, True)
    typed = one(type=["string", "null"], enum=["a", None])
    assert (typed.options, typed.is_nullable) == ({"a": "a"}, True)
    for given, values in [("string", ["a"]), ("integer", [1, 2.0]), ("number", [1, 2.5]), ("boolean", [True])]:
        assert list(one(type=given, enum=values).options.values()) == values
        assert list(one(type="array", items={"type": given, "enum": values, "title": "T"}).options.values()) == values
    assert one(type=["string", "null"]).is_nullable
    assert not one(type=["string", "null"], enum=["a"]).is_nullable  # null is not in the enum
    assert one(anyOf=[{"type": "string", "enum": ["a"]}, {"type": "null"}]).is_nullable
    assert one(allOf=[{"type": "integer"}], description="x").kind is Kind.INTEGER
    assert one(type="array").kind is Kind.TEXTS
    assert one(type="string", **{"x-column": 7}).kind is Kind.TEXT


@pytest.mark.parametrize(
    ("name", "kind", "description", "question"),
    [
        ("height", Kind.TEXT, "...", "What is the height?"),
        ("height", Kind.TEXT, " ?", "What is the height?"),
        ("due_date", Kind.DATE, "", "What is the due date?"),
        ("customerID", Kind.TEXT, "", "What is the customer ID?"),
        ("IBAN", Kind.TEXT, "", "What is the IBAN?"),
        ("guests", Kind.INTEGER, "", "How many guests?"),
        ("number_of_guests", Kind.INTEGER, "", "How many guests?"),
        ("floor", Kind.INTEGER, "", "What is the floor?"),
        ("allergies", Kind.TEXTS, "", "What are the allergies?"),
        ("has_garden", Kind.YES_NO, "", "Does it have garden?"),
        ("is_paid", Kind.YES_NO, "", "Is it paid?"),
        ("urgent", Kind.YES_NO, "", "Is it urgent?"),
        ("total", Kind.MONEY, "Total amount to pay, with tax.", "What is the total amount to pay, with tax?"),
        ("total", Kind.MONEY, "The sum", "What is the sum?"),
        ("account", Kind.TEXT, "IBAN of the seller", "What is the IBAN of the seller?"),
        ("account", Kind.TEXT, "Where to pay? ", "Where to pay?"),
        ("unit_price", Kind.MONEY, "", "How much is the unit price?"),
        ("plumber's number", Kind.PHONE, "", "What is the plumber's number?"),
        ("_", Kind.TEXT, "", "What is the _?"),
        ("größe", Kind.TEXT, "", "What is the größe?"),
    ],
)
def test_a_question_is_made_of_description_or_name(name: str, kind: Kind, description: str, question: str) -> None:
    assert question_about(name, kind, description) == question


def wide(number: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"field_{i}": {"type": "string"} for i in range(number)}}


def chain(length: int) -> dict[str, Any]:
    """Definitions that lead from one to the next."""
    ends = {f"D{length}": {"type": "string"}}
    return {f"D{i}": {"$ref": f"#/$defs/D{i + 1}"} for i in range(length)} | ends


def nested(depth: int) -> Any:
    node: Any = {"type": "string"}
    for _ in range(depth):
        node = {"anyOf": [node, {"type": "null"}]}
    return node


@pytest.mark.parametrize(
    ("node", "why"),
    [
        *cases("serving/unsupported_schemas.jsonl"),
        ({"anyOf": [{"type": "string"}] * 100_000}, "none or too many types"),
        ({"type": "number", "minimum": 10**400}, "bound that is not a number"),
        ({"enum": list(range(256))}, "enum that is not a list"),
        ({"enum": list(range(1_000_000))}, "enum that is not a list"),
        *(
            ({"type": "array", "items": {"enum": ["a"], key: given}}, f"keyword {key}")
            for key, given in [("pattern", "x"), ("minLength", 1), ("format", "date"), ("minimum", 1), ("not", {})]
        ),
        *(
            (node, "value that is not of its type")
            for given, value in [
                *(("string", 1), ("string", True), ("string", None), ("integer", "1"), ("integer", 1.5)),
                *(("integer", True), ("number", False), ("number", "1"), ("boolean", 1), ("boolean", "true")),
                *(("object", "a"), (5, "a"), ("integer", float("inf"))),
            ]
            for node in (
                {"type": given, "enum": [value]},
                {"type": given, "const": value},
                {"type": "array", "items": {"type": given, "enum": [value]}},
            )
        ),
        ({"type": "string", **{f"x-{i}": 0 for i in range(64)}}, "more than 64 keywords"),
        ({"type": "string", "ask": "w" * 2001}, "an ask that is not a string of at most 2000"),
        ({"type": "string", "description": "w" * 2001}, "a description that is not a string of at most 2000"),
        ({"enum": [float("inf"), 2]}, "not a string, number or boolean"),
        ({"type": "number", "minimum": float("nan")}, "a bound that is not a number"),
        (nested(200), "refers to itself, or is nested too deep"),
    ],
)
def test_what_is_not_supported_is_refused_with_the_fields_name(node: Any, why: str) -> None:
    definitions = {
        "Self": {"$ref": "#/$defs/Self"},
        "Ping": {"anyOf": [{"$ref": "#/$defs/Pong"}, {"type": "null"}]},
        "Pong": {"$ref": "#/$defs/Ping"},
        **chain(100),
    }
    with pytest.raises(InputError) as raised:
        read_schema({"type": "object", "properties": {"due_date": node}, "$defs": definitions})
    assert (raised.value.code, raised.value.field) == ("unsupported_schema", "schema")
    assert raised.value.message.startswith("The field due_date ")
    assert why in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("schema", "code", "why"),
    [
        (None, "wrong_type", "not an object"),
        ([], "wrong_type", "not an object"),
        ({}, "unsupported_schema", "no properties"),
        ({"type": "array"}, "unsupported_schema", "not of type object"),
        ({"type": "object", "properties": []}, "unsupported_schema", "properties that are not an object"),
        ({"$defs": 5, **wide(1)}, "unsupported_schema", "$defs that are not an object"),
        ({**wide(1), "required": ["other"]}, "unsupported_schema", "list of required fields"),
        ({**wide(1), "required": [[]]}, "unsupported_schema", "list of required fields"),
        ({**wide(1), "patternProperties": {}}, "unsupported_schema", "keyword patternProperties"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "unsupported_schema", "refers to itself"),
        (wide(257), "too_many_questions", "257 fields; at most 256"),
        (wide(100_000), "too_many_questions", "at most 256"),
        ({"properties": {"a" * 201: {"type": "string"}}}, "unsupported_schema", "more than 200 characters"),
    ],
)
def test_schemas_of_no_record_are_refused(schema: Any, code: str, why: str) -> None:
    with pytest.raises(InputError) as raised:
        read_schema(schema)
    assert raised.value.code == code
    assert why in raised.value.message


def test_odd_names_are_not_told_back() -> None:
    for name in ("\x1b[2J", "a" * 100, "a\nb"):
        with pytest.raises(InputError, match="The field with a long or odd name"):
            read_schema({"properties": {name: {}}})


def test_as_many_fields_as_are_accepted_may_share_what_they_refer_to() -> None:
    shared = {"enum": [f"label {i}" for i in range(255)]}
    properties = {f"field_{i}": {"$ref": "#/$defs/Shared"} for i in range(256)}
    schema = json.loads(json.dumps({"properties": properties, "$defs": {"Shared": shared}}))
    assert is_within(10, lambda: read_schema(schema))  # 0.2 s was seen
    assert len(read_schema(schema)) == 256


def test_what_many_fields_refer_to_has_few_keywords() -> None:
    large = {"type": "string", **{f"x-{i}": 0 for i in range(70_000)}}
    definitions = {"d0": large, **{f"d{i + 1}": {"$ref": f"#/$defs/d{i}"} for i in range(12)}}
    schema = {"properties": {f"f{i}": {"$ref": "#/$defs/d12"} for i in range(256)}, "$defs": definitions}

    def refuse() -> None:
        with pytest.raises(InputError, match="more than 64 keywords"):
            read_schema(schema)

    assert is_within(3, refuse)


def test_a_root_that_is_itself_referred_to_is_read() -> None:
    """As pydantic writes a model that contains itself."""

    class Node(BaseModel):
        name: str
        next: "Node | None" = None

    with pytest.raises(InputError, match="The field next is an object"):
        read_schema(Node.model_json_schema())
