"""The JSON of ``POST /v1/records``: its schema, an example, and what becomes of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from mqan_serving.contract import calls
from mqan_serving.contract.answers import quotation_document
from mqan_serving.contract.documents import QuotationDocument
from mqan_serving.contract.errors import AnsweringError
from mqan_serving.contract.model import Document, ItemErrorDocument, ModelVersionDocument, Named, described, version_of
from mqan_serving.contract.questions import json_body
from mqan_serving.records.filling import FilledField, Record


class NormalizedDocument(Document):
    """What a library made of a quotation."""

    library: str = described("Which one: price-parser or python-dateutil.", "price-parser")
    amount: float | None = described("The number; null of a date or time.", 476.0)
    currency: str | None = described("Of an amount of money, as the text has it; null where it names none.", "EUR")
    iso: str | None = described("A date or time as ISO 8601 has it; null of a number.", "2024-06-02")


class FieldDocument(Document):
    """A field of a record, and what the text says of it."""

    value: Any = described("As the record has it; null where there is none, and an empty list of an array.", 476.0)
    text: str = described(
        "The quotation, or the label; also where it has no value of the field's type, as `reason` says. "
        "Empty where the text has none.",
        "476.00 EUR",
    )
    spans: list[QuotationDocument] = described(
        "Where the quotation is; of an array of strings each place; of labels and of yes and no the "
        "words that decide for them."
    )
    answered: bool = described("Whether there is a value.")
    probability: float = described(
        "How sure the model is of the quotation, the label or list of labels, or that the text has none.", 0.98
    )
    question: str = described("What was asked.", "How much is the total?")
    normalized: NormalizedDocument | None = described(
        "What a library made of the quotation; null of types that none is asked for."
    )
    reason: str | None = described(
        "Why there is no value; null where there is one.", "The quotation does not say the year."
    )


class RecordDocument(Document):
    """A record of a text."""

    record: dict[str, Any] = described(
        "The record, as its schema has it. A field without a value is null where the schema allows that, "
        "an empty list where it is an array, and left out otherwise.",
        {"total": 476.0, "due": "2024-06-02"},
    )
    missing: list[str] = described("Names of the fields without a value.", ["order"])
    fields: dict[str, FieldDocument] = described("Each field of the schema by its name, in the schema's order.")
    model: ModelVersionDocument


class TextRecordDocument(Document):
    """The record of one text of many, or the error that says why there is none."""

    id: str | None = described("The text's id, where it has one.", "mail-17")
    record: dict[str, Any] | None = described("As of one text; null where there is an error.")
    missing: list[str] | None = described("Names of the fields without a value.")
    fields: dict[str, FieldDocument] | None = described("Each field of the schema by its name.")
    error: ItemErrorDocument | None = described("Null where there is a record.")


class RecordsDocument(Document):
    """A record of each text, in the order of the texts."""

    texts: list[TextRecordDocument]
    model: ModelVersionDocument


def record_document(record: Record, model: Named) -> dict[str, Any]:
    return {**_filled(record), "model": version_of(model)}


def records_document(
    records: Sequence[Record | AnsweringError], ids: Sequence[str | None] | None, model: Named
) -> dict[str, Any]:
    """Return the response: of ``RecordsDocument`` where texts came as a list; else of the one record, or its error."""
    if ids is not None:
        rows = [{"id": text_id, **_record_or_error(found)} for text_id, found in zip(ids, records, strict=True)]
        return {"texts": rows, "model": version_of(model)}
    [found] = records
    if isinstance(found, AnsweringError):
        raise found
    return record_document(found, model)


def _record_or_error(found: Record | AnsweringError) -> dict[str, Any]:
    if isinstance(found, AnsweringError):
        return {"record": None, "missing": None, "fields": None, "error": found.failure.document}
    return {**_filled(found), "error": None}


def _filled(record: Record) -> dict[str, Any]:
    return {
        "record": record.values,
        "missing": record.missing,
        "fields": {field.name: _field(field) for field in record.fields},
    }


def _field(field: FilledField) -> dict[str, Any]:
    document = {name: getattr(field, name) for name in FieldDocument.model_fields}
    normalized = None if field.normalized is None else asdict(field.normalized)
    return document | {"spans": list(map(quotation_document, field.spans)), "normalized": normalized}


_EXAMPLE: Final = json.loads(Path(__file__).with_name("example.json").read_text(encoding="utf-8"))
RECORD_REQUEST: Final[dict[str, Any]] = _EXAMPLE["request"]
RECORD_RESPONSE: Final[dict[str, Any]] = _EXAMPLE["response"]
_CONTEXT: Final = calls.string_of("The text.", RECORD_REQUEST["context"])
_OF_CALL: Final[dict[str, Any]] = {
    "schema": {
        "type": "object",
        "additionalProperties": True,
        "description": "JSON Schema of an object, as pydantic's model_json_schema() writes it, of 1 to "
        f"{calls.MOST_QUESTIONS} fields: strings (format date, date-time, time, email, uri or phone), integers, "
        "numbers (format money), booleans, enums, and arrays of strings or of an enum. `ask` in a field is its "
        "question; without it the question is made from `description`, or from the name and the type.",
    },
    **calls.fields_of_call(
        "Milliseconds until the record is of no use. Unset or above the server's limit: that limit.", 2000
    ),
}
_TEXT: Final = calls.object_of(
    {"id": calls.string_of("Comes back with the record.", "mail-17"), "context": _CONTEXT}, "context"
)
_TOLD: Final = f"Texts; a string is a text without an id. Texts times fields are at most {calls.MOST_IN_ALL}."
_TEXTS: Final = calls.list_of({"anyOf": [{"type": "string"}, _TEXT]}, calls.MOST_TEXTS, description=_TOLD)
_BODIES: Final = [
    calls.object_of({name: schema, **_OF_CALL}, name, "schema")
    for name, schema in (("context", _CONTEXT), ("texts", _TEXTS))
]
RECORD_SCHEMA: Final[dict[str, Any]] = json_body({"title": "RecordRequest", "anyOf": _BODIES}, example=RECORD_REQUEST)
RECORD_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/json": {"example": RECORD_RESPONSE}}},
    422: {"content": {"application/json": {"example": _EXAMPLE["error"]}}},
}
