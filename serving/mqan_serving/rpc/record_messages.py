"""The messages of ``FillRecord``."""

from dataclasses import asdict

from pydantic_core import to_json

from mqan.v1 import answer_pb2
from mqan_serving.records.filling import FilledField, Record, RecordRequest, parse_schema
from mqan_serving.rpc.messages import span_message, timeout_ms_of
from mqan_serving.service.answer_service import Model


def record_request_of(request: answer_pb2.FillRecordRequest, remaining_s: float | None) -> RecordRequest:
    """Return what is asked for.

    Args:
        request: the request.
        remaining_s: until its caller's deadline, where it has one.

    Raises:
        InputError: the schema is no JSON, or is not supported.
    """
    return RecordRequest(request.context, parse_schema(request.schema), timeout_ms_of(remaining_s))


def record_response(record: Record, model: Model) -> answer_pb2.FillRecordResponse:
    """Return the response of a record."""
    return answer_pb2.FillRecordResponse(
        record=to_json(record.values).decode(),
        missing=record.missing,
        fields=[_field(field) for field in record.fields],
        model=answer_pb2.ModelVersion(name=model.name, version=model.version),
    )


def _field(field: FilledField) -> answer_pb2.FilledField:
    made = field.normalized
    return answer_pb2.FilledField(
        name=field.name,
        value=to_json(field.value).decode(),
        text=field.text,
        spans=[span_message(span) for span in field.spans],
        answered=field.answered,
        probability=field.probability,
        question=field.question,
        normalized=None if made is None else answer_pb2.NormalizedValue(**asdict(made)),
        reason=field.reason,
    )
