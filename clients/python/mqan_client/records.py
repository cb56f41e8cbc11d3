"""A record of a text: what is asked for, and what a server returns."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mqan_client.errors import InvalidRequestError
from mqan_client.results import AnswerSpan, ModelVersion


class ModelClass(Protocol):
    """A class that describes itself as a JSON Schema, such as a model of pydantic."""

    def model_json_schema(self) -> dict[str, Any]:
        """Return the schema."""


Schema = Mapping[str, Any] | ModelClass
"""A JSON Schema of an object, or a class that has one."""


@dataclass(frozen=True, slots=True)
class Normalized:
    """What a library made of a quotation.

    Attributes:
        library: which one: price-parser or python-dateutil.
        amount: the number; None of a date or time.
        currency: of an amount of money, as the text has it; None where it names none.
        iso: a date or time as ISO 8601 has it; None of a number.
    """

    library: str
    amount: float | None
    currency: str | None
    iso: str | None


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record, and what the text says of it.

    Attributes:
        value: as the record has it; None where there is none, and an empty list of an array.
        text: the quotation, or the label; also where it has no value of the field's type, as ``reason`` says.
        spans: where the quotation stands; of an array of strings each place; of labels and of yes and no the words that
            decide for them.
        answered: whether there is a value.
        probability: how sure the model is of the quotation, the label or the list of labels, or that the text has none.
        question: what was asked.
        normalized: what a library made of the quotation; None of types that none is asked for.
        reason: why there is no value; None where there is one.
    """

    value: Any
    text: str
    spans: tuple[AnswerSpan, ...]
    answered: bool
    probability: float
    question: str
    normalized: Normalized | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a text.

    Attributes:
        values: the record, as its schema has it. A field without a value is None where the schema allows null, an empty
            list where it is an array, and left out otherwise.
        missing: names of the fields without a value.
        fields: each field of the schema by its name, in the schema's order.
        model: the model that answered.
    """

    values: dict[str, Any]
    missing: tuple[str, ...]
    fields: dict[str, RecordField]
    model: ModelVersion

    def __str__(self) -> str:
        """Return a line for each field, to be printed: its value and where it stands, or why there is none."""
        return "\n".join(f"{name}: {_line(field)}" for name, field in self.fields.items())


def _line(field: RecordField) -> str:
    if not field.answered:
        return f"none. {field.reason}"
    places = ", ".join(f"{span.start}-{span.end}" for span in field.spans)
    return f"{json.dumps(field.value, ensure_ascii=False)} ({field.probability:.2f}; {places})"


def schema_of(given: Schema) -> dict[str, Any]:
    """Return the JSON Schema of what was given.

    Raises:
        InvalidRequestError: it is no schema.
    """
    describe = None if isinstance(given, Mapping) else getattr(given, "model_json_schema", None)
    schema = describe() if callable(describe) else given
    if not isinstance(schema, Mapping):
        message = "The schema is neither an object of JSON Schema nor a class with model_json_schema(), as of pydantic."
        raise InvalidRequestError(message, code="wrong_type")
    return dict(schema)


def record_body(context: str, schema: dict[str, Any]) -> bytes:
    """Return what is sent over REST.

    Raises:
        InvalidRequestError: there is something in it that JSON has not.
    """
    return _json({"context": context, "schema": schema}).encode()


def schema_text(schema: dict[str, Any]) -> str:
    """Return a schema as it is sent over gRPC.

    Raises:
        InvalidRequestError: there is something in it that JSON has not.
    """
    return _json(schema)


def _json(document: dict[str, Any]) -> str:
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None
    return text
