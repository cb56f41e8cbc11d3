"""The JSON of ``POST /v1/records``: its schema, an example, and what becomes of it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from mqan_serving.contract.answers import quotation_document
from mqan_serving.contract.calls import MOST_QUESTIONS
from mqan_serving.contract.documents import QuotationDocument
from mqan_serving.contract.model import Document, ModelVersionDocument, Named, version_of
from mqan_serving.contract.questions import json_body, question_schema
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
        description="Where the quotation is; of an array of strings each place; of labels and of yes and no the "
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


_EXAMPLE: Final = json.loads(Path(__file__).with_name("example.json").read_text(encoding="utf-8"))
RECORD_REQUEST: Final[dict[str, Any]] = _EXAMPLE["request"]
RECORD_RESPONSE: Final[dict[str, Any]] = _EXAMPLE["response"]
RECORD_SCHEMA: Final[dict[str, Any]] = json_body(
    {
        "title": "RecordRequest",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "context": {"type": "string", "description": "The text.", "examples": [RECORD_REQUEST["context"]]},
            "schema": {
                "type": "object",
                "additionalProperties": True,
                "description": "JSON Schema of an object, as pydantic's model_json_schema() writes it, of 1 to "
                f"{MOST_QUESTIONS} fields: strings (format date, date-time, time, email, uri or phone), integers, "
                "numbers (format money), booleans, enums, and arrays of strings or of an enum. `ask` in a field is its "
                "question; without it the question is made from `description`, or from the name and the type.",
            },
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "description": "Milliseconds until the record is of no use. Unset or above the server's limit: that "
                "limit.",
                "examples": [2000],
            },
            "model": question_schema()["properties"]["model"],
        },
        "required": ["context", "schema"],
    },
    example=RECORD_REQUEST,
)
RECORD_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/json": {"example": RECORD_RESPONSE}}},
    422: {"content": {"application/json": {"example": _EXAMPLE["error"]}}},
}
