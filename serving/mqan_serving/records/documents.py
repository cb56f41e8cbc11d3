"""The JSON of ``POST /v1/records``: its schema, an example, and what becomes of it."""

from dataclasses import asdict
from typing import Any, Final

from pydantic import Field

from mqan_serving.contract.answers import quotation_document
from mqan_serving.contract.calls import MOST_QUESTIONS
from mqan_serving.contract.documents import QuotationDocument
from mqan_serving.contract.model import Document, ModelVersionDocument, Named, version_of
from mqan_serving.records.filling import FilledField, Record


class NormalizedDocument(Document):
    """What a library made of a quotation."""

    library: str = Field(description="Which one: price-parser or python-dateutil.", examples=["price-parser"])
    amount: float | None = Field(description="The number; null of a date or time.", examples=[476.0])
    currency: str | None = Field(
        description="Of an amount of money, as the text has it; null where it names none.", examples=["EUR"]
    )
    iso: str | None = Field(description="A date or time as ISO 8601 has it; null of a number.", examples=["2024-06-02"])


class FieldDocument(Document):
    """A field of a record, and what the text says of it."""

    value: Any = Field(
        description="As the record has it; null where there is none, and an empty list of an array.", examples=[476.0]
    )
    text: str = Field(
        description="The quotation, or the label; also where it has no value of the field's type, as `reason` says. "
        "Empty where the text has none.",
        examples=["476.00 EUR"],
    )
    spans: list[QuotationDocument] = Field(
        description="Where the quotation stands; of an array of strings each place; of labels and of yes and no the "
        "words that decide for them."
    )
    answered: bool = Field(description="Whether there is a value.")
    probability: float = Field(
        description="How sure the model is of the quotation, the label or list of labels, or that the text has none.",
        examples=[0.98],
    )
    question: str = Field(description="What was asked.", examples=["What is the total?"])
    normalized: NormalizedDocument | None = Field(
        description="What a library made of the quotation; null of types that none is asked for."
    )
    reason: str | None = Field(
        description="Why there is no value; null where there is one.", examples=["The quotation does not say the year."]
    )


class RecordDocument(Document):
    """A record of a text."""

    record: dict[str, Any] = Field(
        description="The record, as its schema has it. A field without a value is null where the schema allows that, "
        "an empty list where it is an array, and left out otherwise.",
        examples=[{"total": 476.0, "due": "2024-06-02"}],
    )
    missing: list[str] = Field(description="Names of the fields without a value.", examples=[["order"]])
    fields: dict[str, FieldDocument] = Field(
        description="Each field of the schema by its name, in the schema's order.",
    )
    model: ModelVersionDocument


def record_document(record: Record, model: Named) -> dict[str, Any]:
    """Return the document of ``RecordDocument``."""
    return {
        "record": record.values,
        "missing": record.missing,
        "fields": {field.name: _field(field) for field in record.fields},
        "model": version_of(model),
    }


def _field(field: FilledField) -> dict[str, Any]:
    made = field.normalized
    return {
        "value": field.value,
        "text": field.text,
        "spans": list(map(quotation_document, field.spans)),
        "answered": field.answered,
        "probability": field.probability,
        "question": field.question,
        "normalized": None if made is None else asdict(made),
        "reason": field.reason,
    }


_CONTEXT: Final = "Invoice 2024-118 of 3 May 2024. Total 476.00 EUR, due on 2 June 2024."
RECORD_REQUEST: Final[dict[str, Any]] = {
    "context": _CONTEXT,
    "schema": {
        "type": "object",
        "properties": {
            "total": {"type": "number", "format": "money"},
            "due": {"type": "string", "format": "date", "ask": "When is it due?"},
            "order": {"anyOf": [{"type": "string"}, {"type": "null"}], "ask": "What is the order number?"},
        },
        "required": ["total", "due"],
    },
}
RECORD_RESPONSE: Final[dict[str, Any]] = {
    "record": {"total": 476.0, "due": "2024-06-02", "order": None},
    "missing": ["order"],
    "fields": {
        "total": {
            "value": 476.0,
            "text": "476.00 EUR",
            "spans": [{"source": "context", "start": 38, "end": 48, "text": "476.00 EUR"}],
            "answered": True,
            "probability": 0.99,
            "question": "What is the total?",
            "normalized": {"library": "price-parser", "amount": 476.0, "currency": "EUR", "iso": None},
            "reason": None,
        },
        "due": {
            "value": "2024-06-02",
            "text": "2 June 2024",
            "spans": [{"source": "context", "start": 57, "end": 68, "text": "2 June 2024"}],
            "answered": True,
            "probability": 1.0,
            "question": "When is it due?",
            "normalized": {"library": "python-dateutil", "amount": None, "currency": None, "iso": "2024-06-02"},
            "reason": None,
        },
        "order": {
            "value": None,
            "text": "",
            "spans": [],
            "answered": False,
            "probability": 0.99,
            "question": "What is the order number?",
            "normalized": None,
            "reason": "The text does not say.",
        },
    },
    "model": {"name": "mqan-default", "version": "2.0.0-rc4"},
}
_ERROR: Final = {
    "code": "unsupported_schema",
    "message": "The field lines is an object; give each of its fields a name of its own beside the others.",
    "hint": "Change the schema: strings, numbers, booleans, enums and arrays of strings are supported.",
    "request_id": "5f0c1d2e3a4b5c6d",
}

RECORD_SCHEMA: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "title": "RecordRequest",
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "context": {"type": "string", "description": "The text.", "examples": [_CONTEXT]},
                        "schema": {
                            "type": "object",
                            "additionalProperties": True,
                            "description": "JSON Schema of an object, as pydantic's model_json_schema() writes it, of "
                            f"1 to {MOST_QUESTIONS} fields: strings (format date, date-time, time, email, uri or "
                            "phone), integers, numbers (format money), booleans, enums, and arrays of strings or of "
                            "an enum. `ask` in a field is its question; without it the question is made from "
                            "`description`, or from the name and the type.",
                        },
                        "timeout_ms": {
                            "type": "integer",
                            "minimum": 1,
                            "description": "Milliseconds until the record is of no use. Unset or above the server's "
                            "limit: that limit.",
                            "examples": [2000],
                        },
                    },
                    "required": ["context", "schema"],
                },
                "example": RECORD_REQUEST,
            }
        },
    }
}
RECORD_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/json": {"example": RECORD_RESPONSE}}},
    422: {"content": {"application/json": {"example": _ERROR}}},
}
